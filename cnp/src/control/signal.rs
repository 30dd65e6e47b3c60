//! CNPs to the sender of one flow: the queue pairs they name, the checks they must pass, and the records made of them.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use crate::admission::{CnpCaps, CnpRequest, CnpSink, FlowCheck, Suppressed, Unpaired};
use crate::log::Outcome;
use crate::policy::{Decision, QueueContext};
use npcc_roce::key::{Qpn, QueueFlow};
use npcc_roce::pair::Evidence;
use npcc_roce::pair::connections::EndpointId;

/// Cause of CNPs: the decision (a policy's or a mark's, with its spacing), the queue's context, and the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cause<'a> {
    pub(super) decision: Decision,
    pub(super) context: &'a QueueContext,
    pub(super) now: Nanos,
}

/// Longest spacing of CNPs to one queue pair while all queue pairs of a sender are signalled, as it is not known which of them sends the flow.
const MAX_ALL_QPS_SPACING: Nanos = Nanos::from_millis(10);

impl ControlCore {
    /// Signals the sender of a flow with at most `most` CNPs: one, unless all of its queue pairs are signalled. Returns the number sent, or that
    /// would have been: a `dry` run makes every check and sends nothing.
    pub(super) fn signal_sender(
        &mut self,
        index: u32,
        dry: bool,
        cause: &Cause<'_>,
        most: usize,
        out: &mut impl CnpSink,
    ) -> Result<usize, Suppressed> {
        let (key, endpoint, check) = self.flow_check(index, dry, cause.now)?;
        let flow = (&key, index, dry);
        let settings = &self.tracker.settings;
        let all_qps = settings.unpaired == Unpaired::AllQps;
        let cnps = match CnpCaps::check(settings, &check, &cause.decision, cause.now) {
            Err(Suppressed::Unpaired) if all_qps => {
                self.signal_all_qps(flow, endpoint, &check, cause, most, out)?
            }
            sender => {
                self.charge_and_hand_over(flow, sender?, &check, cause, out)?;
                let endpoint = endpoint.filter(|_| !dry);
                if let Some(state) =
                    endpoint.and_then(|it| self.tracker.connections.endpoint_mut(it))
                {
                    state.signalled = Some(cause.now);
                }
                1
            }
        };
        if dry {
            self.tracker.record_would_send(index, cnps, cause.now);
        } else {
            self.note_cnps((index, cnps), cause.now);
        }
        Ok(cnps)
    }

    /// Key, endpoint and properties of a flow, if its host may be signalled. Its pairing is judged anew, by all records processed so far: one that
    /// demotes it counts before the CNP.
    fn flow_check(
        &mut self,
        index: u32,
        dry: bool,
        now: Nanos,
    ) -> Result<(QueueFlow, Option<EndpointId>, FlowCheck), Suppressed> {
        let pairing = self.tracker.refresh_pairing(index, now);
        let (Some(key), Some(flow)) =
            (self.tracker.flows.key(index), self.tracker.flows.get(index))
        else {
            return Err(Suppressed::Cold);
        };
        if !self.tracker.settings.hosts.admit(&key.key) {
            return Err(Suppressed::HostDenied);
        }
        let connections = &self.tracker.connections;
        // A flow whose endpoint's place is another's by now was just found cold.
        let endpoint = flow.endpoint;
        let partner = endpoint.and_then(|it| connections.partner(it, now));
        let signalled = endpoint.and_then(|it| connections.endpoint(it)?.signalled);
        let passed = partner.and_then(|(it, _)| connections.endpoint(it)?.cnp_passed);
        let would_have_been = (dry && flow.dry_run.cnps > 0).then_some(flow.dry_run.last);
        let check = FlowCheck {
            ipv6: key.key.is_ipv6(),
            pairing,
            signalled: signalled.max(would_have_been),
            passed,
            trusted: flow.trusted,
            ingress: flow.ingress,
        };
        Ok((key, endpoint, check))
    }

    /// Selects the caps to charge: those of the dry-run caps if `dry`, else those of CNPs that leave.
    const fn caps_to_charge(&mut self, dry: bool) -> &mut CnpCaps {
        if dry {
            &mut self.dry_run_caps
        } else {
            &mut self.caps
        }
    }

    /// Sends a CNP that has passed the checks, if the caps of its egress port allow it, and logs it. A dry run ends before it is sent.
    fn charge_and_hand_over(
        &mut self,
        (key, index, dry): (&QueueFlow, u32, bool),
        (sender_qpn, evidence): (Qpn, Evidence),
        check: &FlowCheck,
        cause: &Cause<'_>,
        out: &mut impl CnpSink,
    ) -> Result<(), Suppressed> {
        let port = out.leaves_by(key.key.src(), check.ingress)?;
        self.caps_to_charge(dry)
            .spend(port, check.ipv6, cause.now)?;
        let request = CnpRequest {
            flow: key.key,
            sender_qpn,
            evidence,
            ingress: check.ingress,
            egress: key.egress,
            priority: key.priority,
        };
        if dry {
            self.log(index, (sender_qpn, evidence), cause, Outcome::WouldSend);
            return Ok(());
        }
        out.hand_over(request)
            .inspect_err(|_| self.caps.refund(port, check.ipv6))?;
        let hosts = &mut self.tracker.hosts;
        hosts.record_cnp_sent(&key.key, cause.now, &self.status.hosts);
        let known = (sender_qpn, evidence);
        self.tracker.count_reported_cnp(&key.key, known);
        self.log(index, (sender_qpn, evidence), cause, Outcome::Sent);
        Ok(())
    }

    /// Signals up to `most` of the queue pairs that may be the sender's, each no sooner than the decision's spacing and
    /// [`ControlCore::all_qps_spacing`] allow. Returns the number; CNPs that left before one was refused count.
    fn signal_all_qps(
        &mut self,
        flow: (&QueueFlow, u32, bool),
        endpoint: Option<EndpointId>,
        check: &FlowCheck,
        cause: &Cause<'_>,
        most: usize,
        out: &mut impl CnpSink,
    ) -> Result<usize, Suppressed> {
        let hosts = (flow.0.key.src(), flow.0.key.dst());
        if self.all_signalled.contains(&hosts) {
            self.back_off(flow.1, Suppressed::Spacing, cause.now);
            return Err(Suppressed::Spacing);
        }
        let all = endpoint.map(|endpoint| self.tracker.connections.candidates(endpoint));
        let spacing = cause.decision.spacing.max(self.all_qps_spacing);
        let (mut signalled, mut lately, mut refused) = (0, 0, Suppressed::Unpaired);
        for other in all.unwrap_or_default() {
            if signalled >= most {
                break;
            }
            let since = |time: Option<Nanos>| time.map_or(u64::MAX, |at| cause.now.since(at).0);
            let (Some(named), Some(state)) = (
                self.tracker.connections.key(other),
                self.tracker.connections.endpoint(other),
            ) else {
                continue;
            };
            if since(state.signalled_as_candidate) < spacing.0 {
                (lately, refused) = (lately + 1, Suppressed::Spacing);
                continue;
            }
            let unnamed = (named.dest_qp(), Evidence::None);
            match self.charge_and_hand_over(flow, unnamed, check, cause, out) {
                Ok(()) => signalled += 1,
                Err(reason) => {
                    refused = reason;
                    break;
                }
            }
            if let Some(state) = self.tracker.connections.endpoint_mut(other) {
                state.signalled_as_candidate = Some(cause.now);
            }
        }
        self.refusals = self.refusals.saturating_sub(lately);
        if signalled < most && matches!(refused, Suppressed::Unpaired | Suppressed::Spacing) {
            // A pair of hosts beyond the capacity is not remembered: its next flow in this round goes through the candidates again.
            let _ = self.all_signalled.try_push(hosts);
        }
        if signalled == 0 {
            Err(refused)
        } else {
            Ok(signalled)
        }
    }

    /// Adapts `all_qps_spacing`, the spacing of CNPs to unknown queue pairs: doubled if a round's CNPs were not enough for all queue pairs of all
    /// senders, so that the lightest are signalled before the heaviest are signalled again; else shortened by an eighth.
    pub(super) fn adapt_all_qps_spacing(&mut self, too_many: bool) {
        let next = if too_many {
            self.all_qps_spacing.0.saturating_mul(2)
        } else {
            self.all_qps_spacing.0 / 8 * 7
        };
        self.all_qps_spacing = Nanos(next)
            .min(MAX_ALL_QPS_SPACING)
            .max(self.tracker.settings.min_cnp_interval);
    }
}

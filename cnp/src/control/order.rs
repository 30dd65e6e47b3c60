//! Orders one CNP: the queue pair it names, the checks it must pass, and the records made of it.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use crate::key::{Qpn, QueueFlow};
use crate::log::{Entry, Outcome};
use crate::pair::Evidence;
use crate::pair::connections::EndpointId;
use crate::plan::{Candidate, CnpOrder, Outlet, Planner, Suppressed, Unpaired};
use crate::policy::{Decision, QueueContext};

/// Cause of CNPs: the decision (a policy's or a mark's, with its spacing), the queue's context, and the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cause<'a> {
    pub(super) decision: Decision,
    pub(super) context: &'a QueueContext,
    pub(super) now: Nanos,
}

impl ControlCore {
    /// Signals the sender of a flow with at most `most` CNPs: one, unless all of its queue pairs are signalled. Returns the number sent, or that
    /// would have been: a `dry` run makes every check and sends nothing.
    pub(super) fn order(
        &mut self,
        (bytes, index): (u64, u32),
        dry: bool,
        cause: &Cause<'_>,
        most: usize,
        out: &mut impl Outlet,
    ) -> Result<usize, Suppressed> {
        let now = cause.now;
        // The pairing at this moment: records that may demote it have been taken in above.
        let pairing = self.tracker.refresh_pairing(index, now);
        let (Some(key), Some(flow)) =
            (self.tracker.flows.key(index), self.tracker.flows.get(index))
        else {
            return Err(Suppressed::Cold);
        };
        if !self.tracker.settings.hosts.admit(&key.key) {
            return Err(Suppressed::HostDenied);
        }
        let endpoint = flow
            .endpoint
            .filter(|endpoint| self.tracker.connections.key(*endpoint) == Some(key.key));
        let would = flow.would;
        let would = (dry && would.cnps > 0).then_some(would.last);
        let partner = endpoint.and_then(|endpoint| self.tracker.connections.partner(endpoint, now));
        let candidate = Candidate {
            ipv6: key.key.is_ipv6(),
            pairing,
            signalled: endpoint
                .and_then(|endpoint| self.tracker.connections.endpoint(endpoint)?.signalled)
                .max(would),
            passed: partner
                .and_then(|(partner, _)| self.tracker.connections.endpoint(partner)?.cnp_passed),
            trusted: flow.trusted,
            ingress: flow.ingress,
        };
        let settings = &self.tracker.settings;
        let permitted = Planner::permit(settings, &candidate, &cause.decision, now);
        let signalled = match (permitted, settings.unpaired) {
            (Err(Suppressed::Unpaired), Unpaired::AllQps) => {
                self.order_all((&key, index, dry), endpoint, &candidate, cause, most, out)?
            }
            (permitted, _) => {
                self.send((&key, index, dry), permitted?, &candidate, cause, out)?;
                let endpoint = endpoint.filter(|_| !dry);
                if let Some(state) =
                    endpoint.and_then(|endpoint| self.tracker.connections.endpoint_mut(endpoint))
                {
                    state.signalled = Some(now);
                }
                1
            }
        };
        if dry {
            self.tracker.record_would_send(index, signalled, now);
            return Ok(signalled);
        }
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.cnps += signalled as u64 - 1;
        }
        self.open_episode(index, bytes, now);
        Ok(signalled)
    }

    /// Selects the caps to charge: those of the dry-run planner if `dry`, else those of CNPs that leave.
    const fn caps(&mut self, dry: bool) -> &mut Planner {
        if dry {
            &mut self.would
        } else {
            &mut self.planner
        }
    }

    /// Sends a CNP that the planner permits, if the caps of its egress port allow it, and logs it. A dry run ends before it is sent.
    fn send(
        &mut self,
        (key, index, dry): (&QueueFlow, u32, bool),
        (sender_qpn, evidence): (Qpn, Evidence),
        candidate: &Candidate,
        cause: &Cause<'_>,
        out: &mut impl Outlet,
    ) -> Result<(), Suppressed> {
        let port = out.leaves_by(key.key.src(), candidate.ingress)?;
        self.caps(dry).spend(port, candidate.ipv6, cause.now)?;
        let order = CnpOrder {
            flow: key.key,
            sender_qpn,
            evidence,
            ingress: candidate.ingress,
            egress: key.egress,
            priority: key.priority,
        };
        if dry {
            self.log(index, (sender_qpn, evidence), cause, Outcome::WouldSend);
            return Ok(());
        }
        out.send(order)
            .inspect_err(|_| self.planner.give_back(port, candidate.ipv6))?;
        let hosts = &mut self.tracker.hosts;
        hosts.record_cnp_sent(&key.key, cause.now, &self.status.hosts);
        self.log(index, (sender_qpn, evidence), cause, Outcome::Sent);
        Ok(())
    }

    /// Signals up to `most` of the queue pairs that may be the sender's, each no sooner than the decision's spacing and
    /// [`ControlCore::among`] allow. Returns the number; CNPs that left before one was refused count.
    fn order_all(
        &mut self,
        flow: (&QueueFlow, u32, bool),
        endpoint: Option<EndpointId>,
        candidate: &Candidate,
        cause: &Cause<'_>,
        most: usize,
        out: &mut impl Outlet,
    ) -> Result<usize, Suppressed> {
        let hosts = (flow.0.key.src(), flow.0.key.dst());
        if self.all_signalled.contains(&hosts) {
            self.park(flow.1, Suppressed::Spacing, cause.now);
            return Err(Suppressed::Spacing);
        }
        let all = endpoint.map(|endpoint| self.tracker.connections.candidates(endpoint));
        let spacing = cause.decision.spacing.max(self.among);
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
            if since(state.signalled_among) < spacing.0 {
                (lately, refused) = (lately + 1, Suppressed::Spacing);
                continue;
            }
            let unnamed = (named.dest_qp(), Evidence::None);
            match self.send(flow, unnamed, candidate, cause, out) {
                Ok(()) => signalled += 1,
                Err(reason) => {
                    refused = reason;
                    break;
                }
            }
            if let Some(state) = self.tracker.connections.endpoint_mut(other) {
                state.signalled_among = Some(cause.now);
            }
        }
        self.refusals = self.refusals.saturating_sub(lately);
        if signalled < most && matches!(refused, Suppressed::Unpaired | Suppressed::Spacing) {
            // With many such hosts those that find no room are looked at once more each.
            let _ = self.all_signalled.try_push(hosts);
        }
        if signalled == 0 {
            Err(refused)
        } else {
            Ok(signalled)
        }
    }

    /// Logs the outcome for a queue pair: a CNP and its cause, or a refusal and its reason.
    pub(super) fn log(
        &self,
        index: u32,
        (sender_qpn, evidence): (Qpn, Evidence),
        cause: &Cause<'_>,
        outcome: Outcome,
    ) {
        let (Some(key), Some(flow)) =
            (self.tracker.flows.key(index), self.tracker.flows.get(index))
        else {
            return;
        };
        let context = cause.context;
        let (log, cnps) = match outcome {
            Outcome::Sent => (&self.status.log, flow.cnps + 1),
            Outcome::WouldSend => (&self.status.log, flow.would.cnps + 1),
            Outcome::Refused(_) => (&self.status.refusals, flow.cnps),
        };
        log.record(&Entry {
            time: cause.now,
            flow: key,
            sender_qpn,
            evidence,
            reason: cause.decision.reason,
            depth: context.depth,
            zone: context.reading.zone,
            trend: context.reading.trend,
            cnps,
            outcome,
        });
    }
}

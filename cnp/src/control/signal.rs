//! A CNP to the sender of one flow: the queue pair it names, the checks it must pass, and the records made of it.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use crate::admission::{CnpCaps, CnpRequest, CnpSink, FlowCheck, Suppressed};
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

impl ControlCore {
    /// Signals the sender of a flow with one CNP. A `dry` run makes every check and sends nothing.
    pub(super) fn signal_sender(
        &mut self,
        index: u32,
        dry: bool,
        cause: &Cause<'_>,
        out: &mut impl CnpSink,
    ) -> Result<(), Suppressed> {
        let (key, endpoint, check) = self.flow_check(index, dry, cause.now)?;
        let sender = CnpCaps::check(&self.tracker.settings, &check, &cause.decision, cause.now)?;
        self.charge_and_hand_over((&key, index, dry), sender, &check, cause, out)?;
        if dry {
            self.tracker.record_would_send(index, cause.now);
            return Ok(());
        }
        if let Some(state) = endpoint.and_then(|it| self.tracker.connections.endpoint_mut(it)) {
            state.signalled = Some(cause.now);
        }
        self.note_cnp(index, cause.now);
        Ok(())
    }

    /// Checks that the last CNP to a flow's sender is at least `spacing` ago. In a `dry` run, CNPs that would have been sent count too.
    pub(super) fn may_signal(
        &self,
        index: u32,
        dry: bool,
        now: Nanos,
        spacing: Nanos,
    ) -> Result<(), Suppressed> {
        let flow = self.tracker.flows.get(index).ok_or(Suppressed::Cold)?;
        let is_recent = |cnps: u64, last: Nanos| cnps > 0 && now.since(last) < spacing;
        if is_recent(flow.cnps, flow.last_cnp)
            || dry && is_recent(flow.dry_run.cnps, flow.dry_run.last)
        {
            return Err(Suppressed::Spacing);
        }
        Ok(())
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
        let (port, hop) = out.resolve(key.key.src(), check.ingress)?;
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
        out.hand_over(request, hop)
            .inspect_err(|_| self.caps.refund(port, check.ipv6))?;
        let hosts = &mut self.tracker.hosts;
        hosts.record_cnp_sent(&key.key, cause.now, &self.status.hosts);
        let known = (sender_qpn, evidence);
        self.tracker.count_reported_cnp(&key.key, known);
        self.log(index, (sender_qpn, evidence), cause, Outcome::Sent);
        Ok(())
    }
}

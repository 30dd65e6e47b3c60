//! One order: whose queue pair a CNP names, whether it may leave, and what is noted of it.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use crate::key::{Qpn, QueueFlow};
use crate::log::Entry;
use crate::pair::Evidence;
use crate::pair::connections::EndpointId;
use crate::plan::{Candidate, CnpOrder, Suppressed, Unpaired};
use crate::policy::{Decision, QueueContext};

impl ControlCore {
    pub(super) fn order(
        &mut self,
        index: u32,
        bytes: u64,
        decision: &Decision,
        now: Nanos,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) -> Result<(), Suppressed> {
        // The pairing of this very moment: whatever demoted it has been taken in above.
        let pairing = self.tracker.refresh_pairing(index, now);
        let (Some(key), Some(flow)) =
            (self.tracker.flows.key(index), self.tracker.flows.get(index))
        else {
            return Err(Suppressed::Cold);
        };
        let end = flow
            .end
            .filter(|end| self.tracker.connections.key(*end) == Some(key.key));
        let partner = end.and_then(|end| self.tracker.connections.partner(end, now));
        let candidate = Candidate {
            ipv6: key.key.is_ipv6(),
            pairing,
            signalled: end.and_then(|end| self.tracker.connections.end(end)?.signalled),
            passed: partner
                .and_then(|(partner, _)| self.tracker.connections.end(partner)?.cnp_passed),
            unresponsive: self.is_vain((key.egress, key.priority), index),
            trusted: flow.trusted,
            ingress: flow.ingress,
        };
        let admitted = self.planner.admit(&candidate, decision, now);
        match (admitted, self.unpaired) {
            (Err(Suppressed::Unpaired), Unpaired::None) => {
                self.tracker
                    .extend_notified(index, now + self.notified, now);
            }
            (Err(Suppressed::Unpaired), Unpaired::AllQps) => {
                let told = self.order_all(&key, end, &candidate, decision, now, out);
                if told.is_ok() {
                    self.open_episode((key.egress, key.priority), index, bytes, now);
                }
                return told;
            }
            _ => {}
        }
        self.send(&key, admitted?, &candidate, out)?;
        if let Some(state) = end.and_then(|end| self.tracker.connections.end_mut(end)) {
            state.signalled = Some(now);
        }
        self.open_episode((key.egress, key.priority), index, bytes, now);
        Ok(())
    }

    /// Sends a CNP that the planner admitted, or gives its share of the caps back.
    fn send(
        &mut self,
        key: &QueueFlow,
        (sender_qpn, evidence): (Qpn, Evidence),
        candidate: &Candidate,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) -> Result<(), Suppressed> {
        let order = CnpOrder {
            flow: key.key,
            sender_qpn,
            evidence,
            ingress: candidate.ingress,
            egress: key.egress,
            priority: key.priority,
        };
        out(order).inspect_err(|_| self.planner.give_back(candidate))?;
        let hosts = &mut self.tracker.hosts;
        hosts.record_cnp_sent(&key.key, &self.status.hosts);
        Ok(())
    }

    /// Tells every queue pair that may be the sender's, each no sooner than the decision's spacing allows.
    fn order_all(
        &mut self,
        key: &QueueFlow,
        end: Option<EndpointId>,
        candidate: &Candidate,
        decision: &Decision,
        now: Nanos,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) -> Result<(), Suppressed> {
        let all = end.map(|end| self.tracker.connections.candidates(end));
        let mut told = Err(Suppressed::Unpaired);
        for other in all.unwrap_or_default() {
            let since = |time: Option<Nanos>| time.map_or(u64::MAX, |at| now.since(at).0);
            let (Some(named), Some(state)) = (
                self.tracker.connections.key(other),
                self.tracker.connections.end(other),
            ) else {
                continue;
            };
            if since(state.signalled_among) < decision.spacing.0 {
                told = told.or(Err(Suppressed::Spacing));
                continue;
            }
            self.planner.spend(candidate, now)?;
            let unnamed = (named.dest_qp(), Evidence::None);
            self.send(key, unnamed, candidate, out)?;
            told = Ok(());
            if let Some(state) = self.tracker.connections.end_mut(other) {
                state.signalled_among = Some(now);
            }
        }
        told
    }

    /// Notes why a flow was just signalled.
    pub(super) fn log(&self, index: u32, context: &QueueContext, decision: &Decision, now: Nanos) {
        let (Some(key), Some(flow)) =
            (self.tracker.flows.key(index), self.tracker.flows.get(index))
        else {
            return;
        };
        self.status.log.record(&Entry {
            time: now,
            flow: key,
            sender_qpn: flow.sender,
            evidence: flow.evidence,
            reason: decision.reason,
            depth: context.depth,
            zone: context.reading.zone,
            trend: context.reading.trend,
            cnps: flow.cnps,
        });
    }
}

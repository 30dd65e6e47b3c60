//! CNPs to the senders of flows: their cost, their effect, and the records kept of them.

use npcc_pipeline::units::Nanos;

use super::FlowTracker;
use crate::action::Action;
use crate::admission::Suppressed;
use crate::control::settings::EcnMode;
use crate::flow_cache::SlotControl;
use crate::responsiveness::{Outcome, Responsiveness};
use npcc_roce::key::FlowKey;

/// Time after which a refusal for the same reason is logged again.
const AGAIN: Nanos = Nanos::from_millis(10);
impl FlowTracker {
    /// Time from a CNP to a flow's sender to its effect.
    pub(crate) fn feedback(&self, index: u32) -> Nanos {
        let default = self.settings.feedback;
        let flow = self.flows.get(index);
        flow.map_or(default, |flow| flow.dcqcn.feedback(default))
    }

    /// Action on a decision to signal a flow's sender.
    pub(crate) fn action(&self, index: u32) -> Action {
        let flow = self.flows.key(index);
        let found = flow.and_then(|flow| Some((self.queue_index(&flow)?, flow.key)));
        found.map_or(Action::Off, |(queue, key)| {
            self.settings.action_of_flow(queue, &key)
        })
    }

    /// Records a CNP that would have been sent to a flow's sender just now. Nothing else takes it for sent.
    pub(crate) fn record_would_send(&mut self, index: u32, now: Nanos) {
        if let Some(flow) = self.flows.get_mut(index) {
            flow.dry_run.cnps += 1;
            flow.dry_run.last = now;
            flow.refused = None;
        }
        self.flows.publish(index);
    }

    /// Returns true if the refusal of a flow is worth a log entry, and then records it: another reason than the last time, or the same after [`AGAIN`].
    /// A flow that was signalled a moment ago is not worth one.
    pub(crate) fn is_news(&mut self, index: u32, reason: Suppressed, now: Nanos) -> bool {
        let Some(flow) = self.flows.get_mut(index) else {
            return false;
        };
        let known = |(last, at): (Suppressed, Nanos)| last == reason && now.since(at) < AGAIN;
        if reason == Suppressed::Spacing || flow.refused.is_some_and(known) {
            return false;
        }
        flow.refused = Some((reason, now));
        self.flows.publish(index);
        true
    }

    /// Responsiveness class of a flow's host.
    pub(crate) fn responsiveness(&self, index: u32) -> Responsiveness {
        let (Some(key), Some(flow)) = (self.flows.flow_key(index), self.flows.get(index)) else {
            return Responsiveness::Unknown;
        };
        self.verdicts.responsiveness(&key, flow.host)
    }

    /// Keeps an entry for the host of a flow that may be signalled; returns its place.
    pub(crate) fn remember_host(&mut self, index: u32) -> u32 {
        let (Some(key), Some(flow)) = (self.flows.flow_key(index), self.flows.get_mut(index))
        else {
            return u32::MAX;
        };
        let is_listed = || self.settings.hosts.answering.holds(key.src());
        let view = &self.status.verdicts;
        flow.host = self.verdicts.remember(&key, flow.host, is_listed, view);
        flow.host
    }

    /// Records that the host of a flow is signalled, or would be if it were not unresponsive: it may be due for a trial.
    pub(crate) fn note_signalled(&mut self, index: u32, now: Nanos) {
        let place = self.remember_host(index);
        if self.verdicts.note_signalled(place, now) {
            self.due_trial = Some(index);
        }
    }

    /// Takes the outcome of a trial of a flow's host, in which the flow had this many CNPs: it earns none before it has paid for these.
    pub(crate) fn end_trial(
        &mut self,
        (index, key): (u32, &FlowKey),
        outcome: Outcome,
        cnps: u64,
        now: Nanos,
    ) {
        self.verdicts
            .learn(key, outcome, now, &self.status.verdicts);
        // The CNPs of this trial made the host due for another.
        self.due_trial = None;
        if self.flows.flow_key(index).as_ref() == Some(key) {
            self.owe_for_cnps(index, cnps);
        }
    }

    /// Sets if next to nothing of a queue goes to far receivers.
    pub(crate) fn set_near_only(&mut self, queue: usize, near_only: bool) {
        if let Some(known) = self.near_only.get_mut(queue) {
            *known = near_only;
        }
    }

    /// Returns true if a flow is left to ECN: its receiver is near, as are those of nearly all of its queue.
    pub(crate) fn is_left_to_ecn(&self, index: u32) -> bool {
        let queue = self.queue_of_flow(index);
        let near_only = queue.and_then(|queue| self.near_only.get(queue));
        let flow = self.flows.get(index);
        flow.is_some_and(|flow| flow.gated) && near_only == Some(&true)
    }

    /// Lets the flow's host fail trials until it is unresponsive.
    #[cfg(test)]
    pub(crate) fn doubt(&mut self, index: u32, now: Nanos) {
        self.note_signalled(index, now);
        let key = self.flows.flow_key(index).unwrap();
        while !self.responsiveness(index).is_unresponsive() {
            self.end_trial((index, &key), Outcome::Failed, 0, now);
        }
    }

    pub(super) fn record_cnp_seen(&mut self, index: u32, now: Nanos) {
        if let Some(flow) = self.flows.get_mut(index) {
            let rate = flow.dcqcn.predicted();
            flow.dcqcn.record_cnp_sent(rate, now);
        }
    }

    /// Writes a flow's control word: whether strikes on it can be owed to its sender, and from which byte on.
    pub(crate) fn write_control(&self, index: u32) {
        let (Some(flow), Some(key)) = (self.flows.get(index), self.flows.flow_key(index)) else {
            return;
        };
        let paired = self.settings.believes(flow.evidence);
        let may_owe = self.settings.ecn == EcnMode::Divert
            && paired
            && flow.trusted
            && !self.is_left_to_ecn(index)
            && self.settings.hosts.admit(&key)
            && self.action(index) == Action::Send;
        let from = flow.slot_bytes + flow.bytes_at_cnp + self.earned(index);
        let control = SlotControl {
            paired,
            owes: may_owe && !self.responsiveness(index).is_unresponsive(),
            returned: flow.returned,
            owes_from: from.saturating_sub(flow.bytes),
        };
        if let Some(reader) = self.readers.get(flow.reader) {
            reader.set_control(flow.slot, control);
        }
    }
}

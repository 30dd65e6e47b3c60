//! CNPs to the senders of flows: their cost, their effect, and the records kept of them.

use npcc_pipeline::units::Nanos;

use super::FlowTracker;
use crate::action::Action;
use crate::admission::Suppressed;
use crate::control::settings::EcnMode;
use crate::flow_cache::SlotControl;
use crate::host_response::Responsiveness;
use crate::response::{Outcome, ResponseConfig};

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

    /// Records CNPs that would have been sent to a flow's sender just now. Nothing else takes them for sent.
    pub(crate) fn record_would_send(&mut self, index: u32, cnps: usize, now: Nanos) {
        if let Some(flow) = self.flows.get_mut(index) {
            flow.dry_run.cnps += cnps as u64;
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
        self.responses.responsiveness(&key, flow.host)
    }

    /// Adds a contributor's bytes to those of its host; returns the host's class.
    pub(crate) fn add_to_host(&mut self, index: u32, bytes: u64, now: Nanos) -> Responsiveness {
        self.remember_host(index);
        let host = self.flows.get(index).map_or(u32::MAX, |flow| flow.host);
        self.responses.add(host, bytes, now)
    }

    /// Bytes that all contributors of a flow's host put into their queues, in 65,536ths of the flow's own `bytes`. The host may let the flow alone send
    /// as much, once the others stop, and so hide a cut.
    pub(crate) fn hidden_ratio(&self, index: u32, bytes: u64, now: Nanos) -> u32 {
        let host = self.flows.get(index).map_or(u32::MAX, |flow| flow.host);
        self.responses.hidden_ratio(host, bytes, now)
    }

    /// Share of its rate that a CNP at this moment costs a flow, in 65,536ths, with a card of the kind that its host showed to have.
    pub(crate) fn cut_share(&self, index: u32, now: Nanos) -> u32 {
        let (Some(key), Some(flow)) = (self.flows.flow_key(index), self.flows.get(index)) else {
            return 0;
        };
        let cuts = flow.dcqcn.points.cuts(now);
        cuts.get(self.responses.kind(&key, flow.host))
            .copied()
            .unwrap_or(0)
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

    /// Times over which a flow's response is measured.
    pub(crate) fn response_config(&self, index: u32) -> ResponseConfig {
        ResponseConfig {
            feedback: self.feedback(index),
            window: self.window,
        }
    }

    /// Keeps an entry for the host of a flow that may be signalled.
    pub(crate) fn remember_host(&mut self, index: u32) {
        let Some(key) = self.flows.flow_key(index) else {
            return;
        };
        if let Some(flow) = self.flows.get_mut(index) {
            let prior = || self.settings.hosts.prior_of(key.src());
            let view = &self.status.responses;
            flow.host = self.responses.remember(&key, flow.host, prior, view);
        }
    }

    /// Takes the outcome of a flow's measurement after its CNPs, or the reason why there is none.
    pub(crate) fn learn_response(&mut self, index: u32, outcome: &Outcome, now: Nanos) {
        let (Some(key), Some(flow)) = (self.flows.flow_key(index), self.flows.get(index)) else {
            return;
        };
        let view = &self.status.responses;
        self.responses.learn(&key, flow.host, outcome, now, view);
        self.write_control(index);
    }

    /// Measures the flow's host until it is doubted.
    #[cfg(test)]
    pub(crate) fn doubt(&mut self, index: u32, now: Nanos) {
        self.remember_host(index);
        let mut measured = 0;
        while !self.responsiveness(index).is_unresponsive() {
            measured += 1;
            assert!(measured < 1_000);
            let at = Nanos(now.0 + measured * 200_000);
            self.learn_response(index, &Outcome::of_half(false), at);
        }
    }

    /// Time over which contributions are counted.
    pub(crate) const fn window(&self) -> Nanos {
        self.window
    }

    pub(super) fn record_cnp_seen(&mut self, index: u32, now: Nanos) {
        let share = self.cut_share(index, now);
        if let Some(flow) = self.flows.get_mut(index) {
            let rate = flow.dcqcn.predicted();
            flow.dcqcn.record_cnp_sent(rate, share, now);
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
            owes: may_owe && self.responses.may_be_owed(&key, flow.host),
            responds: !self
                .responses
                .responsiveness(&key, flow.host)
                .is_unresponsive(),
            returned: flow.returned,
            owes_from: from.saturating_sub(flow.bytes),
        };
        if let Some(reader) = self.readers.get(flow.reader) {
            reader.set_control(flow.slot, control);
        }
    }
}

//! Who was signalled when, and until when that counts.

use npcc_pipeline::units::Nanos;

use super::FlowTracker;
use crate::action::Action;
use crate::pair::Evidence;
use crate::plan::Suppressed;

/// A refusal for the same reason is logged again after this time.
const AGAIN: Nanos = Nanos::from_millis(10);

impl FlowTracker {
    /// Time from a CNP to a flow's sender to its effect.
    pub(crate) fn feedback(&self, index: u32) -> Nanos {
        let default = self.response.feedback;
        let flow = self.flows.get(index);
        flow.map_or(default, |flow| flow.dcqcn.feedback(default))
    }

    /// What becomes of a decision to tell a flow's sender.
    pub(crate) fn action(&self, index: u32) -> Action {
        let flow = self.flows.key(index);
        let found = flow.and_then(|flow| Some((self.queue_index(&flow)?, flow.key)));
        found.map_or(Action::Off, |(queue, key)| {
            self.actions.of_flow(queue, &key)
        })
    }

    /// A flow's sender would have been sent so many CNPs just now. Nothing else believes that they were.
    pub(crate) fn record_would_send(&mut self, index: u32, cnps: usize, now: Nanos) {
        if let Some(flow) = self.flows.get_mut(index) {
            flow.would.cnps += cnps as u64;
            flow.would.last = now;
            flow.refused = None;
        }
        self.flows.publish(index);
    }

    /// Whether the refusal of a flow is worth an entry in the log: another reason than the last time, or the same after [`AGAIN`].
    /// Notes it if so. That a flow was signalled a moment ago is no news.
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

    pub(super) fn record_cnp_seen(&mut self, index: u32, now: Nanos) {
        if let Some(flow) = self.flows.get_mut(index) {
            let rate = flow.dcqcn.predicted();
            flow.dcqcn.record_cnp_sent(rate, now);
        }
    }

    /// Marks a flow as signalled at least until then.
    pub(crate) fn extend_notified(&mut self, index: u32, until: Nanos, now: Nanos) {
        let known = self.flows.get(index).map(|flow| flow.notified_until);
        self.set_notified(index, until.max(known.unwrap_or(until)), now);
    }

    /// Marks a flow as signalled until then, and no longer; where nothing is sent, ECN alone marks it.
    pub(crate) fn set_notified(&mut self, index: u32, until: Nanos, now: Nanos) {
        if !self.ecn.minds_notified() || until <= now || self.action(index) < Action::Send {
            return;
        }
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        flow.notified_until = until;
        let (until, evidence) = (flow.notified_until, flow.evidence);
        self.write_control(index, until, evidence);
    }

    /// Writes a flow's control word anew.
    pub(super) fn write_word(&self, index: u32) {
        if let Some(flow) = self.flows.get(index) {
            self.write_control(index, flow.notified_until, flow.evidence);
        }
    }

    pub(super) fn write_control(&self, index: u32, until: Nanos, evidence: Evidence) {
        let Some(flow) = self.flows.get(index) else {
            return;
        };
        if let Some(reader) = self.readers.get(flow.reader) {
            reader.tell(
                flow.slot,
                until,
                evidence >= self.floor && evidence != Evidence::None,
            );
        }
    }
}

//! Who was signalled when, and until when that counts.

use npcc_pipeline::units::Nanos;

use super::FlowTracker;
use crate::pair::Evidence;

impl FlowTracker {
    /// Time from a CNP to a flow's sender to its effect.
    pub(crate) fn feedback(&self, index: u32) -> Nanos {
        let default = self.response.feedback;
        let flow = self.flows.get(index);
        flow.map_or(default, |flow| flow.dcqcn.feedback(default))
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

    /// Marks a flow as signalled until then, and no longer.
    pub(crate) fn set_notified(&mut self, index: u32, until: Nanos, now: Nanos) {
        if !self.ecn.minds_notified() || until <= now {
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

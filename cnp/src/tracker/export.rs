//! Exports of the tracker: its gauges.

use npcc_pipeline::units::Nanos;

use super::FlowTracker;
use npcc_roce::pair::Evidence;

impl FlowTracker {
    /// Forgets old entries and publishes gauges. Bounded work.
    pub(crate) fn tidy(&mut self, now: Nanos) {
        self.connections.age(now);
        self.connections.export(now);
        self.show_peer();
        self.forget_unproven(now);
        let status = &self.status;
        status.flows.set(self.flows.len() as u64);
        status.ends.set(self.connections.len() as u64);
        status.ends_refused.set(self.connections.refused());
        status.ends_displaced.set(self.connections.displaced());
        status.cm.displaced.publish(self.connections.cm_displaced());
        status
            .cm
            .contradicted
            .publish(self.connections.contradicted());
        for (evidence, count) in Evidence::ALL.into_iter().zip(self.paired) {
            status.paired(evidence).set(count);
        }
    }
}

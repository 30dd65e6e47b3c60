//! Metrics that are declared with their counters ([`counters!`](npcc_pipeline::counters!)), found by visiting the counts of a snapshot.

use std::fmt;

use npcc_api::model::{NpccQueue, Port, Snapshot, Worker};
use npcc_pipeline::counters::{self, Metric, Show, Visit};
use prometheus_client::encoding::DescriptorEncoder;

use super::family::{Head, Kind, Samples};
use super::queues::digit;
use super::scrape::seconds;

/// Labels of a sample.
type Labels = Vec<(&'static str, String)>;

/// Family that counters declare.
#[derive(Debug)]
struct Family {
    head: Head,
    seconds: bool,
    samples: Vec<(Labels, u64)>,
}

/// Registry of all families that counters declare.
#[derive(Debug, Default)]
pub(super) struct Declared {
    labels: Labels,
    families: Vec<Family>,
}

impl Declared {
    /// Builds the registry with the samples of a snapshot. A family is there even if it has no sample now.
    pub(super) fn of(snapshot: &Snapshot) -> Declared {
        let mut declared = Declared::default();
        let mut one_of_each = Snapshot {
            ports: vec![Port::default()],
            workers: vec![Worker::default()],
            ..Snapshot::default()
        };
        one_of_each.npcc.queues = vec![NpccQueue::default()];
        declared.visit(&one_of_each);
        for family in &mut declared.families {
            family.samples.clear();
        }
        declared.visit(snapshot);
        declared
    }

    fn visit(&mut self, all: &Snapshot) {
        for port in &all.ports {
            self.under(&[("port", &port.name)], |to| {
                port.counts.show(to);
                port.device_drops.show(to);
            });
        }
        for worker in &all.workers {
            self.under(&[("core", &worker.core.to_string())], |to| {
                worker.counts.show(to);
                worker.bursts.show(to);
                worker.handoff.show(to);
                worker.capture.show(to);
            });
        }
        for queue in &all.npcc.queues {
            let place = [("port", &*queue.port), ("priority", digit(queue.priority))];
            self.under(&place, |to| queue.counts.show(to));
        }
        all.npcc.counts.show(self);
        all.npcc.caches.show(self);
        all.npcc.control.show(self);
        all.punt.workers.show(self);
        all.punt.host.show(self);
    }

    /// Visits counters under these labels.
    fn under(&mut self, labels: &[(&'static str, &str)], visit: impl FnOnce(&mut Declared)) {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        self.labels = labels.collect();
        visit(self);
        self.labels.clear();
    }

    /// Yields names, help texts and types.
    #[cfg(test)]
    pub(super) fn heads(&self) -> impl Iterator<Item = Head> {
        self.families.iter().map(|family| family.head)
    }

    /// Writes all families with their samples.
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.families.iter().try_for_each(|family| {
            let mut to = Samples::of(&family.head, encoder)?;
            family.samples.iter().try_for_each(|(labels, value)| {
                let labels: Vec<_> = labels
                    .iter()
                    .map(|(name, value)| (*name, &**value))
                    .collect();
                match (family.head.kind, family.seconds) {
                    (Kind::Counter, false) => to.count(&labels, *value),
                    (Kind::Counter, true) => to.count_seconds(&labels, seconds(*value)),
                    (_, false) => to.gauge(&labels, *value),
                    (_, true) => to.real(&labels, seconds(*value)),
                }
            })
        })
    }
}

impl Visit for Declared {
    fn count(&mut self, how: &Show, kind: counters::Kind, value: u64) {
        let [Some(Metric { name, help }), _] = how.metrics else {
            return;
        };
        let known = self
            .families
            .iter()
            .position(|family| family.head.name == name);
        let place = known.unwrap_or_else(|| {
            let kind = match kind {
                counters::Kind::Counter => Kind::Counter,
                counters::Kind::Gauge => Kind::Gauge,
            };
            self.families.push(Family {
                head: Head { name, help, kind },
                seconds: how.seconds,
                samples: vec![],
            });
            self.families.len() - 1
        });
        if let Some(family) = self.families.get_mut(place) {
            let tag = how.tag.map(|(label, value)| (label, value.to_owned()));
            let labels = self.labels.iter().cloned().chain(tag).collect();
            family.samples.push((labels, value));
            if family.head.help.is_empty() {
                family.head.help = help;
            }
        }
    }

    fn within(
        &mut self,
        label: Option<(&'static str, &'static str)>,
        inside: &mut dyn FnMut(&mut dyn Visit),
    ) {
        let outside = self.labels.len();
        self.labels
            .extend(label.map(|(name, value)| (name, value.to_owned())));
        inside(self);
        self.labels.truncate(outside);
    }
}

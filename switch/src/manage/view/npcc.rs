//! NPCC's part of a snapshot.

use std::collections::BTreeMap;

use npcc_api::model::{Health, Npcc, NpccQueue, Percentiles, Setting};
use npcc_cnp::policy::{Parameter, PolicyName};
use npcc_cnp::status::{NpccCount, QueueStatus};
use npcc_pipeline::counters::{self, Cell, Path};
use npcc_pipeline::num::real;
use npcc_pipeline::units::PortId;

use super::View;
use npcc_engine::worker::timings::TimingKind;

impl View {
    /// Returns NPCC's part, with the counts of the previous processes.
    pub(super) fn npcc(&self) -> Npcc {
        let mut npcc = self.npcc_of_this_process();
        let ports = self.ports.iter().map(|port| port.name.as_str());
        npcc.each(Path::ROOT.then("npcc"), ports, &mut self.settles());
        npcc.health.data_bytes = npcc.counts.data_bytes;
        npcc
    }

    fn npcc_of_this_process(&self) -> Npcc {
        let npcc = &self.npcc;
        let mut counts = counters::sum([&npcc.counts]);
        counts.flows_refused += counts.rate_limited;
        let mut caches = counters::sum(self.workers.caches.iter().map(|cache| &cache.counters));
        caches.sample_drops += caches.cache_full;
        let queues: Vec<_> = npcc
            .queues()
            .iter()
            .map(|queue| self.npcc_queue(queue))
            .collect();
        let mut cnps_suppressed = Default::default();
        for queue in npcc.queues() {
            queue.suppressed.add_to(&mut cnps_suppressed);
        }
        Npcc {
            health: health(&counts),
            counts,
            caches,
            control: counters::sum([&*self.control]),
            action: npcc.action.get().name().to_owned(),
            cnps_sent: npcc.cnps_sent(),
            would_send: npcc.would_send(),
            cnps_suppressed,
            reaction_us: self.times(TimingKind::Shallow),
            reaction_hard_us: self.times(TimingKind::Hard),
            queues,
            uncounted_ports: self.by_port(|id| npcc.uncounted_bytes_by(id)),
            damaged_ports: self.by_port(|id| {
                let damaged = self.workers.caches.iter().map(|cache| cache.damaged_by(id));
                damaged.sum()
            }),
            message_drops_ports: self.by_port(|id| {
                let caches = self.workers.caches.iter();
                caches.map(|cache| cache.messages_lost_by(id)).sum()
            }),
        }
    }

    /// Returns a count by port, without those that are 0.
    fn by_port(&self, count: impl Fn(PortId) -> u64) -> BTreeMap<String, u64> {
        let ports = self.ports.iter().zip((0..).map(PortId));
        let counts = ports.map(|(port, id)| (port.name.clone(), count(id)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Returns the percentiles of a timing, over all workers.
    pub(super) fn times(&self, what: TimingKind) -> Percentiles {
        let mut timings = self.timings();
        timings.take_in();
        let times = timings.of(what);
        Percentiles {
            count: times.count,
            p50: micros(times.p50),
            p99: micros(times.p99),
            p999: micros(times.p999),
            max: micros(times.max),
        }
    }

    /// Returns the histogram of a timing over all workers: the count in each of these bins, and the sum in ns.
    pub(crate) fn spread(&self, what: TimingKind, bounds: &[u64]) -> (Vec<u64>, u64) {
        let mut timings = self.timings();
        timings.take_in();
        let (mut bins, mut sum) = timings.spread(what, bounds);
        let path = Path::ROOT.then("took").then(what.name());
        for (at, bin) in bins.iter_mut().enumerate() {
            // Bins are stored by their bounds: another version may have others.
            let bound = bounds
                .get(at)
                .map_or(usize::MAX, |ns| usize::try_from(*ns).unwrap_or(usize::MAX));
            self.settles()(path.at(bound), bin);
        }
        self.settles()(path, &mut sum);
        (bins, sum)
    }

    fn npcc_queue(&self, queue: &QueueStatus) -> NpccQueue {
        let now = if queue.fell_back() {
            PolicyName::Npcc
        } else {
            queue.policy_now()
        };
        NpccQueue {
            port: self.port_name(queue.port),
            priority: queue.priority.get(),
            zone: queue.zone().name().to_owned(),
            trend: queue.trend().name().to_owned(),
            action: queue.action.get().name().to_owned(),
            policy: queue.policy_now().name().to_owned(),
            policy_now: now.name().to_owned(),
            policy_why: queue
                .fell_back()
                .then(|| "more flows than can be measured: their rates are not known".to_owned()),
            parameters: queue.parameters().iter().map(setting).collect(),
            counts: counters::sum([&queue.counts]),
        }
    }
}

fn setting(parameter: &Parameter) -> Setting {
    let (min, max) = parameter.range;
    Setting {
        name: parameter.name.to_owned(),
        unit: parameter.unit.name().to_owned(),
        value: parameter.value,
        min,
        max,
    }
}

fn health(counts: &NpccCount) -> Health {
    let data = counts.data_bytes;
    let share = |bytes: u64| 100.0 * real(bytes) / real(data.max(1));
    let (cold, unpaired) = (counts.cold_bytes, counts.unpaired_bytes);
    Health {
        data_bytes: data,
        paired: share(data.saturating_sub(cold.saturating_add(unpaired))),
        unpaired: share(unpaired),
        cold: share(cold),
    }
}

fn micros(ns: u64) -> f64 {
    real(ns) / 1_000.0
}

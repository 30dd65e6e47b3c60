//! NPCC's part of a snapshot.

use std::collections::BTreeMap;

use npcc_cnp::detector::Zone;
use npcc_cnp::pair::Evidence;
use npcc_cnp::plan::Suppressed;
use npcc_cnp::policy::{Parameter, PolicyName, Reason};
use npcc_cnp::status::{NpccStatus, QueueStatus, Row};

use npcc_cnp::uncounted::{Uncounted, UncountedStatus};
use npcc_pipeline::counters::Path;
use npcc_pipeline::units::PortId;

use super::View;
use crate::report::model as report;
use crate::report::model::{Cm, Health, Npcc, NpccQueue, Percentiles, Seen, Setting};
use crate::worker::timings::What;

impl View {
    /// NPCC's part, with what the processes before counted.
    pub(super) fn npcc(&self) -> Npcc {
        let mut npcc = self.npcc_of_this_process();
        let ports = self.ports.iter().map(|port| port.name.as_str());
        npcc.each(Path::ROOT.then("npcc"), ports, &mut self.settles());
        npcc
    }

    fn npcc_of_this_process(&self) -> Npcc {
        let caches = || self.caches.iter().map(|cache| &cache.counters);
        let named = |count: u64, name: &str| (count > 0).then(|| (name.to_owned(), count));
        Npcc {
            samples: caches().map(|cache| cache.samples.get()).sum(),
            sample_drops: caches()
                .map(|cache| cache.sample_drops.get() + cache.cache_full.get())
                .sum(),
            flows: self.npcc.flows.get(),
            cold_bytes: self.npcc.cold_bytes.get(),
            paired: Evidence::ALL
                .iter()
                .filter_map(|evidence| named(self.npcc.paired(*evidence).get(), evidence.name()))
                .collect(),
            action: self.npcc.action().name().to_owned(),
            cnps_sent: self.npcc.cnps_sent(),
            would_send: self.npcc.would_send(),
            cnps_suppressed: Suppressed::ALL
                .iter()
                .filter_map(|reason| named(self.npcc.cnps_suppressed(*reason), reason.name()))
                .collect(),
            reaction_us: self.times(What::Shallow),
            reaction_hard_us: self.times(What::Hard),
            ticks: self.npcc.ticks.get(),
            ticks_late: self.control.late.get(),
            ticks_early: self.control.hastened.get(),
            queues_deferred: self.npcc.queues_deferred.get(),
            flows_read: self.npcc.flows_read.get(),
            flows_weighed: self.npcc.flows_weighed.get(),
            flows_woken: self.npcc.flows_woken.get(),
            wakes_lost: self.npcc.wakes_lost.get(),
            queues: self
                .npcc
                .queues()
                .iter()
                .map(|queue| self.npcc_queue(queue))
                .collect(),
            cm: Cm {
                heard: self.npcc.cm.heard.get(),
                damaged: self.npcc.cm.damaged.get(),
                foreign: self.npcc.cm.foreign.get(),
                contradicted: self.npcc.cm.contradicted.get(),
            },
            seen: Seen {
                messages: caches().map(|cache| cache.messages.get()).sum(),
                message_drops: caches().map(|cache| cache.message_drops.get()).sum(),
                unsupported: caches().map(|cache| cache.unsupported.get()).sum(),
            },
            health: health(&self.npcc),
            cnps_passed: self.npcc.cnps_passed.get(),
            cnps_damaged: self.npcc.cnps_damaged.get(),
            flows_refused: self.npcc.flows_refused.get() + self.npcc.rate_limited.get(),
            untrusted: self.npcc.untrusted.get(),
            wrong_port: self.npcc.wrong_port.get(),
            uncounted: uncounted(&self.npcc.uncounted),
            uncounted_ports: self.uncounted_ports(),
        }
    }

    /// Wire bytes of contributors without an entry, by the port they came by.
    fn uncounted_ports(&self) -> BTreeMap<String, u64> {
        let ports = self.ports.iter().zip((0..).map(PortId));
        let bytes = |id| self.npcc.uncounted.bytes_by(id);
        let some = ports.filter(|(_, id)| bytes(*id) > 0);
        some.map(|(port, id)| (port.name.clone(), bytes(id)))
            .collect()
    }

    /// How long something took, over all workers.
    pub(super) fn times(&self, what: What) -> Percentiles {
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

    /// How long something took, over all workers: how many times in each of these bins, and the sum; in ns.
    pub(crate) fn spread(&self, what: What, bounds: &[u64]) -> (Vec<u64>, u64) {
        let mut timings = self.timings();
        timings.take_in();
        let (mut bins, mut sum) = timings.spread(what, bounds);
        let path = Path::ROOT.then("took").then(what.name());
        for (at, bin) in bins.iter_mut().enumerate() {
            // Bins are known by their bounds: another version may have others.
            let bound = bounds
                .get(at)
                .map_or(usize::MAX, |ns| usize::try_from(*ns).unwrap_or(usize::MAX));
            self.settles()(path.at(bound), bin);
        }
        self.settles()(path, &mut sum);
        (bins, sum)
    }

    fn npcc_queue(&self, queue: &QueueStatus) -> NpccQueue {
        let cells = Zone::ALL
            .iter()
            .flat_map(|zone| Row::ALL.iter().map(move |row| (zone, row)));
        let [shallow, deep, hard] = queue.thresholds();
        NpccQueue {
            shallow,
            deep,
            hard,
            port: self.port_name(queue.port),
            priority: queue.priority.get(),
            depth: queue.depth.get(),
            peak: queue.peak.get(),
            zone: queue.zone().name().to_owned(),
            trend: queue.trend().name().to_owned(),
            decisions: cells
                .map(|(zone, row)| {
                    (
                        format!("{}-{}", zone.name(), row.name()),
                        queue.cell(*zone, *row).get(),
                    )
                })
                .filter(|(_, ticks)| *ticks > 0)
                .collect(),
            action: queue.action().name().to_owned(),
            cnps: queue.cnps.get(),
            would_send: queue.would_send.get(),
            policy: queue.policy_now().name().to_owned(),
            policy_now: if queue.fell_back() {
                PolicyName::Npcc
            } else {
                queue.policy_now()
            }
            .name()
            .to_owned(),
            policy_why: queue
                .fell_back()
                .then(|| "more flows than can be measured: their rates are not known".to_owned()),
            policy_fallbacks: queue.fallbacks.get(),
            parameters: queue.parameters().iter().map(setting).collect(),
            contributors: queue.contributors.get(),
            reasons: counted(Reason::ALL.map(|one| (one.name(), queue.reason(one).get()))),
            suppressed: counted(
                Suppressed::ALL
                    .iter()
                    .map(|one| (one.name(), queue.suppressed(*one).get())),
            ),
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

/// Counts that ever counted anything.
fn counted(all: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(name, count)| (name.to_owned(), count)).collect()
}

fn uncounted(status: &UncountedStatus) -> BTreeMap<String, report::Uncounted> {
    let of = |why: Uncounted| report::Uncounted {
        records: status.records(why).get(),
        bytes: status.bytes(why).get(),
    };
    let all = Uncounted::ALL.map(|why| (why.name().to_owned(), of(why)));
    all.into_iter().filter(|(_, one)| one.records > 0).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "shares, shown in tenths of a percent"
)]
fn health(status: &NpccStatus) -> Health {
    let data = status.data_bytes.get();
    let share = |bytes: u64| 100.0 * bytes as f64 / data.max(1) as f64;
    let (cold, unpaired) = (status.cold_bytes.get(), status.unpaired_bytes.get());
    Health {
        data_bytes: data,
        paired: share(data.saturating_sub(cold.saturating_add(unpaired))),
        unpaired: share(unpaired),
        cold: share(cold),
    }
}

#[expect(clippy::cast_precision_loss, reason = "times far below 2^52 ns")]
fn micros(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

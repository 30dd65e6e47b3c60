//! The control core's loop: NPCC's tick, and nothing else on this core.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use npcc_cnp::control::ControlCore;
use npcc_pipeline::counters::{Counter, Counters};
use npcc_pipeline::units::{Nanos, PortId, Priority};

use crate::clock::Clock;
use crate::control_commands::Inbox;
use crate::idle::ControlBed;
use crate::inject::Injector;
use crate::reaction::FirstAnswer;

/// What the loop tells about itself.
#[derive(Debug, Default)]
pub struct ControlStats {
    /// Ticks that came late by more than half a tick.
    pub late: Counter,
}

/// The control core and all it owns.
#[derive(Debug)]
pub struct Control {
    /// NPCC.
    pub core: ControlCore,
    /// Its way out.
    pub injector: Injector,
    /// Which CNP answers which crossing.
    pub first: FirstAnswer,
    /// Each worker's counters: their depths.
    pub counters: Vec<Arc<Counters>>,
    /// Orders of operators.
    pub inbox: Inbox,
    /// Time.
    pub clock: Clock,
    /// What it tells.
    pub stats: Arc<ControlStats>,
    /// A worker polls the same core: sleep between ticks, or both would get the core by turns of milliseconds. A nanosecond
    /// of this clock in real ones.
    pub yields: Option<f64>,
    /// Where it sleeps while all workers do; none where they poll without pause.
    pub bed: Option<ControlBed>,
}

impl Control {
    /// Ticks until `stop`; `done` is asked between ticks and may end the loop too.
    pub fn run(mut self, stop: &AtomicBool, mut done: impl FnMut() -> bool) {
        let mut next = self.clock.now();
        while !stop.load(Ordering::Relaxed) && !done() {
            let now = self.clock.now();
            if now < next {
                match self.yields {
                    None => std::hint::spin_loop(),
                    Some(scale) => sleep(next.since(now), scale),
                }
                continue;
            }
            // A policy that looks more often than a tick shortens it.
            let period = self.core.period();
            if now.since(next).0 > period.0 / 2 {
                self.stats.late.add(1);
            }
            self.tick(now);
            // A tick that was missed is not made up for: two at once would see no time pass between them. The core says when:
            // sooner than a tick while a policy is urgent.
            next = (next + self.core.period()).max(now);
            if self.bed.as_mut().is_some_and(|bed| bed.rest(now)) {
                next = self.clock.now();
            }
        }
    }

    fn tick(&mut self, now: Nanos) {
        let Control {
            core,
            injector,
            first,
            counters,
            inbox,
            bed,
            ..
        } = self;
        inbox.obey(core, now, |style, priority| {
            injector.restyle(style, priority);
        });
        injector.refresh();
        let depth = |port: PortId, priority: Priority| depth(counters, port, priority);
        let mut sent = false;
        core.tick(now, depth, &mut |order| {
            let answers = first.of(&order, crossed(counters, order.egress, order.priority));
            sent = true;
            injector.send(&order, answers)
        });
        if let Some(bed) = bed.as_ref().filter(|_| sent) {
            bed.wake_workers();
        }
    }
}

/// Sleeps for a time of the switch's clock.
#[expect(clippy::cast_precision_loss, reason = "a tick is far below 2^52 ns")]
fn sleep(time: Nanos, scale: f64) {
    let real = Duration::try_from_secs_f64(time.0 as f64 * scale / 1e9);
    std::thread::sleep(real.unwrap_or(Duration::from_millis(1)));
}

/// When a queue last rose to `shallow` and to `hard`.
fn crossed(workers: &[Arc<Counters>], port: PortId, priority: Priority) -> [Nanos; 2] {
    let mut latest = [Nanos::ZERO; 2];
    for queue in workers
        .iter()
        .filter_map(|counters| counters.port(port.index())?.queues.get(priority.index()))
    {
        for (latest, gauge) in latest.iter_mut().zip(&queue.crossed) {
            *latest = (*latest).max(Nanos(gauge.get()));
        }
    }
    latest
}

/// Wire bytes waiting in a queue, over all workers.
fn depth(workers: &[Arc<Counters>], port: PortId, priority: Priority) -> u64 {
    let of = |counters: &Arc<Counters>| {
        counters
            .port(port.index())
            .and_then(|port| port.queues.get(priority.index()))
            .map_or(0, |queue| queue.depth.get())
    };
    workers.iter().map(of).sum()
}

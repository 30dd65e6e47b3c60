//! Loop of the control core: NPCC's ticks and the calls between them. [`ControlLoop::iterate`] is one iteration at a given time.

pub mod commands;
pub mod crossing_timing;
pub mod inject;
pub mod order;
pub mod pairs;
pub mod sources;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use npcc_cnp::admission::{CnpRequest, CnpSink, Suppressed};
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::queue_state::QueueState;
use npcc_pipeline::counters::{ControlStats, Counters};
use npcc_pipeline::num::real;
use npcc_pipeline::route::nexthop::Adjacency;
use npcc_pipeline::units::{Nanos, PortId, Priority};

use crate::clock::{Clock, Now};
use crate::control::commands::Inbox;
use crate::control::crossing_timing::AnsweredCrossings;
use crate::control::inject::{Injector, InjectorCommand};
use crate::sleep::ControlSleeper;

/// Alarms of the workers that a watched queue has just risen to `hard`; the loop polls them between two ticks.
#[derive(Debug)]
pub struct Alarms {
    /// Each worker's counters of each watched port.
    all: Vec<(Arc<Counters>, usize)>,
    /// Time of the latest alarm that was answered; `answered_at` is the time of the answer.
    last_alarm: Nanos,
    answered_at: Nanos,
}

impl Alarms {
    /// Watches these ports, whichever worker owns them.
    #[must_use]
    pub fn new(counters: &[Arc<Counters>], watched: u32) -> Alarms {
        let ports = (0..32).filter(|port| watched & 1 << port != 0);
        let of = |port| counters.iter().map(move |own| (Arc::clone(own), port));
        Alarms {
            all: ports.flat_map(of).collect(),
            last_alarm: Nanos::ZERO,
            answered_at: Nanos::ZERO,
        }
    }

    /// Returns true if a queue rose since the last answer, and that answer is at least an eighth of a tick ago.
    fn take_alarm(&mut self, now: Nanos, tick: Nanos) -> bool {
        let alarm =
            |(own, port): &(Arc<Counters>, usize)| own.port(*port).map(|port| port.alarm.get());
        let latest = self.all.iter().filter_map(alarm).max().unwrap_or(0);
        if latest <= self.last_alarm.0 || now.since(self.answered_at).0 < tick.0 / 8 {
            return false;
        }
        (self.last_alarm, self.answered_at) = (Nanos(latest), now);
        true
    }
}

/// Control core and all it owns.
#[derive(Debug)]
pub struct ControlLoop<C = Clock> {
    /// NPCC's state and decisions.
    pub core: ControlCore,
    /// Builder and sender of CNPs.
    pub injector: Injector,
    /// Rises of queues to `shallow` or `hard` for which a CNP was sent since: only the first CNP after each is timed.
    pub crossings: AnsweredCrossings,
    /// Each worker's counters, which hold the queue depths.
    pub counters: Vec<Arc<Counters>>,
    /// Alarms of the workers that a watched queue has just risen to `hard`.
    pub alarms: Alarms,
    /// Ring of the operators' commands.
    pub inbox: Inbox,
    /// Time source of the loop.
    pub clock: C,
    /// Statistics that it publishes.
    pub stats: Arc<ControlStats>,
    /// `Some` if a worker polls the same core: the loop then sleeps between its ticks, as otherwise the two threads would get the core in turns of
    /// milliseconds. The value converts the time to sleep: real ns per ns of `clock`. `None`: the loop has its core alone and polls.
    pub shared_core_scale: Option<f64>,
    /// Sleeper for the time in which all workers sleep; `None` if they poll without pause.
    pub sleeper: Option<ControlSleeper>,
    /// Time of the next call.
    pub next: Nanos,
}

/// Outcome of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The core was called.
    Called,
    /// The next call is not due before this time.
    Waits(Nanos),
}

impl<C: Now> ControlLoop<C> {
    /// Runs ticks until `stop`; `done` is called in each iteration and may end the loop too.
    pub fn run(mut self, stop: &AtomicBool, mut done: impl FnMut() -> bool) {
        self.next = self.clock.now();
        while !stop.load(Ordering::Relaxed) && !done() {
            let now = self.clock.now();
            match (self.iterate(now), self.shared_core_scale) {
                // On a shared host a thread that the same frame woke may have waited for this core.
                (Turn::Waits(_), None) if self.sleeper.is_some() => std::thread::yield_now(),
                (Turn::Waits(_), None) => std::hint::spin_loop(),
                (Turn::Waits(next), Some(scale)) => sleep(next.since(now), scale),
                (Turn::Called, _) => {
                    let sleeper = self.sleeper.as_mut();
                    if sleeper.is_some_and(|sleeper| sleeper.rest(now)) {
                        self.next = self.clock.now();
                    }
                }
            }
        }
    }

    /// Does one iteration of the loop: calls the core if a call is due, or an alarm asks for one.
    pub fn iterate(&mut self, now: Nanos) -> Turn {
        // On a shared core the loop sleeps between its ticks and takes no alarms.
        let alarm =
            self.shared_core_scale.is_none() && self.alarms.take_alarm(now, self.core.tick_time());
        if alarm {
            self.core.wake_early();
        } else if now < self.next {
            return Turn::Waits(self.next);
        }
        // A policy that evaluates more often than a tick shortens the period.
        let period = self.core.period();
        if now.since(self.next).0 > period.0 / 2 {
            self.stats.late.add(1);
        }
        if alarm {
            self.stats.early.add(1);
            self.next = now;
        }
        self.run_call(now);
        // A missed tick is not made up for: two at once would see no time pass between them. The core sets the period: less than a tick
        // while a policy is urgent.
        self.next = (self.next + self.core.period()).max(now);
        Turn::Called
    }

    fn run_call(&mut self, now: Nanos) {
        let ControlLoop {
            core,
            injector,
            crossings,
            counters,
            inbox,
            sleeper,
            clock,
            stats,
            ..
        } = self;
        injector.refresh();
        let mut ordered = false;
        inbox.execute_next(core, now, |command| {
            injector.execute(command)?;
            ordered = matches!(command, InjectorCommand::Send { .. });
            Ok(())
        });
        stats.ordered.add(u64::from(ordered));
        let state_of =
            |port: PortId, priority: Priority| queue_state(counters, port, priority, now);
        let mut out = InjectorSink {
            injector,
            crossings,
            counters,
            sent: ordered,
        };
        core.run_call_within(now, &|| clock.now(), state_of, &mut out);
        if let Some(sleeper) = sleeper.as_ref().filter(|_| out.sent) {
            sleeper.wake_workers();
        }
    }
}

/// `CnpSink` that sends through the injector. A CNP that is sent may be the first answer to a rise of its queue.
struct InjectorSink<'a> {
    injector: &'a mut Injector,
    crossings: &'a mut AnsweredCrossings,
    counters: &'a [Arc<Counters>],
    /// True if a CNP was handed over.
    sent: bool,
}

impl CnpSink for InjectorSink<'_> {
    type NextHop = Adjacency;

    fn resolve(
        &mut self,
        sender: IpAddr,
        ingress: PortId,
    ) -> Result<(PortId, Adjacency), Suppressed> {
        let hop = self.injector.next_hop(sender, Some(ingress));
        let hop = hop.ok_or(Suppressed::NoNeighbor)?;
        Ok((hop.port, hop))
    }

    fn hand_over(&mut self, request: CnpRequest, hop: Adjacency) -> Result<(), Suppressed> {
        let crossed = crossed(self.counters, request.egress, request.priority);
        let answers = self.crossings.crossing_answered_by(&request, crossed);
        self.injector
            .enqueue(&hop, request.flow, request.sender_qpn, answers)?;
        // A CNP that was refused answers no crossing: the next one does.
        self.crossings.set_answered(&request, crossed);
        self.sent = true;
        Ok(())
    }
}

/// Sleeps for a time of the switch's clock; `scale` is real ns per ns of it.
fn sleep(time: Nanos, scale: f64) {
    let real = Duration::try_from_secs_f64(real(time.0) * scale / 1e9);
    std::thread::sleep(real.unwrap_or(Duration::from_millis(1)));
}

/// Returns the times at which a queue last rose to `shallow` and to `hard`.
fn crossed(workers: &[Arc<Counters>], port: PortId, priority: Priority) -> [Nanos; 2] {
    let mut latest = [Nanos::ZERO; 2];
    for queue in workers
        .iter()
        .filter_map(|counters| counters.port(port.index())?.queues.get(priority.index()))
    {
        for (latest, gauge) in latest.iter_mut().zip(&queue.level.crossed) {
            *latest = (*latest).max(Nanos(gauge.get()));
        }
    }
    latest
}

/// Returns the state of a queue, over all workers.
fn queue_state(
    workers: &[Arc<Counters>],
    port: PortId,
    priority: Priority,
    now: Nanos,
) -> QueueState {
    let queues = || {
        let ports = workers.iter().filter_map(|all| all.port(port.index()));
        ports.filter_map(|port| port.queues.get(priority.index()))
    };
    let paused = |counters: &Counters| {
        let flow = &counters.port(port.index())?.flow;
        Some(flow.paused_time(priority, now))
    };
    let xoff_asserted = |counters: &Counters| {
        let ports = counters.ports().zip((0u8..).map(PortId));
        ports.fold(0, |set, (port, id)| {
            let asserted = port.flow.asserted.get() & u64::from(priority.bit()) != 0;
            set | if asserted { id.bit() } else { 0 }
        })
    };
    let mut state = QueueState {
        depth: queues().fold(0, |sum, queue| sum.saturating_add(queue.level.depth.get())),
        ..QueueState::default()
    };
    // While a queue is empty its `entered` counters are not read, so that worker and control core each keep their cache line.
    if state.depth > 0 {
        state.entered = Some(queues().map(|queue| queue.entered()).sum());
    }
    for counters in workers {
        state.paused += paused(counters).unwrap_or(Nanos::ZERO);
        state.xoff_asserted |= xoff_asserted(counters);
    }
    state
}

#[cfg(test)]
mod tests {
    use npcc_pipeline::route::nexthop::Kind;
    use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
    use npcc_roce::build::CnpHeader;
    use npcc_roce::key::{FlowKey, Qpn};
    use npcc_roce::pair::Evidence;

    use super::*;

    /// Each worker has counters of every port; the owner's hold the state.
    #[test]
    fn a_pause_that_lasts_counts_until_now_and_a_stopped_port_is_named() {
        let workers: Vec<_> = (0..2).map(|_| Arc::new(Counters::new(3))).collect();
        let (wan, queue) = (PortId(2), Priority::new(3));
        let flow = |worker: usize, port: usize| &workers[worker].port(port).unwrap().flow;
        let at = |now| queue_state(&workers, wan, queue, Nanos(now));
        assert_eq!(at(5_000), QueueState::default());
        let pauses = &flow(1, 2).priorities[3];
        pauses.rx_paused_ns.add(700);
        assert_eq!(at(5_000).paused, Nanos(700));
        pauses.rx_began.set(4_000);
        flow(1, 2).paused.set(1 << 3);
        assert_eq!(
            (at(5_000).paused, at(6_000).paused),
            (Nanos(1_700), Nanos(2_700))
        );
        // Under a storm frames leave, one way or the other.
        flow(1, 2).storm.set(1 << 3);
        assert_eq!(at(6_000).paused, Nanos(700));
        flow(0, 0).asserted.set(1 << 3 | 1);
        flow(1, 1).asserted.set(1 << 4);
        assert_eq!(at(6_000).xoff_asserted, 1);
    }

    #[test]
    fn what_entered_a_queue_that_stands_is_in_wire_bytes_of_all_workers() {
        let workers: Vec<_> = (0..2).map(|_| Arc::new(Counters::new(3))).collect();
        let queue = |worker: usize| &workers[worker].port(2).unwrap().queues[3];
        queue(0).enqueued.add(10, 10_000);
        queue(1).enqueued.add(1, 1_000);
        let at = || queue_state(&workers, PortId(2), Priority::new(3), Nanos(0));
        assert_eq!(at().entered, None, "nothing waits");
        queue(1).level.depth.set(500);
        assert_eq!(at().entered, Some(11_000 + 11 * 24));
    }

    /// The slowest answers were once missing from the timings: those of crossings whose first CNP found no path.
    #[test]
    fn a_cnp_that_was_refused_leaves_its_crossing_to_the_next() {
        let capacity = RouteCapacity {
            ipv4_routes: 4,
            ipv6_routes: 4,
            adjacencies: 4,
            groups: 4,
        };
        let (_routes, mut readers) = RouteWriter::new(capacity, 1);
        let (header, queue) = (CnpHeader::with_dscp(48), Priority::new(6));
        let mut injector = Injector::new(readers.remove(0), header, queue, Vec::new(), Vec::new());
        let counters = [Arc::new(Counters::new(2))];
        let level = &counters[0].port(1).unwrap().queues[3].level;
        level.crossed[1].set(5_000);
        let mut crossings = AnsweredCrossings::default();
        let request = CnpRequest {
            flow: FlowKey::new([10, 0, 1, 3].into(), [10, 0, 2, 2].into(), Qpn::new(1)),
            sender_qpn: Qpn::new(2),
            evidence: Evidence::Cm,
            ingress: PortId(0),
            egress: PortId(1),
            priority: Priority::new(3),
        };
        let mut out = InjectorSink {
            injector: &mut injector,
            crossings: &mut crossings,
            counters: &counters,
            sent: false,
        };
        let hop = Adjacency::unusable(Kind::Forward);
        assert_eq!(out.hand_over(request, hop), Err(Suppressed::RingFull));
        assert!(!out.sent);
        let crossed = crossed(&counters, request.egress, request.priority);
        let left = crossings
            .crossing_answered_by(&request, crossed)
            .map(|crossing| crossing.at);
        assert_eq!(left, Some(Nanos(5_000)));
    }

    #[test]
    fn an_alarm_of_a_watched_port_rings_once_and_not_too_soon_after_another() {
        let counters: Vec<_> = (0..2).map(|_| Arc::new(Counters::new(3))).collect();
        let mut alarms = Alarms::new(&counters, 0b100);
        let tick = Nanos::from_micros(20);
        let rise = |worker: usize, port: usize, at: u64| {
            let port = counters.get(worker).and_then(|own| own.port(port));
            port.unwrap().alarm.set(at);
        };
        assert!(!alarms.take_alarm(Nanos(90_000), tick));
        rise(0, 1, 100_000);
        assert!(
            !alarms.take_alarm(Nanos(101_000), tick),
            "nobody watches that port"
        );
        rise(1, 2, 101_000);
        assert!(alarms.take_alarm(Nanos(102_000), tick));
        assert!(!alarms.take_alarm(Nanos(110_000), tick), "it was answered");
        rise(0, 2, 111_000);
        assert!(alarms.take_alarm(Nanos(112_000), tick));
        rise(0, 2, 112_500);
        assert!(!alarms.take_alarm(Nanos(113_000), tick), "too soon");
        assert!(alarms.take_alarm(Nanos(114_500), tick), "but not forgotten");
    }
}

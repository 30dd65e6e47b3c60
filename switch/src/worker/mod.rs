//! A worker: polls its receive queues, walks the pipeline, injects CNPs, sends. The loop is [`Worker::run`].

pub mod command;
pub mod frame;
pub mod from_linux;
pub mod outstanding;
pub mod ports;
pub mod probe;
pub mod receiving;
pub mod stages;
pub mod stats;
pub mod telemetry;
pub mod timings;
pub mod transmit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrayvec::ArrayVec;
use npcc_dpdk::{Burst, Mempool};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::{BURST, MAX_PORTS, Nanos, PortId};
use rtrb::Consumer;

use self::command::{Command, LinkSettings};
use self::frame::{Datapath, Frame};
use self::from_linux::FromLinux;
use self::ports::{PortQueues, RemoteQueue};
use self::probe::Probe;
use self::receiving::Receiving;
use self::stages::Stage;
use self::stats::WorkerStats;
use crate::clock::Clock;
use crate::control::inject::Injection;
use crate::sleep::{Rest, WorkerSleeper};

/// How long a stopping worker goes on sending what is queued.
const LINGER: Nanos = Nanos::from_millis(200);

/// Times a turn in which others' frames are taken over and sent: a worker may have several ports for one owner.
const ROUNDS: usize = 8;

/// A worker and all it owns.
#[derive(Debug)]
pub struct Worker<P> {
    /// Its packet path.
    pub path: Datapath,
    /// Its ports.
    pub ports: Vec<PortQueues>,
    /// Receive queues of other workers' ports.
    pub remotes: Vec<RemoteQueue>,
    /// Workers that may still hand frames over: how a stop is agreed upon.
    pub receiving: Arc<Receiving>,
    /// CNPs from the control core.
    pub injections: Consumer<Injection>,
    /// Frames of Linux, where it is integrated.
    pub linux: Option<FromLinux>,
    /// The operator's orders.
    pub commands: Consumer<Command>,
    /// Where CNPs and pause frames get their buffers.
    pub pool: Mempool,
    /// Time.
    pub clock: Clock,
    /// What it tells.
    pub stats: Arc<WorkerStats>,
    /// What looks on.
    pub probe: P,
    /// How it sleeps with nothing to do; none where it polls without pause.
    pub sleeper: Option<WorkerSleeper>,
}

impl<P: Probe> Worker<P> {
    /// The worker's loop, until `stop`.
    pub fn run(mut self, stop: &AtomicBool) {
        if let Some(linux) = &mut self.linux {
            linux.keep_spares(&self.pool);
        }
        for port in &mut self.ports {
            port.keep_spare(&self.pool);
            port.rx.discard();
        }
        for remote in &mut self.remotes {
            remote.rx.discard();
        }
        let mut last = self.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.probe.turn_begins();
            self.path.refresh();
            let mut received = 0;
            for port in &mut self.ports {
                let most = self.probe.admits(port.id, now);
                received += port.receive(&mut self.path, most, now, &mut self.probe);
                port.control(&mut self.path, &self.pool, now);
            }
            for remote in &mut self.remotes {
                received += remote.receive(&mut self.path, now, &mut self.probe);
            }
            let mut moved = received;
            self.obey(now);
            moved += self.inject(now) + self.take_from_linux(now);
            for _ in 0..ROUNDS {
                let came = self.path.take_over(now);
                self.probe.stage_ends(Stage::Other);
                moved += came + self.send(now);
                if came == 0 {
                    break;
                }
            }
            self.probe.cnps_offered(&self.clock);
            self.path.publish_held();
            self.account(moved, now.since(last));
            self.probe.turn_ends(received, &self.stats);
            last = self.rest(moved, now);
        }
        self.finish();
    }

    /// Sends by all ports what may be sent now.
    #[inline]
    fn send(&mut self, now: Nanos) -> usize {
        let mut moved = 0;
        for port in &mut self.ports {
            let sent = port.send(&mut self.path, now, &mut self.probe);
            self.probe.sent(port.id, sent, &self.clock);
            moved += sent;
        }
        moved
    }

    /// Carries out the operator's orders.
    #[inline]
    fn obey(&mut self, now: Nanos) {
        while let Ok(command) = self.commands.pop() {
            match command {
                Command::ClearWatermarks => {
                    self.path.clear_watermarks();
                    let stats = &self.stats;
                    stats.longest_before_ns.raise(stats.longest_ns.get());
                    stats.longest_ns.set(0);
                }
                Command::Queue {
                    port,
                    priority,
                    config,
                } => self.path.reconfigure_queue(port, priority, &config),
                Command::Classifier { port, classifier } => {
                    self.path.reclassify(port, classifier);
                }
                Command::Ecn { port, ecn } => self.path.set_ecn(port, ecn),
                Command::PuntPort { port, interfaces } => {
                    self.path.set_punt_port(port, *interfaces);
                }
                Command::Capture(order) => self.path.set_capture(order),
                Command::LinkDown { port } => self.link_down(port, now),
                Command::LinkUp { port, settings } => self.link_up(port, &settings),
            }
        }
    }

    /// A port's link is down: what is in hand for it is dropped now, what is queued in the next turns.
    #[cold]
    fn link_down(&mut self, port: PortId, now: Nanos) {
        self.path.link_down(port, now);
        if let Some(port) = self.ports.iter_mut().find(|own| own.id == port) {
            port.tx
                .abandon(&mut self.path, port.id, DropReason::LinkDown);
        }
    }

    /// A port's link is up, perhaps with another speed than before.
    #[cold]
    fn link_up(&mut self, port: PortId, settings: &LinkSettings) {
        self.path.set_speed(port, &settings.port, settings.link);
        self.path.divide_buffer(&settings.buffer);
        if let Some(port) = self.ports.iter_mut().find(|own| own.id == port) {
            port.tx.set_bound(settings.outstanding, settings.link);
        }
        self.path.link_up(port);
    }

    #[inline]
    fn account(&self, moved: usize, turn: Nanos) {
        self.stats.loops.add(1);
        if moved > 0 {
            self.stats.busy.add(1);
        }
        self.stats.longest_ns.raise(turn.0);
    }

    /// Sleeps if it may and there is nothing to do; returns when the next turn is counted from.
    #[inline]
    fn rest(&mut self, moved: usize, now: Nanos) -> Nanos {
        let Some(sleeper) = &mut self.sleeper else {
            return now;
        };
        let rest = if moved > 0 {
            sleeper.moved(now)
        } else {
            let (path, ports, waiting) = (&self.path, &self.ports, &self.injections);
            let linux = self.linux.as_ref();
            sleeper.idle(now, || {
                let empty = |port: &PortQueues| path.waiting(port.id) + port.tx.in_hand() == 0;
                ports.iter().all(empty)
                    && path.handed_over()
                    && waiting.is_empty()
                    && linux.is_none_or(FromLinux::is_empty)
            })
        };
        if rest == Rest::None {
            return now;
        }
        self.rested(rest, now)
    }

    #[cold]
    fn rested(&mut self, rest: Rest, now: Nanos) -> Nanos {
        if rest != Rest::TimedOut {
            let own = self.ports.iter().map(|port| &port.rx);
            for source in own.chain(self.remotes.iter().map(|remote| &remote.rx)) {
                // A device whose interrupt is always on, or that has none, needs nothing.
                source.queue.arm(rest == Rest::Arm);
            }
        }
        if matches!(rest, Rest::Arm | Rest::Found) {
            return now;
        }
        let woken = self.clock.now();
        self.stats.naps.add(1);
        self.stats.slept_ns.add(woken.since(now).0);
        if let Some(sleeper) = &mut self.sleeper
            && rest == Rest::Woken
        {
            self.stats.woken.add(1);
            sleeper.awake(woken);
        }
        woken
    }

    /// Queues the CNPs that wait; at most a burst a turn.
    #[inline]
    fn inject(&mut self, now: Nanos) -> usize {
        let waiting = self.injections.slots().min(BURST);
        if waiting == 0 {
            return 0;
        }
        let mut buffers = Burst::<BURST>::new();
        // A short answer leaves the rest without a buffer: counted below.
        let _ = self.pool.alloc_bulk(&mut buffers, waiting);
        for _ in 0..waiting {
            let Ok(injection) = self.injections.pop() else {
                break;
            };
            let queued = buffers.pop().is_some_and(|mut mbuf| {
                mbuf.fill(injection.frame.bytes()).is_ok()
                    && self
                        .path
                        .originate(injection.port, injection.priority, Frame(mbuf), now)
                        .is_ok()
            });
            if !queued {
                self.stats.cnp_lost.add(1);
                continue;
            }
            if let Some(counters) = self.path.counters().port(injection.port.index()) {
                counters.roce.cnp_out.add(1);
            }
            if let Some(crossing) = injection.answers {
                self.probe.cnp_queued(crossing);
            }
        }
        waiting
    }

    /// Queues what Linux sends; at most a burst a turn.
    #[inline]
    fn take_from_linux(&mut self, now: Nanos) -> usize {
        match &mut self.linux {
            Some(linux) if !linux.is_empty() => linux.take(&mut self.path, &self.pool, now),
            _ => 0,
        }
    }

    /// Tries again with what waits for room in rings; whether nothing waits any more.
    fn hand_over(&mut self) -> bool {
        let ids = self.ports.iter().map(|port| port.id);
        let ids: ArrayVec<PortId, MAX_PORTS> = ids
            .chain(self.remotes.iter().map(|remote| remote.id))
            .collect();
        for id in ids {
            let _ = self.path.may_receive(id);
        }
        self.path.handed_over()
    }

    /// Takes nothing in any more, sends what it can for a while, and counts the rest as dropped.
    fn finish(mut self) {
        let start = self.clock.now();
        let deadline = start + LINGER;
        let mut handing_over = true;
        loop {
            let now = self.clock.now();
            self.path.refresh();
            self.path.take_over(now);
            if handing_over && (self.hand_over() || now.since(start).0 >= LINGER.0 / 2) {
                handing_over = false;
                self.receiving.done();
            }
            self.inject(now);
            self.take_from_linux(now);
            let mut waiting = 0;
            for port in &mut self.ports {
                port.tx.send(&mut self.path, port.id, now, &mut self.probe);
                port.control(&mut self.path, &self.pool, now);
                waiting += port.tx.in_hand() + self.path.waiting(port.id);
            }
            let alone = self.receiving.nobody();
            if waiting == 0 && alone && self.path.take_over(now) == 0 {
                break;
            }
            // A worker that died would never be done.
            if now >= deadline && (alone || now.since(start).0 >= 2 * LINGER.0) {
                break;
            }
        }
        for port in &mut self.ports {
            port.tx
                .abandon(&mut self.path, port.id, DropReason::Shutdown);
        }
        self.path.shut_down();
        // Whoever reads what was captured waits for no more.
        self.path.set_capture(None);
    }
}

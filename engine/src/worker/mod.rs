//! A worker: polls its receive queues, walks the pipeline, injects CNPs, sends.
//!
//! [`Worker::iterate`] is one iteration at a given time, and [`Worker::run`] that in a loop. A worker that is to stop goes through
//! [`Worker::stop`], as many calls of [`Worker::finish`] as it takes, and [`Worker::end`].

pub mod command;
pub mod dpdk;
pub mod frame;
pub mod from_linux;
pub mod io;
pub mod ports;
pub mod probe;
pub mod receiving;
pub mod stages;
pub mod telemetry;
pub mod timings;
pub mod transmit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrayvec::ArrayVec;
use npcc_pipeline::counters::{Stage, WorkerStats};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::{BURST, MAX_PORTS, Nanos, PortId};
use rtrb::Consumer;

use self::command::{PortSettings, WorkerCommand};
use self::dpdk::Dpdk;
use self::frame::Datapath;
use self::from_linux::FromLinux;
use self::io::{Buffer, Io, Pool, Receive};
use self::ports::{PortQueues, RemoteQueue};
use self::probe::Probe;
use self::receiving::Receiving;
use crate::clock::Now;
use crate::control::inject::Injection;
use crate::sleep::{Rest, WorkerSleeper};

/// Time for which a stopping worker still sends queued frames; up to twice as long while others may still hand frames over.
const LINGER: Nanos = Nanos::from_millis(200);

/// Maximum number of rounds per turn, in each of which up to a burst is taken over from every other worker and sent. One round is not
/// enough where another worker receives a burst from each of several ports. It is the only one in a turn in which a receive queue of this
/// worker gave a full burst: what others hand over never takes more of a worker than what it receives itself.
const ROUNDS: usize = 8;

/// Worker and all it owns.
#[derive(Debug)]
pub struct Worker<P, I: Io = Dpdk> {
    /// Packet path.
    pub path: Datapath<I::Buf>,
    /// Device queues of its own ports.
    pub ports: Vec<PortQueues<I>>,
    /// Receive queues of other workers' ports.
    pub remotes: Vec<RemoteQueue<I>>,
    /// Count of workers that may still hand frames over, by which they agree on a stop.
    pub receiving: Arc<Receiving>,
    /// CNPs from the control core.
    pub injections: Consumer<Injection>,
    /// Frames from Linux; `None` where Linux is not integrated.
    pub linux: Option<FromLinux<I>>,
    /// Operator's commands.
    pub commands: Consumer<WorkerCommand>,
    /// Pool of the buffers for CNPs, pause frames and frames from Linux.
    pub mempool: I::Pool,
    /// Time source of the loop.
    pub clock: I::Clock,
    /// Counters that it publishes.
    pub stats: Arc<WorkerStats>,
    /// Observer of the loop.
    pub probe: P,
    /// Sleeper for idle turns; `None` if the worker polls without pause.
    pub sleeper: Option<WorkerSleeper>,
    /// Time at which the turn before began, or a sleep after it ended.
    pub last: Nanos,
}

impl<P: Probe, I: Io> Worker<P, I> {
    /// Runs the worker's loop until `stop`.
    pub fn run(mut self, stop: &AtomicBool) {
        self.begin();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            let moved = self.iterate(now);
            self.sleep_if_idle(moved, now);
        }
        let mut stopping = self.stop();
        while !self.finish(&mut stopping, self.clock.now()) {}
        self.end();
    }

    /// Prepares for the first iteration: allocates spare buffers, and discards frames that came before.
    pub fn begin(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.keep_spares(&self.mempool);
        }
        for port in &mut self.ports {
            port.keep_spare(&self.mempool);
            port.rx.discard();
        }
        for remote in &mut self.remotes {
            remote.rx.discard();
        }
        self.last = self.clock.now();
    }

    /// Does one iteration of the loop; returns the number of frames that moved.
    #[inline]
    pub fn iterate(&mut self, now: Nanos) -> usize {
        self.probe.turn_begins();
        self.path.refresh();
        let (mut received, mut largest) = (0, 0);
        for port in &mut self.ports {
            let most = self.probe.rx_limit(port.id, now);
            let burst = port.poll(&mut self.path, most, now, &mut self.probe);
            (received, largest) = (received + burst, largest.max(burst));
            port.control(&mut self.path, &self.mempool, now);
        }
        for remote in &mut self.remotes {
            let burst = remote.poll(&mut self.path, now, &mut self.probe);
            (received, largest) = (received + burst, largest.max(burst));
        }
        let mut moved = received;
        self.execute_commands(now);
        moved += self.inject(now) + self.take_from_linux(now);
        let rounds = if largest == BURST { 1 } else { ROUNDS };
        for _ in 0..rounds {
            let came = self.path.take_over(now);
            self.probe.stage_ends(Stage::Other);
            moved += came + self.send(now);
            if came == 0 {
                break;
            }
        }
        self.probe.cnps_offered(&self.clock);
        self.path.publish_held();
        self.account(moved, now.since(self.last));
        self.probe.turn_ends(received, &self.stats);
        self.last = now;
        moved
    }

    /// Sends on all ports the frames that may be sent now; returns their number.
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

    /// Carries out the operator's commands.
    #[inline]
    fn execute_commands(&mut self, now: Nanos) {
        while let Ok(command) = self.commands.pop() {
            match command {
                WorkerCommand::ClearWatermarks => {
                    self.path.clear_watermarks();
                    let stats = &self.stats;
                    stats.longest_before_ns.raise(stats.longest_ns.get());
                    stats.longest_ns.set(0);
                }
                WorkerCommand::Queue {
                    port,
                    priority,
                    config,
                } => self.path.reconfigure_queue(port, priority, &config),
                WorkerCommand::Classifier { port, classifier } => {
                    self.path.reclassify(port, classifier);
                }
                WorkerCommand::Ecn { port, ecn } => self.path.set_ecn(port, ecn),
                WorkerCommand::PuntPort { port, interfaces } => {
                    self.path.set_punt_port(port, *interfaces);
                }
                WorkerCommand::Capture(order) => self.path.set_capture(order),
                WorkerCommand::PortAdmin { port, up } => self.path.set_admin(port, up),
                WorkerCommand::LinkDown { port } => self.link_down(port, now),
                WorkerCommand::ConfigurePort { port, settings } => {
                    self.configure_port(port, &settings)
                }
            }
        }
    }

    /// Handles a link that went down: drops unsent frames for it now, and queued ones in the next turns.
    #[cold]
    fn link_down(&mut self, port: PortId, now: Nanos) {
        self.path.link_down(port, now);
        if let Some(port) = self.ports.iter_mut().find(|own| own.id == port) {
            port.tx
                .abandon(&mut self.path, port.id, DropReason::LinkDown);
        }
    }

    /// Applies the settings of a port whose link came up, or whose speed changed.
    #[cold]
    fn configure_port(&mut self, port: PortId, settings: &PortSettings) {
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

    /// Sleeps if it may and no work waits.
    #[inline]
    fn sleep_if_idle(&mut self, moved: usize, now: Nanos) {
        let Some(sleeper) = &mut self.sleeper else {
            return;
        };
        let rest = if moved > 0 {
            sleeper.moved(now)
        } else {
            let (path, ports, waiting) = (&self.path, &self.ports, &self.injections);
            let linux = self.linux.as_ref();
            sleeper.idle(now, || {
                let empty = |port: &PortQueues<I>| {
                    path.frames_queued(port.id) + port.tx.unsent_frames() == 0
                };
                ports.iter().all(empty)
                    && path.handed_over()
                    && waiting.is_empty()
                    && linux.is_none_or(FromLinux::is_empty)
            })
        };
        if rest != Rest::None {
            self.after_sleep(rest, now);
        }
    }

    #[cold]
    fn after_sleep(&mut self, rest: Rest, now: Nanos) {
        if rest != Rest::TimedOut {
            let own = self.ports.iter().map(|port| &port.rx);
            for source in own.chain(self.remotes.iter().map(|remote| &remote.rx)) {
                source.queue.arm(rest == Rest::Arm);
            }
        }
        if matches!(rest, Rest::Arm | Rest::Found) {
            return;
        }
        let woken = self.clock.now();
        self.last = woken;
        self.stats.naps.add(1);
        self.stats.slept_ns.add(woken.since(now).0);
        if let Some(sleeper) = &mut self.sleeper
            && rest == Rest::Woken
        {
            self.stats.woken.add(1);
            sleeper.awake(woken);
        }
    }

    /// Queues waiting CNPs, at most a burst a turn; returns the number dequeued.
    #[inline]
    fn inject(&mut self, now: Nanos) -> usize {
        let waiting = self.injections.slots().min(BURST);
        if waiting == 0 {
            return 0;
        }
        let mut buffers = ArrayVec::<I::Buf, BURST>::new();
        // If the pool has fewer, the other CNPs get no buffer: counted below.
        self.mempool.alloc_bulk(&mut buffers, waiting);
        for _ in 0..waiting {
            let Ok(injection) = self.injections.pop() else {
                break;
            };
            let queued = buffers.pop().is_some_and(|mut buf| {
                buf.fill(injection.frame.bytes())
                    && self
                        .path
                        .originate(injection.port, injection.priority, buf, now)
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

    /// Queues frames from Linux, at most a burst a turn; returns the number dequeued.
    #[inline]
    fn take_from_linux(&mut self, now: Nanos) -> usize {
        match &mut self.linux {
            Some(linux) if !linux.is_empty() => linux.take(&mut self.path, &self.mempool, now),
            _ => 0,
        }
    }

    /// Retries frames that wait for room in rings; returns true if none waits any more.
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

    /// Stops receiving: [`finish`](Self::finish) follows.
    #[must_use]
    pub fn stop(&self) -> Stopping {
        Stopping {
            start: self.clock.now(),
            handing_over: true,
        }
    }

    /// Does one iteration of a stopping worker, which sends what it can for a while; returns true if it is done.
    pub fn finish(&mut self, stopping: &mut Stopping, now: Nanos) -> bool {
        let stopped = now.since(stopping.start);
        self.path.refresh();
        self.path.take_over(now);
        if stopping.handing_over && (self.hand_over() || stopped.0 >= LINGER.0 / 2) {
            stopping.handing_over = false;
            self.receiving.done();
        }
        self.inject(now);
        self.take_from_linux(now);
        let mut waiting = 0;
        for port in &mut self.ports {
            port.tx.send(&mut self.path, port.id, now, &mut self.probe);
            port.control(&mut self.path, &self.mempool, now);
            waiting += port.tx.unsent_frames() + self.path.frames_queued(port.id);
        }
        let alone = self.receiving.nobody();
        if waiting == 0 && alone && self.path.take_over(now) == 0 {
            return true;
        }
        // A worker that died would never be done.
        stopped >= LINGER && (alone || stopped.0 >= 2 * LINGER.0)
    }

    /// Counts frames that could not be sent as dropped. The worker does nothing after this.
    pub fn end(&mut self) {
        for port in &mut self.ports {
            port.tx
                .abandon(&mut self.path, port.id, DropReason::Shutdown);
        }
        self.path.shut_down();
        // Ends the capture, so that its reader does not wait for more.
        self.path.set_capture(None);
    }
}

/// Progress of a worker that stops.
#[derive(Debug)]
pub struct Stopping {
    start: Nanos,
    /// True while it holds frames for other workers.
    handing_over: bool,
}

//! A worker: polls its receive queues, walks the pipeline, injects CNPs, sends. The loop is [`Worker::run`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrayvec::ArrayVec;
use npcc_cnp::flow_cache::FlowCache;
use npcc_dpdk::{Burst, Mempool, RxQueue};
use npcc_pipeline::counters::{Counter, Gauge};
use npcc_pipeline::datapath::Datapath;
use npcc_pipeline::frame::{FrameBuf, Row};
use npcc_pipeline::pause::PfcFrame;
use npcc_pipeline::units::{BURST, MAX_PORTS, Nanos, PortId};
use rtrb::Consumer;

use crate::clock::Clock;
use crate::command::Command;
use crate::drill::Drill;
use crate::frame::Frame;
use crate::idle::{Rest, WorkerBed};
use crate::inject::Injection;
use crate::reaction::Crossing;
use crate::stages::{Laps, Stage, StageCounters};
use crate::stamp::Stamps;
use crate::timings::Times;
use crate::transmit::Transmit;

/// The packet path as the switch builds it.
pub type Path = Datapath<Frame, FlowCache>;

/// How long a stopping worker goes on sending what is queued.
const LINGER: Nanos = Nanos::from_millis(200);

/// One port's device queues.
#[derive(Debug)]
pub struct PortQueues {
    id: PortId,
    rx: Source,
    /// Whether the driver tells how full the receive ring is.
    tells: bool,
    tx: Transmit,
    /// For measurements.
    stamps: Option<Box<Stamps>>,
}

/// Bursts a port may send in one turn.
const SENDS: usize = 8;

/// Times a turn in which others' frames are taken over and sent: a worker may have several ports for one owner.
const ROUNDS: usize = 8;

/// Half of a receive ring: from there on its peer is paused.
pub const HALF_RING: u16 = 512;

impl PortQueues {
    /// Nothing in hand.
    #[must_use]
    pub fn new(id: PortId, rx: RxQueue, tx: Transmit) -> PortQueues {
        PortQueues {
            id,
            tells: rx.holds_more_than(0).is_some(),
            rx: Source::new(rx),
            tx,
            stamps: None,
        }
    }

    /// Makes each frame that comes in one of these flows': for measurements.
    pub fn stamp(&mut self, stamps: Stamps) {
        self.stamps = Some(Box::new(stamps));
    }

    /// Receives one burst of at most `most` into the pipeline; returns its frames.
    #[inline]
    fn receive(&mut self, path: &mut Path, most: usize, now: Nanos, laps: &mut Laps) -> usize {
        let stamps = self.stamps.as_deref_mut();
        let received = self.rx.receive(self.id, stamps, path, most, now, laps);
        if self.tells && received == BURST {
            path.ring(
                self.id,
                self.rx.queue.holds_more_than(HALF_RING) == Some(true),
            );
        }
        received
    }

    /// Sends what may be sent now: more than one burst where several came together, so that a queue grows because of its link and
    /// not because several ports, or workers, feed it in one turn.
    #[inline]
    fn send(&mut self, path: &mut Path, now: Nanos, laps: &mut Laps) -> usize {
        let mut sent = self.tx.send(path, self.id, now, laps);
        let mut last = sent;
        while last == BURST && sent < SENDS * BURST && path.has_more(self.id) {
            last = self.tx.send(path, self.id, now, laps);
            sent += last;
        }
        sent
    }

    /// Sends the PFC frame that is due, if any, past what is queued and in hand.
    #[inline]
    fn control(&mut self, path: &mut Path, pool: &Mempool, now: Nanos) {
        if let Some(frame) = path.control_due(self.id, now) {
            self.pause(path, pool, &frame, now);
        }
    }

    #[cold]
    fn pause(&mut self, path: &mut Path, pool: &Mempool, frame: &PfcFrame, now: Nanos) {
        let mut burst = Burst::<1>::new();
        if pool.alloc_bulk(&mut burst, 1).is_err() {
            return;
        }
        let Some(mut mbuf) = burst.pop() else { return };
        // A frame that cannot be sent now is due again next turn.
        if mbuf.fill(&frame.bytes).is_ok()
            && burst.push(mbuf).is_ok()
            && self.tx.control(&mut burst)
        {
            path.control_sent(self.id, frame, now);
        }
    }
}

/// A receive queue of a port that another worker owns.
#[derive(Debug)]
pub struct GuestQueue {
    /// The port.
    pub id: PortId,
    /// The queue.
    pub rx: Source,
}

impl GuestQueue {
    /// Receives one burst into the pipeline; returns its frames.
    #[inline]
    fn receive(&mut self, path: &mut Path, now: Nanos, laps: &mut Laps) -> usize {
        self.rx.receive(self.id, None, path, BURST, now, laps)
    }
}

/// A receive queue, and where its driver puts a burst.
#[derive(Debug)]
pub struct Source {
    queue: RxQueue,
    row: Row<Frame>,
}

impl Source {
    /// Nothing in hand.
    #[must_use]
    pub fn new(queue: RxQueue) -> Source {
        Source {
            queue,
            row: Row::default(),
        }
    }

    /// Receives one burst of a port's queue into the pipeline, if it may take one; returns its frames.
    #[inline]
    fn receive(
        &mut self,
        port: PortId,
        stamps: Option<&mut Stamps>,
        path: &mut Path,
        most: usize,
        now: Nanos,
        laps: &mut Laps,
    ) -> usize {
        if !path.may_receive(port) {
            return 0;
        }
        let received = self.queue.rx_up_to(&mut *self.row, most);
        laps.pass(Stage::Receive);
        if received > 0 {
            if let Some(stamps) = stamps {
                for frame in &mut *self.row {
                    stamps.press(frame.data_mut());
                }
            }
            path.ingress_by(port, &mut self.row, now, || laps.pass(Stage::Parse));
            debug_assert!(self.row.is_empty(), "the path takes them all");
            laps.pass(Stage::Enqueue);
        }
        received
    }
}

/// What a worker tells about itself.
#[derive(Debug, Default)]
pub struct WorkerStats {
    /// Turns of the loop.
    pub loops: Counter,
    /// Turns in which a frame moved.
    pub busy: Counter,
    /// Longest turn in ns since the last `clear watermarks`.
    pub longest_ns: Gauge,
    /// Longest turn in ns before that.
    pub longest_before_ns: Gauge,
    /// CNPs lost because the pool or the buffer was empty.
    pub cnp_lost: Counter,
    /// Times it slept, for some milliseconds at most.
    pub naps: Counter,
    /// Of these, times something woke it: a frame, or another thread with work for it.
    pub woken: Counter,
    /// Time it slept, in ns of the worker's clock.
    pub slept_ns: Counter,
    /// Where its time goes.
    pub stages: StageCounters,
}

/// Workers that may still hand frames over to others.
///
/// A worker is done once it receives no more and holds nothing for others. What it handed over before it said so, others
/// see when they see that it did (release, acquire).
#[derive(Debug)]
pub struct Receiving(AtomicUsize);

impl Receiving {
    /// All of `workers` may.
    #[must_use]
    pub const fn new(workers: usize) -> Receiving {
        Receiving(AtomicUsize::new(workers))
    }

    fn done(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    fn nobody(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

/// A worker and all it owns.
#[derive(Debug)]
pub struct Worker {
    /// Its packet path.
    pub path: Path,
    /// Its ports.
    pub ports: Vec<PortQueues>,
    /// Receive queues of others' ports.
    pub guests: Vec<GuestQueue>,
    /// Workers that may still hand frames over: how a stop is agreed upon.
    pub receiving: Arc<Receiving>,
    /// CNPs from the control core.
    pub injections: Consumer<Injection>,
    /// The operator's orders.
    pub commands: Consumer<Command>,
    /// Where CNPs and pause frames get their buffers.
    pub pool: Mempool,
    /// Time.
    pub clock: Clock,
    /// What it tells.
    pub stats: Arc<WorkerStats>,
    /// Crossings answered by CNPs queued in this turn.
    pub answered: ArrayVec<Crossing, BURST>,
    /// Where it tells what took how long.
    pub times: Times,
    /// Takes the time of its stages.
    pub laps: Laps,
    /// Lets a source in by a timetable, for `bench`.
    pub drill: Option<Box<Drill>>,
    /// Where it sleeps with nothing to do; none where it polls without pause.
    pub bed: Option<WorkerBed>,
}

impl Worker {
    /// The worker's loop, until `stop`.
    pub fn run(mut self, stop: &AtomicBool) {
        let mut last = self.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.laps.begin();
            self.path.refresh();
            let mut received = 0;
            for port in &mut self.ports {
                let due = self.drill.as_mut();
                let most = due.map_or(BURST, |drill| drill.due(port.id, now));
                let taken = port.receive(&mut self.path, most, now, &mut self.laps);
                if let Some(drill) = &mut self.drill {
                    drill.received(port.id, taken);
                }
                received += taken;
                port.control(&mut self.path, &self.pool, now);
            }
            for guest in &mut self.guests {
                received += guest.receive(&mut self.path, now, &mut self.laps);
            }
            let mut moved = received;
            self.obey();
            moved += self.inject(now);
            for _ in 0..ROUNDS {
                let came = self.path.take_over(now);
                self.laps.pass(Stage::Other);
                moved += came + self.send(now);
                if came == 0 {
                    break;
                }
            }
            self.reacted();
            self.path.publish_held();
            self.account(moved, now.since(last));
            self.laps.end(received, &self.stats.stages);
            last = self.rest(moved, now);
        }
        self.finish();
    }

    /// Sends by all ports what may be sent now.
    #[inline]
    fn send(&mut self, now: Nanos) -> usize {
        let mut moved = 0;
        for port in &mut self.ports {
            let sent = port.send(&mut self.path, now, &mut self.laps);
            if let Some(drill) = &mut self.drill {
                drill.sent(port.id, sent, self.clock.now(), &mut self.times);
            }
            moved += sent;
        }
        moved
    }

    /// Carries out the operator's orders.
    #[inline]
    fn obey(&mut self) {
        while let Ok(command) = self.commands.pop() {
            match command {
                Command::ClearWatermarks => {
                    self.path.clear_watermarks();
                    let stats = &self.stats;
                    stats.longest_before_ns.raise(stats.longest_ns.get());
                    stats.longest_ns.set(0);
                }
                Command::Discipline {
                    port,
                    priority,
                    discipline,
                } => self.path.set_discipline(port, priority, discipline),
                Command::Queue {
                    port,
                    priority,
                    config,
                } => self.path.reconfigure_queue(port, priority, &config),
                Command::Classifier { port, classifier } => {
                    self.path.reclassify(port, classifier);
                }
                Command::Ecn { port, mode } => self.path.set_ecn(port, mode),
            }
        }
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
        let Some(bed) = &mut self.bed else { return now };
        let rest = if moved > 0 {
            bed.moved(now)
        } else {
            let (path, ports, waiting) = (&self.path, &self.ports, &self.injections);
            bed.idle(now, || {
                let empty = |port: &PortQueues| path.waiting(port.id) + port.tx.in_hand() == 0;
                ports.iter().all(empty) && path.handed_over() && waiting.is_empty()
            })
        };
        if rest == Rest::None {
            return now;
        }
        self.rested(rest, now)
    }

    #[cold]
    fn rested(&mut self, rest: Rest, now: Nanos) -> Nanos {
        if rest != Rest::Napped {
            let own = self.ports.iter().map(|port| &port.rx);
            for source in own.chain(self.guests.iter().map(|guest| &guest.rx)) {
                // A device without an interrupt has a bell that is always live, or none.
                source.queue.arm(rest == Rest::Arm);
            }
        }
        if matches!(rest, Rest::Arm | Rest::Found) {
            return now;
        }
        let woken = self.clock.now();
        self.stats.naps.add(1);
        self.stats.slept_ns.add(woken.since(now).0);
        if let Some(bed) = &mut self.bed
            && rest == Rest::Woken
        {
            self.stats.woken.add(1);
            bed.awake(woken);
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
                counters.cnp_out.add(1);
            }
            if let Some(crossing) = injection.answers {
                // At most a burst is queued a turn.
                self.answered.push(crossing);
            }
        }
        waiting
    }

    /// Records the crossings answered in this turn, now that the device has the CNPs.
    #[inline]
    fn reacted(&mut self) {
        if !self.answered.is_empty() {
            let now = self.clock.now();
            for crossing in self.answered.drain(..) {
                // A full ring loses the time.
                self.times.tell(crossing.threshold, now.since(crossing.at));
            }
        }
    }

    /// Tries again with what waits for room in rings; whether nothing waits any more.
    fn hand_over(&mut self) -> bool {
        let ids = self.ports.iter().map(|port| port.id);
        let ids: ArrayVec<PortId, MAX_PORTS> = ids
            .chain(self.guests.iter().map(|guest| guest.id))
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
            let mut waiting = 0;
            for port in &mut self.ports {
                port.tx.send(&mut self.path, port.id, now, &mut self.laps);
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
            port.tx.abandon(&mut self.path, port.id);
        }
        self.path.shut_down();
    }
}

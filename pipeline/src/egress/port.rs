//! One port's egress side: queues, scheduler, shapers and marking put together.

use arrayvec::ArrayVec;

use super::ecn::{self, Red};
use super::fifo::{Fifo, FifoStore};
use super::rng::Xorshift;
use super::scheduler::{Discipline, Scheduler};
use super::shaper::Shaper;
use crate::counters::PortCounters;
use crate::frame::{FrameBuf, MetaFlags, Queued};
use crate::tap::FlowTap;
use crate::units::{BURST, BitRate, Nanos, PRIORITIES, Priority};

/// One queue's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueConfig {
    /// How it is served.
    pub discipline: Discipline,
    /// Highest rate on the wire, if any.
    pub max_rate: Option<BitRate>,
    /// Rate on the wire served before every share and every strict queue, if any.
    pub min_rate: Option<BitRate>,
    /// CE marking of ECT frames at dequeue.
    pub ecn: Option<Red>,
    /// Early drop of Not-ECT frames at enqueue; never for a lossless queue.
    pub wred: Option<Red>,
    /// Frames must not be dropped for want of a share of the pool.
    pub lossless: bool,
    /// Depths in wire bytes whose crossing is timed; `u64::MAX` for none.
    pub watch: [u64; 2],
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            discipline: Discipline::Dwrr(1),
            max_rate: None,
            min_rate: None,
            ecn: None,
            wred: None,
            lossless: false,
            watch: [u64::MAX; 2],
        }
    }
}

/// One port's settings.
#[derive(Debug, Clone)]
pub struct EgressConfig {
    /// Rate on the wire the port is shaped to, if any.
    pub rate: Option<BitRate>,
    /// Longest frame, for the shaper's burst.
    pub max_frame: u16,
    /// Lowest priority first.
    pub queues: [QueueConfig; PRIORITIES],
}

/// When an ECT frame over the threshold is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnMode {
    /// Always.
    Mark,
    /// Unless its sender has just been told by a CNP.
    MarkUnlessNotified,
    /// The same, and while the sender counts as told, marks from upstream are taken back to ECT(0).
    ClearAfterCnp,
    /// Never.
    Off,
}

#[derive(Debug)]
struct Queue {
    fifo: Fifo,
    /// Wire bytes waiting.
    depth: u64,
    /// Highest depth since last published.
    high: u64,
    /// When the watched depths were last risen to.
    crossed: [Nanos; 2],
    /// Since when something waits.
    waiting_since: Nanos,
    shaper: Shaper,
    /// Credit below the minimum rate.
    floor: Shaper,
    config: QueueConfig,
}

/// The egress side of one port.
#[derive(Debug)]
pub struct EgressPort {
    queues: [Queue; PRIORITIES],
    /// Queues with something to send.
    backlog: u8,
    /// Queues with a highest rate of their own.
    limited: u8,
    /// Queues with a minimum rate.
    floored: u8,
    /// Queues the peer has paused.
    paused: u8,
    /// Queues under a storm: nothing enters them.
    dropping: u8,
    scheduler: Scheduler,
    shaper: Shaper,
    rng: Xorshift,
    /// Queues whose gauges are stale.
    dirty: u8,
}

/// Time a polling worker may be away without losing rate: the burst a shaper saves up.
const SHAPER_BURST: Nanos = Nanos::from_micros(20);

fn shaper(rate: Option<BitRate>, max_frame: u16) -> Shaper {
    rate.map_or_else(Shaper::unlimited, |rate| {
        let burst = rate.bytes_in(SHAPER_BURST).max(2 * u64::from(max_frame));
        Shaper::new(rate, u32::try_from(burst).unwrap_or(u32::MAX))
    })
}

impl EgressPort {
    /// An empty port. `seed` makes its coin tosses repeatable.
    #[must_use]
    pub fn new(config: &EgressConfig, seed: u64) -> EgressPort {
        let queues = config.queues.clone().map(|config_of| Queue {
            fifo: Fifo::default(),
            depth: 0,
            high: 0,
            crossed: [Nanos::ZERO; 2],
            waiting_since: Nanos::ZERO,
            shaper: shaper(config_of.max_rate, config.max_frame),
            floor: shaper(config_of.min_rate, config.max_frame),
            config: config_of,
        });
        let (mut limited, mut floored) = (0, 0);
        for (priority, queue) in Priority::all().zip(&queues) {
            if queue.shaper.is_limited() {
                limited |= priority.bit();
            }
            if queue.floor.is_limited() {
                floored |= priority.bit();
            }
        }
        EgressPort {
            scheduler: Scheduler::new(&config.queues.each_ref().map(|queue| queue.discipline)),
            shaper: shaper(config.rate, config.max_frame),
            queues,
            backlog: 0,
            limited,
            floored,
            paused: 0,
            dropping: 0,
            rng: Xorshift::new(seed),
            dirty: u8::MAX,
        }
    }

    /// Wire bytes waiting in a queue.
    #[inline]
    #[must_use]
    pub fn depth(&self, priority: Priority) -> u64 {
        self.queues
            .get(priority.index())
            .map_or(0, |queue| queue.depth)
    }

    /// A queue as the buffer sees it, unless nothing may enter it.
    #[inline]
    #[must_use]
    pub fn admission(&self, priority: Priority) -> Option<crate::buffer::Queue> {
        let queue = self.queues.get(priority.index())?;
        (self.dropping & priority.bit() == 0).then_some(crate::buffer::Queue {
            depth: queue.depth,
            frames: queue.fifo.len() as u64,
            lossless: queue.config.lossless,
        })
    }

    /// Frames waiting in a queue.
    #[inline]
    #[must_use]
    pub fn waiting(&self, priority: Priority) -> usize {
        let queue = self.queues.get(priority.index());
        queue.map_or(0, |queue| queue.fifo.len())
    }

    /// Since when a queue is not empty, if it is not.
    #[must_use]
    pub fn waiting_since(&self, priority: Priority) -> Option<Nanos> {
        let queue = self.queues.get(priority.index());
        queue
            .filter(|queue| !queue.fifo.is_empty())
            .map(|queue| queue.waiting_since)
    }

    /// The queues that may not send until told otherwise.
    #[inline]
    pub const fn set_paused(&mut self, queues: u8) {
        self.paused = queues;
    }

    /// The queues that take nothing in until told otherwise.
    pub const fn set_dropping(&mut self, queues: u8) {
        self.dropping = queues;
    }

    /// Serves a queue otherwise from now on.
    pub fn set_discipline(&mut self, priority: Priority, discipline: Discipline) {
        if let Some(queue) = self.queues.get_mut(priority.index()) {
            queue.config.discipline = discipline;
            self.scheduler.set(priority, discipline);
        }
    }

    /// Gives a queue other settings; whether it is lossless stays, for the buffer counts on it. Full rates start anew.
    pub fn reconfigure(&mut self, priority: Priority, config: &QueueConfig, max_frame: u16) {
        let Some(queue) = self.queues.get_mut(priority.index()) else {
            return;
        };
        queue.shaper = shaper(config.max_rate, max_frame);
        queue.floor = shaper(config.min_rate, max_frame);
        queue.config = QueueConfig {
            lossless: queue.config.lossless,
            ..config.clone()
        };
        for (set, limited) in [
            (&mut self.limited, queue.shaper.is_limited()),
            (&mut self.floored, queue.floor.is_limited()),
        ] {
            *set = *set & !priority.bit() | if limited { priority.bit() } else { 0 };
        }
        self.scheduler.set(priority, config.discipline);
    }

    /// Charges the port for a frame that went past the queues.
    #[inline]
    pub fn charge(&mut self, wire_len: u16) {
        self.shaper.charge(wire_len);
    }

    /// Frames waiting in all queues.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.queues.iter().map(|queue| queue.fifo.len()).sum()
    }

    /// A queue's settings.
    #[inline]
    #[must_use]
    pub fn queue_config(&self, priority: Priority) -> Option<&QueueConfig> {
        self.queues.get(priority.index()).map(|queue| &queue.config)
    }

    /// Marks and drops early by other curves from now on.
    pub fn set_curves(&mut self, priority: Priority, ecn: Option<Red>, wred: Option<Red>) {
        if let Some(queue) = self.queues.get_mut(priority.index()) {
            queue.config.ecn = ecn;
            queue.config.wred = wred;
        }
    }

    /// Whether a lossy Not-ECT frame is dropped early at the queue's present depth.
    #[inline]
    pub fn wred_strikes(&mut self, priority: Priority) -> bool {
        match self.queues.get(priority.index()) {
            Some(Queue {
                config:
                    QueueConfig {
                        wred: Some(red),
                        lossless: false,
                        ..
                    },
                depth,
                ..
            }) => red.strikes(*depth, &mut self.rng),
            _ => false,
        }
    }

    /// Appends a frame to its queue.
    ///
    /// # Errors
    /// The frame, when the store has no cell left.
    #[inline]
    pub fn push<B>(
        &mut self,
        store: &mut FifoStore<Queued<B>>,
        frame: Queued<B>,
        now: Nanos,
    ) -> Result<(), Queued<B>> {
        let priority = frame.meta.priority;
        let wire_len = u64::from(frame.meta.wire_len);
        let Some(queue) = self.queues.get_mut(priority.index()) else {
            return Err(frame);
        };
        queue.fifo.push(store, frame)?;
        if self.backlog & priority.bit() == 0 {
            queue.waiting_since = now;
        }
        let before = queue.depth;
        queue.depth += wire_len;
        for (crossed, watch) in queue.crossed.iter_mut().zip(queue.config.watch) {
            if before < watch && queue.depth >= watch {
                *crossed = now;
            }
        }
        queue.high = queue.high.max(queue.depth);
        self.backlog |= priority.bit();
        self.dirty |= priority.bit();
        Ok(())
    }

    /// Moves frames into `out` while it has room and the rates allow, marking as they leave.
    #[inline]
    pub fn schedule<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<Queued<B>>,
        out: &mut ArrayVec<Queued<B>, BURST>,
        marking: &Marking<'_, impl FlowTap>,
        counters: &PortCounters,
    ) {
        if self.backlog & !self.paused == 0 {
            return;
        }
        self.shaper.refill(marking.now);
        let mut held_back = self.over_rate(marking.now) | self.paused;
        while !out.is_full() && self.shaper.ready() {
            let queues = &self.queues;
            let head = |priority: Priority| {
                let front = queues
                    .get(priority.index())
                    .and_then(|queue| queue.fifo.front(store));
                front.map_or(0, |frame| frame.meta.wire_len)
            };
            let offered = self.backlog & !held_back;
            let Some(priority) = self
                .below_floor(offered)
                .or_else(|| self.scheduler.pick(offered, head))
            else {
                break;
            };
            let Some(mut frame) = self.pop(store, priority) else {
                break;
            };
            let wire_len = frame.meta.wire_len;
            self.shaper.charge(wire_len);
            let Some(queue) = self.queues.get_mut(priority.index()) else {
                break;
            };
            queue.shaper.charge(wire_len);
            if self.floored & priority.bit() != 0 && queue.floor.ready() {
                queue.floor.charge(wire_len);
            }
            if !queue.shaper.ready() {
                held_back |= priority.bit();
            }
            if frame.meta.flags.has(MetaFlags::MARKABLE)
                && marking.applies(queue, &frame, &mut self.rng)
            {
                let l3 = frame
                    .buf
                    .data_mut()
                    .get_mut(usize::from(frame.meta.l3_off)..);
                ecn::set_ce(
                    l3.unwrap_or_default(),
                    frame.meta.flags.has(MetaFlags::IPV6),
                );
                if let Some(queue) = counters.queues.get(priority.index()) {
                    queue.ecn_marked.add(1);
                }
            }
            if frame.meta.flags.has(MetaFlags::MARKED) && marking.clears(&frame) {
                let l3 = frame
                    .buf
                    .data_mut()
                    .get_mut(usize::from(frame.meta.l3_off)..);
                let ipv6 = frame.meta.flags.has(MetaFlags::IPV6);
                ecn::clear_ce(l3.unwrap_or_default(), ipv6);
            }
            out.push(frame);
        }
    }

    /// Takes a frame off a queue: depth, backlog and the scheduler's books follow.
    #[inline]
    fn pop<B>(
        &mut self,
        store: &mut FifoStore<Queued<B>>,
        priority: Priority,
    ) -> Option<Queued<B>> {
        let queue = self.queues.get_mut(priority.index())?;
        let frame = queue.fifo.pop(store)?;
        queue.depth = queue.depth.saturating_sub(u64::from(frame.meta.wire_len));
        let empty = queue.fifo.is_empty();
        if empty {
            self.backlog &= !priority.bit();
        }
        self.dirty |= priority.bit();
        self.scheduler.sent(priority, frame.meta.wire_len, empty);
        Some(frame)
    }

    /// The highest queue that has not had its minimum rate.
    #[inline]
    fn below_floor(&self, offered: u8) -> Option<Priority> {
        if offered & self.floored == 0 {
            return None;
        }
        let mut queues = Priority::all().zip(&self.queues).rev();
        let below = queues.find(|(priority, queue)| {
            offered & self.floored & priority.bit() != 0 && queue.floor.ready()
        });
        below.map(|(priority, _)| priority)
    }

    /// Queues that have used up their own rate.
    #[inline]
    fn over_rate(&mut self, now: Nanos) -> u8 {
        let mut held_back = 0;
        if (self.limited | self.floored) != 0 {
            for (priority, queue) in Priority::all().zip(&mut self.queues) {
                queue.shaper.refill(now);
                queue.floor.refill(now);
                if !queue.shaper.ready() {
                    held_back |= priority.bit();
                }
            }
        }
        held_back
    }

    /// Takes everything out, oldest first within a queue; for a stop.
    pub fn drain<B>(&mut self, store: &mut FifoStore<Queued<B>>, mut each: impl FnMut(Queued<B>)) {
        for priority in Priority::all() {
            self.drain_queue(store, priority, &mut each);
        }
    }

    /// Takes everything out of one queue, oldest first.
    pub fn drain_queue<B>(
        &mut self,
        store: &mut FifoStore<Queued<B>>,
        priority: Priority,
        mut each: impl FnMut(Queued<B>),
    ) {
        while let Some(frame) = self.pop(store, priority) {
            each(frame);
        }
    }

    /// Publishes the depths that changed.
    #[inline]
    pub fn publish(&mut self, counters: &PortCounters) {
        if self.dirty == 0 {
            return;
        }
        for (queue, gauges) in self.queues.iter_mut().zip(&counters.queues) {
            gauges.depth.set(queue.depth);
            gauges.peak.raise(queue.high);
            for (gauge, crossed) in gauges.crossed.iter().zip(queue.crossed) {
                gauge.set(crossed.0);
            }
            queue.high = queue.depth;
        }
        self.dirty = 0;
    }
}

/// What decides about a mark besides the queue's own curve.
#[derive(Debug)]
pub struct Marking<'a, T> {
    /// The mode of the port.
    pub mode: EcnMode,
    /// Knows whose senders have been told.
    pub tap: &'a T,
    /// When.
    pub now: Nanos,
}

impl<T: FlowTap> Marking<'_, T> {
    /// Whether the mark this frame came with is taken back: its sender has been told, and would be told again by it.
    #[inline]
    fn clears<B>(&self, frame: &Queued<B>) -> bool {
        self.mode == EcnMode::ClearAfterCnp && self.tap.notified(frame.meta.slot, self.now)
    }

    /// Whether this frame, just taken off the queue, gets CE: by the depth it leaves behind.
    #[inline]
    fn applies<B>(&self, queue: &Queue, frame: &Queued<B>, rng: &mut Xorshift) -> bool {
        let Some(red) = &queue.config.ecn else {
            return false;
        };
        match self.mode {
            EcnMode::Off => false,
            EcnMode::Mark => red.strikes(queue.depth, rng),
            EcnMode::MarkUnlessNotified | EcnMode::ClearAfterCnp => {
                red.strikes(queue.depth, rng) && !self.tap.notified(frame.meta.slot, self.now)
            }
        }
    }
}

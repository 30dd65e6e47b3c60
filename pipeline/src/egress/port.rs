//! One port's egress side: queues, scheduler, shapers and marking put together.

pub use super::config::{EgressConfig, QueueConfig};
use super::fifo::{Fifo, FifoStore};
pub use super::marking::{EcnConfig, EcnMode, Marking, UpstreamCe};
use super::rng::Xorshift;
use super::scheduler::Scheduler;
use super::shaper::Shaper;
use crate::buffer::{Amount, ControlReserve};
use crate::burst::Run;
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::frame::{FrameBuf, Meta, Queued};
use crate::per::PerPriority;
use crate::units::{BitRate, Nanos, Priority};

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) fifo: Fifo,
    /// Amount that waits, including frames that were admitted and are not yet in the fifo.
    pub(super) waiting: Amount,
    /// Highest depth since last published.
    high: u64,
    /// Times at which the depth last rose to each of the watched depths.
    crossed: [Nanos; 2],
    /// Depth, and these times, as last published.
    reported: (u64, [Nanos; 2]),
    /// Time since which the queue is not empty.
    waiting_since: Nanos,
    pub(super) shaper: Shaper,
    /// Token bucket of the minimum rate: positive credit is what the queue was due by it and has not sent.
    pub(super) floor: Shaper,
    pub(super) config: QueueConfig,
}

/// Egress side of one port.
#[derive(Debug)]
pub struct EgressPort {
    pub(super) queues: PerPriority<Queue>,
    /// Queues with something to send.
    pub(super) backlog: u8,
    /// Queues with a maximum rate.
    pub(super) limited: u8,
    /// Queues with a minimum rate.
    pub(super) floored: u8,
    /// Queues that may not send now: the peer has paused them, or their transmit queue takes no more frames.
    pub(super) paused: u8,
    /// Queues under a storm: nothing enters them.
    dropping: u8,
    /// True if the link is down: nothing enters any queue.
    down: bool,
    pub(super) scheduler: Scheduler,
    pub(super) shaper: Shaper,
    pub(super) rng: Xorshift,
    /// Length of the longest frame in bytes, which shapers let pass whole.
    max_frame: u16,
    /// Longest interval between two visits of the worker: [`EgressConfig::away`].
    away: Nanos,
    /// Queues whose gauges are stale.
    dirty: u8,
    /// Time at which a queue rose to its second watched depth, until it is published; zero if there is none.
    alarm: Nanos,
}

/// Time a polling worker is often away: the least that a shaper saves up.
pub const SHAPER_BURST: Nanos = Nanos::from_micros(20);

fn shaper(rate: Option<BitRate>, max_frame: u16, away: Nanos) -> Shaper {
    rate.map_or_else(Shaper::unlimited, |rate| {
        let away = away.max(SHAPER_BURST);
        let burst = rate.bytes_in(away).max(2 * u64::from(max_frame));
        Shaper::new(rate, u32::try_from(burst).unwrap_or(u32::MAX))
    })
}

impl EgressPort {
    /// Returns an empty port. `seed` makes its random decisions repeatable.
    #[must_use]
    pub fn new(config: &EgressConfig, seed: u64) -> EgressPort {
        let queues = PerPriority(config.queues.clone().map(|config_of| Queue {
            fifo: Fifo::default(),
            waiting: Amount::ZERO,
            high: 0,
            crossed: [Nanos::ZERO; 2],
            reported: (0, [Nanos::ZERO; 2]),
            waiting_since: Nanos::ZERO,
            shaper: shaper(config_of.max_rate, config.max_frame, config.away),
            floor: shaper(config_of.min_rate, config.max_frame, config.away),
            config: config_of,
        }));
        let (mut limited, mut floored) = (0, 0);
        for (priority, queue) in queues.iter() {
            if queue.shaper.is_limited() {
                limited |= priority.bit();
            }
            if queue.floor.is_limited() {
                floored |= priority.bit();
            }
        }
        EgressPort {
            scheduler: Scheduler::new(&config.queues.each_ref().map(|queue| queue.discipline)),
            shaper: shaper(config.rate, config.max_frame, config.away),
            queues,
            backlog: 0,
            limited,
            floored,
            paused: 0,
            dropping: 0,
            down: false,
            rng: Xorshift::new(seed),
            max_frame: config.max_frame,
            away: config.away,
            dirty: u8::MAX,
            alarm: Nanos::ZERO,
        }
    }

    /// Returns the wire bytes waiting in a queue.
    #[inline]
    #[must_use]
    pub fn depth(&self, priority: Priority) -> u64 {
        self.queues[priority].waiting.bytes
    }

    /// Returns the queue as admission sees it; `None` if nothing may enter it.
    #[inline]
    #[must_use]
    pub fn admission(&self, priority: Priority) -> Option<crate::buffer::Queue> {
        let queue = &self.queues[priority];
        (self.closed() & priority.bit() == 0).then_some(crate::buffer::Queue {
            waiting: queue.waiting,
            lossless: queue.config.lossless,
            reserve: ControlReserve::amount(queue.config.reserve),
        })
    }

    /// Returns a queue that another worker owns, without limits: the owner enforces them.
    #[must_use]
    pub fn queue_abroad(&self, priority: Priority) -> crate::buffer::Queue {
        crate::buffer::Queue {
            waiting: Amount::ZERO,
            lossless: self.queue_config(priority).lossless,
            reserve: Amount::ZERO,
        }
    }

    /// Returns the number of frames in a queue, without those that bypass it.
    #[inline]
    #[must_use]
    pub fn waiting(&self, priority: Priority) -> usize {
        self.queues[priority].fifo.len()
    }

    /// Returns the time since which a queue is not empty; `None` if it is empty.
    #[must_use]
    pub fn waiting_since(&self, priority: Priority) -> Option<Nanos> {
        let queue = &self.queues[priority];
        (queue.waiting.frames > 0).then_some(queue.waiting_since)
    }

    /// Sets the queues that may not send.
    #[inline]
    pub const fn set_paused(&mut self, queues: u8) {
        self.paused = queues;
    }

    /// Sets the queues that accept nothing.
    pub const fn set_dropping(&mut self, queues: u8) {
        self.dropping = queues;
    }

    /// Sets whether the link is down.
    pub const fn set_down(&mut self, down: bool) {
        self.down = down;
    }

    /// Returns true if the link is down.
    #[inline]
    #[must_use]
    pub const fn is_down(&self) -> bool {
        self.down
    }

    /// Returns the queues that nothing enters.
    #[inline]
    const fn closed(&self) -> u8 {
        self.dropping | if self.down { u8::MAX } else { 0 }
    }

    /// Returns the drop reason of a queue that [admits](EgressPort::admission) nothing.
    #[must_use]
    pub const fn closed_for(&self) -> DropReason {
        if self.down {
            DropReason::LinkDown
        } else {
            DropReason::PfcStorm
        }
    }

    /// Returns the queues that nothing enters and that are not empty.
    #[inline]
    #[must_use]
    pub const fn to_empty(&self) -> u8 {
        self.closed() & self.backlog
    }

    /// Changes the rate the port is shaped to.
    pub fn set_rate(&mut self, rate: Option<BitRate>) {
        self.shaper = shaper(rate, self.max_frame, self.away);
    }

    /// Changes a queue's configuration, except that `lossless` stays, because the buffer depends on it. The shapers start with
    /// full credit.
    pub fn reconfigure(&mut self, priority: Priority, config: &QueueConfig) {
        let queue = &mut self.queues[priority];
        queue.shaper = shaper(config.max_rate, self.max_frame, self.away);
        queue.floor = shaper(config.min_rate, self.max_frame, self.away);
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

    /// Charges the port for a frame sent ahead of the queues.
    #[inline]
    pub fn charge(&mut self, wire_len: u16) {
        self.shaper.charge(i64::from(wire_len));
    }

    /// Returns true if a queue has anything to send.
    #[inline]
    #[must_use]
    pub const fn has_backlog(&self) -> bool {
        self.backlog != 0
    }

    /// Returns true if there is nothing to send and nothing to publish.
    #[inline]
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.backlog | self.dirty == 0
    }

    /// Returns the number of frames in all queues, without those that bypass them.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.queues.0.iter().map(|queue| queue.fifo.len()).sum()
    }

    /// Returns a queue's configuration.
    #[inline]
    #[must_use]
    pub fn queue_config(&self, priority: Priority) -> &QueueConfig {
        &self.queues[priority].config
    }

    /// Returns true if frames of this queue may be dropped early.
    #[inline]
    #[must_use]
    pub fn drops_early(&self, priority: Priority) -> bool {
        let queue = self.queue_config(priority);
        queue.wred.is_some() && !queue.lossless
    }

    /// Decides whether a lossy Not-ECT frame is dropped early at the queue's present depth.
    #[inline]
    pub fn wred_strikes(&mut self, priority: Priority) -> bool {
        let queue = &self.queues[priority];
        match &queue.config.wred {
            Some(red) if !queue.config.lossless => red.strikes(queue.waiting.bytes, &mut self.rng),
            _ => false,
        }
    }

    /// Appends a frame to its queue.
    ///
    /// # Errors
    /// Returns the buffer if the store has no cell left.
    #[inline]
    pub fn push<B>(
        &mut self,
        store: &mut FifoStore<B, Meta>,
        frame: Queued<B>,
        now: Nanos,
    ) -> Result<(), B> {
        let Queued { buf, meta } = frame;
        let (priority, one) = (meta.priority, Amount::frame(meta.wire_len()));
        self.queues[priority].fifo.push(store, buf, meta)?;
        self.join(priority, one, now);
        Ok(())
    }

    /// Accounts for admitted frames, which will bypass the queue or be put [into it](EgressPort::fill).
    #[inline]
    pub fn join(&mut self, priority: Priority, frames: Amount, now: Nanos) {
        let queue = &mut self.queues[priority];
        if self.backlog & priority.bit() == 0 {
            queue.waiting_since = now;
        }
        let before = queue.waiting.bytes;
        queue.waiting = queue.waiting.plus(frames);
        let [shallow, hard] = queue
            .config
            .watch
            .map(|watch| before < watch && queue.waiting.bytes >= watch);
        let [shallow_at, hard_at] = &mut queue.crossed;
        if shallow {
            *shallow_at = now;
        }
        if hard {
            (*hard_at, self.alarm) = (now, now);
        }
        queue.high = queue.high.max(queue.waiting.bytes);
        self.backlog |= priority.bit();
        self.dirty |= priority.bit();
    }

    /// Accounts for admitted frames that have left.
    #[inline]
    pub fn leave(&mut self, priority: Priority, frames: Amount) {
        let queue = &mut self.queues[priority];
        queue.waiting = queue.waiting.minus(frames);
        if queue.waiting.frames == 0 {
            self.backlog &= !priority.bit();
        }
        self.dirty |= priority.bit();
    }

    /// Puts the frames of an admitted run into their queue; `lost` takes those for which there are no cells.
    #[inline]
    pub fn fill<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<B, Meta>,
        run: &mut Run<B>,
        mut lost: impl FnMut(B, Meta),
    ) {
        let head = run.head;
        let mut metas = run.records.iter().map(|record| head.meta(record));
        let mut frames = run.frames.drain(..);
        self.queues[head.priority]
            .fifo
            .extend(store, &mut frames, &mut metas);
        for (buf, meta) in frames.zip(metas) {
            lost(buf, meta);
        }
    }

    /// Takes everything out, oldest first within a queue, for a stop.
    pub fn drain<B>(&mut self, store: &mut FifoStore<B, Meta>, mut each: impl FnMut(Queued<B>)) {
        for priority in Priority::all() {
            self.drain_queue(store, (priority, usize::MAX), &mut each);
        }
    }

    /// Takes up to `most` frames out of one queue, oldest first; returns their number.
    pub fn drain_queue<B>(
        &mut self,
        store: &mut FifoStore<B, Meta>,
        (priority, most): (Priority, usize),
        mut each: impl FnMut(Queued<B>),
    ) -> usize {
        let queue = &mut self.queues[priority];
        let (mut gone, mut drained) = (Amount::ZERO, 0);
        while drained < most
            && let Some((buf, meta)) = queue.fifo.pop(store)
        {
            gone = gone.plus(Amount::frame(meta.wire_len()));
            drained += 1;
            each(Queued { buf, meta });
        }
        self.leave(priority, gone);
        let empty = self.backlog & priority.bit() == 0;
        self.scheduler.sent(priority, 0, empty);
        drained
    }

    /// Publishes the depths that changed.
    #[inline]
    pub fn publish(&mut self, counters: &PortCounters) {
        if self.dirty == 0 {
            return;
        }
        for priority in Priority::all_of(self.dirty) {
            let queue = &mut self.queues[priority];
            let Some(gauges) = counters.queues.get(priority.index()) else {
                continue;
            };
            gauges.peak.raise(queue.high);
            let level = (queue.waiting.bytes, queue.crossed);
            if level != queue.reported {
                queue.reported = level;
                gauges.level.depth.set(queue.waiting.bytes);
                for (gauge, crossed) in gauges.level.crossed.iter().zip(queue.crossed) {
                    gauge.set(crossed.0);
                }
            }
            queue.high = queue.waiting.bytes;
        }
        self.dirty = 0;
        if self.alarm != Nanos::ZERO {
            counters.alarm.set(self.alarm.0);
            self.alarm = Nanos::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The control core reads it in every tick: each write costs both cores a cache line transfer.
    #[test]
    fn the_level_of_a_queue_is_written_only_when_it_is_another() {
        let config = EgressConfig {
            rate: None,
            max_frame: 1_522,
            away: Nanos::ZERO,
            queues: Default::default(),
        };
        let (mut port, counters) = (EgressPort::new(&config, 1), PortCounters::default());
        let (three, frame) = (Priority::new(3), Amount::frame(1_500));
        let level = &counters.queues[3].level;
        // A write by the worker would overwrite this.
        level.depth.set(7);
        port.join(three, frame, Nanos(5));
        port.leave(three, frame);
        port.publish(&counters);
        assert_eq!(
            (level.depth.get(), counters.queues[3].peak.get()),
            (7, 1_500)
        );
        port.join(three, frame, Nanos(6));
        port.publish(&counters);
        assert_eq!(level.depth.get(), 1_500);
    }

    #[test]
    fn a_rise_to_the_second_watched_depth_is_told_with_that_depth() {
        let mut queues: [QueueConfig; crate::units::PRIORITIES] = Default::default();
        queues[3].watch = [1_000, 2_000];
        let config = EgressConfig {
            rate: None,
            max_frame: 1_522,
            away: Nanos::ZERO,
            queues,
        };
        let (mut port, counters) = (EgressPort::new(&config, 1), PortCounters::default());
        let (three, frame) = (Priority::new(3), Amount::frame(1_500));
        for (at, alarm, depth) in [(5, 0, 1_500), (7, 7, 3_000), (9, 7, 4_500)] {
            port.join(three, frame, Nanos(at));
            assert!(
                counters.alarm.get() < alarm || alarm < at,
                "not before it is published"
            );
            port.publish(&counters);
            let queue = &counters.queues[3];
            assert_eq!(
                (counters.alarm.get(), queue.level.depth.get()),
                (alarm, depth)
            );
            assert_eq!(queue.level.crossed[0].get(), 5);
        }
        for _ in 0..2 {
            port.leave(three, frame);
        }
        port.join(three, frame, Nanos(11));
        port.publish(&counters);
        assert_eq!(counters.alarm.get(), 11, "a second rise");
    }
}

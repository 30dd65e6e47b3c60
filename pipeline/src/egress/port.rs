//! One port's egress side: queues, scheduler, shapers and marking put together.

pub use super::config::{EgressConfig, EgressQueueConfig};
use super::fifo::FifoStore;
pub use super::marking::{EcnConfig, EcnMode, Marking, UpstreamCe};
pub use super::queue::SHAPER_BURST;
use super::queue::{EgressQueue, shaper};
use super::rng::Xorshift;
use super::scheduler::{Scheduler, WeightSplit};
use super::shaper::Shaper;
use crate::buffer::{Amount, ControlReserve, QueueAdmission};
use crate::burst::Run;
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::frame::{FrameBuf, Meta, Queued};
use crate::moved_hosts::HostShare;
use crate::per::PerPriority;
use crate::units::{BitRate, Nanos, Priority};

/// Egress side of one port.
#[derive(Debug)]
pub struct EgressPort {
    pub(super) queues: PerPriority<EgressQueue>,
    /// Queues with something to send.
    pub(super) backlog: u8,
    /// Queues with a maximum rate.
    pub(super) has_max_rate: u8,
    /// Queues with a minimum rate.
    pub(super) has_min_rate: u8,
    /// Queues that may not send now: the peer has paused them, or their transmit queue takes no more frames.
    pub(super) blocked: u8,
    /// Queues that NPCC watches, whose frames from moved hosts go to another.
    watched: u8,
    /// Queue of the moved hosts and their share, since a host was moved for the first time.
    moved: Option<(Priority, Option<HostShare>)>,
    /// Queues under a storm: nothing enters them.
    dropping: u8,
    /// True if the link is down: nothing enters any queue.
    down: bool,
    pub(super) scheduler: Scheduler,
    pub(super) shaper: Shaper,
    pub(super) rng: Xorshift,
    /// Length of the longest frame in bytes, which shapers let pass whole.
    max_frame: u16,
    /// Longest interval between two visits of the worker: [`EgressConfig::max_absence`].
    max_absence: Nanos,
    /// Queues whose gauges are stale.
    dirty: u8,
    /// Time at which a queue rose to its second watched depth, until it is published; zero if there is none.
    alarm: Nanos,
}

impl EgressPort {
    /// Returns an empty port. `seed` makes its random decisions repeatable.
    #[must_use]
    pub fn new(config: &EgressConfig, seed: u64) -> EgressPort {
        let (max_frame, max_absence) = (config.max_frame, config.max_absence);
        let queues = config.queues.clone();
        let queues =
            PerPriority(queues.map(|queue| EgressQueue::new(queue, max_frame, max_absence)));
        let (mut has_max_rate, mut has_min_rate, mut watched) = (0, 0, 0);
        for (priority, queue) in queues.iter() {
            if queue.config.is_watched() {
                watched |= priority.bit();
            }
            if queue.shaper.is_limited() {
                has_max_rate |= priority.bit();
            }
            if queue.min_rate.is_limited() {
                has_min_rate |= priority.bit();
            }
        }
        EgressPort {
            scheduler: Scheduler::new(&config.queues.each_ref().map(|queue| queue.discipline)),
            shaper: shaper(config.rate, config.max_frame, config.max_absence),
            queues,
            backlog: 0,
            has_max_rate,
            has_min_rate,
            blocked: 0,
            watched,
            moved: None,
            dropping: 0,
            down: false,
            rng: Xorshift::new(seed),
            max_frame: config.max_frame,
            max_absence: config.max_absence,
            dirty: u8::MAX,
            alarm: Nanos::ZERO,
        }
    }

    /// Returns the wire bytes waiting in a queue.
    #[inline]
    #[must_use]
    pub fn depth(&self, priority: Priority) -> u64 {
        self.queues[priority].amount.bytes
    }

    /// Returns the queue as admission sees it; `None` if nothing may enter it.
    #[inline]
    #[must_use]
    pub fn admission(&self, priority: Priority) -> Option<QueueAdmission> {
        let queue = &self.queues[priority];
        (self.closed() & priority.bit() == 0).then_some(QueueAdmission {
            queued: queue.amount,
            lossless: queue.config.lossless,
            reserve: ControlReserve::amount(queue.config.reserve),
        })
    }

    /// Returns a queue that another worker owns, without limits: the owner enforces them.
    #[must_use]
    pub fn remote_admission(&self, priority: Priority) -> QueueAdmission {
        QueueAdmission {
            queued: Amount::ZERO,
            lossless: self.queue_config(priority).lossless,
            reserve: Amount::ZERO,
        }
    }

    /// Returns the time since which a queue is not empty; `None` if it is empty.
    #[must_use]
    pub fn nonempty_since(&self, priority: Priority) -> Option<Nanos> {
        let queue = &self.queues[priority];
        (queue.amount.frames > 0).then_some(queue.nonempty_since)
    }

    /// Sets the queues that may not send. Frames of moved hosts have the DSCP and PCP of a watched queue, by which the peer pauses them: their queue
    /// waits with it.
    #[inline]
    pub const fn set_blocked(&mut self, queues: u8) {
        self.blocked = queues;
        if queues & self.watched != 0
            && let Some((moved, _)) = self.moved
        {
            self.blocked |= moved.bit();
        }
    }

    /// Returns true if NPCC watches a queue.
    #[inline]
    #[must_use]
    pub const fn is_watched(&self, priority: Priority) -> bool {
        self.watched & priority.bit() != 0
    }

    /// Sets the queue of moved hosts, and the numbers of hosts by which it shares the weight of the watched queues; `None` while no host is moved.
    pub fn set_moved(&mut self, queue: Priority, share: Option<HostShare>) {
        if share.is_some() || self.moved.is_some() {
            self.moved = Some((queue, share));
        }
        self.divide_weights();
    }

    fn divide_weights(&mut self) {
        let shared = self.moved.and_then(|(queue, share)| Some((queue, share?)));
        self.scheduler
            .set_split(shared.map(|(moved, share)| WeightSplit {
                moved,
                others: self.watched & !moved.bit(),
                share,
            }));
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
        self.shaper = shaper(rate, self.max_frame, self.max_absence);
    }

    /// Changes a queue's configuration, except that `lossless` stays, because the buffer depends on it. The shapers start with
    /// full credit.
    pub fn reconfigure(&mut self, priority: Priority, config: &EgressQueueConfig) {
        let queue = &mut self.queues[priority];
        queue.reconfigure(config, self.max_frame, self.max_absence);
        for (set, limited) in [
            (&mut self.has_max_rate, queue.shaper.is_limited()),
            (&mut self.has_min_rate, queue.min_rate.is_limited()),
        ] {
            *set = *set & !priority.bit() | if limited { priority.bit() } else { 0 };
        }
        let watched = if config.is_watched() {
            priority.bit()
        } else {
            0
        };
        self.watched = self.watched & !priority.bit() | watched;
        self.scheduler.set(priority, config.discipline);
        self.divide_weights();
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
    pub fn queue_config(&self, priority: Priority) -> &EgressQueueConfig {
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
            Some(red) if !queue.config.lossless => red.strikes(queue.amount.bytes, &mut self.rng),
            _ => false,
        }
    }

    /// Appends a frame to its queue.
    ///
    /// # Errors
    /// Returns the buffer if the store has no slot left.
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
        self.account_in(priority, one, now);
        Ok(())
    }

    /// Accounts for admitted frames, which will bypass the queue or be put [into it](EgressPort::push_run).
    #[inline]
    pub fn account_in(&mut self, priority: Priority, frames: Amount, now: Nanos) {
        if self.queues[priority].add(frames, now) {
            self.alarm = now;
        }
        self.backlog |= priority.bit();
        self.dirty |= priority.bit();
    }

    /// Accounts for admitted frames that have left.
    #[inline]
    pub fn account_out(&mut self, priority: Priority, frames: Amount) {
        let queue = &mut self.queues[priority];
        queue.amount = queue.amount.minus(frames);
        if queue.amount.frames == 0 {
            self.backlog &= !priority.bit();
        }
        self.dirty |= priority.bit();
    }

    /// Puts the frames of an admitted run into their queue; `lost` takes those for which there are no slots.
    #[inline]
    pub fn push_run<B: FrameBuf>(
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
        let (mut removed, mut drained) = (Amount::ZERO, 0);
        while drained < most
            && let Some((buf, meta)) = queue.fifo.pop(store)
        {
            removed = removed.plus(Amount::frame(meta.wire_len()));
            drained += 1;
            each(Queued { buf, meta });
        }
        self.account_out(priority, removed);
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
            if let Some(gauges) = counters.queues.get(priority.index()) {
                self.queues[priority].publish(gauges);
            }
        }
        self.dirty = 0;
        if self.alarm != Nanos::ZERO {
            counters.alarm.set(self.alarm.0);
            self.alarm = Nanos::ZERO;
        }
    }
}

#[cfg(test)]
#[path = "port_tests.rs"]
mod tests;

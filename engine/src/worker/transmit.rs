//! Transmit side from the scheduler to the device: one queue, or one per priority where the device obeys pauses by itself.
//!
//! Law: frames of one priority keep their order; frames that the device does not take stay unsent, and their priority is not scheduled
//! again before they are gone.

use arrayvec::ArrayVec;
use npcc_pipeline::burst::Run;
use npcc_pipeline::counters::Stage;
use npcc_pipeline::datapath::Sent;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::egress::serve::TxSink;
use npcc_pipeline::frame::{FrameBuf, FrameVec, Queued};
use npcc_pipeline::tx_ring::{Counted, Device, Style, TxRing};
use npcc_pipeline::units::{BURST, BitRate, Nanos, PRIORITIES, PortId, Priority};

use super::dpdk::Dpdk;
use super::frame::Datapath;
use super::io::Io;
use super::probe::Probe;

/// Transmit side of a port.
#[derive(Debug)]
pub enum Transmit<I: Io = Dpdk> {
    /// One queue for all priorities.
    Single(TransmitQueue<I>),
    /// One queue per priority, lowest first.
    PerPriority(Box<PerPriorityQueues<I>>),
}

/// Transmit queue, with the unsent frames between pipeline and device.
#[derive(Debug)]
pub struct TransmitQueue<I: Io = Dpdk> {
    tx: I::Tx,
    /// Frames the device has not taken yet.
    unsent: FrameVec<I::Buf>,
    /// Totals of the unsent frames, which the pipeline gets once the device has taken them.
    unsent_totals: Sent,
    /// Account of the device's ring; `None` for a virtual device, which takes what it is given.
    ring: Option<Box<Ring>>,
}

/// Account of a device's ring, and what of it the port's counters have.
#[derive(Debug)]
struct Ring {
    account: TxRing,
    counted: Counted,
    /// True if the device holds frames of its own accord: then one that takes none has not stalled.
    obeys: bool,
}

impl<I: Io> TransmitQueue<I> {
    /// Wraps a transmit queue, with no unsent frames. `bound` is the most wire bytes in the device's ring, with the speed of its link; `None`
    /// for a virtual device.
    #[must_use]
    pub fn new(tx: I::Tx, bound: Option<(u64, BitRate)>) -> TransmitQueue<I> {
        TransmitQueue {
            ring: bound.map(|(bound, rate)| {
                Box::new(Ring {
                    account: TxRing::new(&tx, bound, rate),
                    counted: Counted::default(),
                    obeys: false,
                })
            }),
            tx,
            unsent: FrameVec::default(),
            unsent_totals: Sent::default(),
        }
    }

    /// Restricts the queue to frames of one priority, where each has its own.
    #[must_use]
    pub fn of(mut self, priority: Priority) -> TransmitQueue<I> {
        self.unsent_totals.tx_queue = priority;
        if let Some(ring) = &mut self.ring {
            ring.obeys = true;
        }
        self
    }

    /// Returns true if the device's ring has an account, and the driver a call that may correct it.
    #[must_use]
    pub fn may_answer(&self) -> bool {
        let ring = self.ring.as_ref();
        ring.is_some_and(|ring| ring.account.style() != Style::Absent)
    }

    /// Updates the account of the device's ring, and the queue's budget from it: the scheduler hands over what that ring may take, so that
    /// hardly any frame stays unsent when the peer pauses.
    #[inline]
    fn poll_ring(&mut self, now: Nanos) {
        if let Some(ring) = &mut self.ring {
            ring.account.poll(&self.tx, now);
        }
    }

    /// Hands frames to the device, and reports to the path those it took or freed; returns their number.
    #[inline]
    fn send(&mut self, path: &mut Datapath<I::Buf>, port: PortId, now: Nanos) -> usize {
        let taken = match &mut self.ring {
            None => self.tx.send(&mut self.unsent, BURST),
            Some(ring) => {
                let taken = ring.account.send(&mut self.tx, &mut self.unsent, now);
                let counted = ring.account.counted();
                if counted != ring.counted {
                    ring.count(counted, path, port);
                }
                taken
            }
        };
        let sent = self.settle(taken);
        if sent.amount.frames > 0 {
            path.sent(port, sent);
        }
        taken
    }

    /// Returns the totals of the `taken` frames, which the device took or freed.
    #[inline]
    fn settle(&mut self, taken: usize) -> Sent {
        let left = if self.unsent.is_empty() {
            Sent::default()
        } else {
            Sent::of(self.unsent.iter().map(|frame| frame.data().len()))
        };
        let before = self.unsent_totals;
        self.unsent_totals = Sent {
            tx_queue: before.tx_queue,
            ..left
        };
        debug_assert_eq!(before.amount.minus(left.amount).frames, taken as u64);
        Sent {
            amount: before.amount.minus(left.amount),
            bytes: before.bytes.saturating_sub(left.bytes),
            ..before
        }
    }
}

impl Ring {
    /// Adds to the port's counters what happened to the ring.
    #[cold]
    fn count<B: FrameBuf>(&mut self, counted: Counted, path: &Datapath<B>, port: PortId) {
        let before = std::mem::replace(&mut self.counted, counted);
        if let Some(counters) = path.counters().port(port.index()) {
            let flow = &counters.flow;
            flow.tx_held.add(counted.held - before.held);
            if !self.obeys {
                flow.tx_stalled.add(counted.stalled - before.stalled);
            }
            let answers = flow.tx_answers.get() + u64::from(counted.answers);
            flow.tx_answers.set(answers - u64::from(before.answers));
        }
    }
}

impl<I: Io> TxSink<I::Buf> for TransmitQueue<I> {
    #[inline]
    fn free_slots(&self) -> usize {
        self.unsent.free_slots()
    }

    #[inline]
    fn byte_budget(&self) -> i64 {
        self.ring
            .as_ref()
            .map_or(i64::MAX, |ring| ring.account.byte_budget())
    }

    #[inline]
    fn put(&mut self, frame: Queued<I::Buf>) {
        self.unsent_totals.add(frame.meta.len);
        if let Some(ring) = &mut self.ring {
            let bytes = u64::from(frame.meta.wire_len());
            ring.account.put(std::iter::once(frame.meta.len), bytes);
        }
        self.unsent.push(frame.buf);
    }

    #[inline]
    fn put_run(&mut self, run: &mut Run<I::Buf>) {
        self.unsent_totals.amount = self.unsent_totals.amount.plus(run.head.amount);
        self.unsent_totals.bytes += run.head.bytes;
        if let Some(ring) = &mut self.ring {
            let lengths = run.known().iter().map(|record| record.len);
            ring.account.put(lengths, run.head.amount.bytes);
        }
        self.unsent.put_run(run);
    }
}

impl<I: Io> Transmit<I> {
    /// Sends what `port` may send now; frames that the device does not take stay unsent. Returns the number sent.
    #[inline]
    pub fn send<P: Probe>(
        &mut self,
        path: &mut Datapath<I::Buf>,
        port: PortId,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        let queue = match self {
            Transmit::Single(queue) => queue,
            Transmit::PerPriority(queues) => return queues.send(path, port, now, probe),
        };
        queue.poll_ring(now);
        let mut sent = 0;
        if !queue.unsent.is_empty() {
            sent = queue.send(path, port, now);
            probe.stage_ends(Stage::Transmit);
            if !queue.unsent.is_empty() {
                return sent;
            }
        }
        path.egress(port, queue, now);
        probe.stage_ends(Stage::Schedule);
        if !queue.unsent.is_empty() {
            sent += queue.send(path, port, now);
            probe.stage_ends(Stage::Transmit);
        }
        sent
    }

    /// Returns true if a port that sent `last` frames may send more in this turn: the device took a burst, or a part of one, as drivers do that
    /// free late. Leftovers of a burst go first, with the next burst.
    #[inline]
    #[must_use]
    pub fn goes_on(&self, last: usize) -> bool {
        last >= BURST || (last > 0 && self.unsent_frames() > 0)
    }

    /// Sends a pause frame ahead of everything queued and unsent, by a queue that no pause holds; returns true if the device took it.
    #[cold]
    pub fn control(&mut self, frame: &mut FrameVec<I::Buf>, now: Nanos) -> bool {
        let queue = match self {
            Transmit::Single(queue) => queue,
            Transmit::PerPriority(queues) => {
                let control = usize::from(queues.control);
                let Some(queue) = queues.queues.get_mut(control) else {
                    return false;
                };
                queue
            }
        };
        let length = frame.first().map(|frame| frame.data().len());
        let sent = queue.tx.send(frame, 1) == 1;
        if sent
            && let Some(ring) = &mut queue.ring
            && let Some(length) = length
        {
            ring.account.add_sent(length, now);
        }
        sent
    }

    fn queues_mut(&mut self) -> &mut [TransmitQueue<I>] {
        match self {
            Transmit::Single(queue) => std::slice::from_mut(queue),
            Transmit::PerPriority(queues) => &mut queues.queues,
        }
    }

    /// Returns the number of unsent frames.
    #[must_use]
    pub fn unsent_frames(&self) -> usize {
        match self {
            Transmit::Single(queue) => queue.unsent.len(),
            Transmit::PerPriority(queues) => {
                queues.queues.iter().map(|queue| queue.unsent.len()).sum()
            }
        }
    }

    /// Sets the most wire bytes in each ring: the link has another speed.
    pub fn set_bound(&mut self, bound: u64, rate: BitRate) {
        for ring in self
            .queues_mut()
            .iter_mut()
            .filter_map(|queue| queue.ring.as_mut())
        {
            ring.account.set_bound(bound, rate);
        }
    }

    /// Counts unsent frames as dropped: the switch stops, or the link is down.
    pub fn abandon(&mut self, path: &mut Datapath<I::Buf>, port: PortId, reason: DropReason) {
        for queue in self.queues_mut() {
            path.capture_abandoned(port, reason, &queue.unsent);
            let tx_queue = queue.unsent_totals.tx_queue;
            path.abandon(port, queue.unsent_totals, reason);
            queue.unsent_totals = Sent {
                tx_queue,
                ..Sent::default()
            };
            if let Some(ring) = &mut queue.ring {
                ring.account.forget();
            }
            I::Buf::free_all(&mut queue.unsent);
        }
    }
}

/// One transmit queue per priority: a priority that the device blocks blocks no other.
#[derive(Debug)]
pub struct PerPriorityQueues<I: Io = Dpdk> {
    queues: ArrayVec<TransmitQueue<I>, PRIORITIES>,
    /// Priority by whose queue pause frames are sent: one that is never paused.
    control: u8,
    /// Frames given to all queues in this turn.
    accepted: usize,
}

impl<I: Io> PerPriorityQueues<I> {
    /// Wraps the queues of all priorities, lowest first; the device holds those of `paused` when its peer asks it to.
    #[must_use]
    pub fn new(queues: ArrayVec<TransmitQueue<I>, PRIORITIES>, paused: u8) -> PerPriorityQueues<I> {
        let free = (!paused).checked_ilog2().unwrap_or(7);
        let queues = Priority::all()
            .zip(queues)
            .map(|(priority, queue)| queue.of(priority));
        PerPriorityQueues {
            queues: queues.collect(),
            accepted: 0,
            control: u8::try_from(free).unwrap_or(7),
        }
    }

    fn send<P: Probe>(
        &mut self,
        path: &mut Datapath<I::Buf>,
        port: PortId,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        for queue in &mut self.queues {
            queue.poll_ring(now);
        }
        let mut moved = self.flush(path, port, now);
        probe.stage_ends(Stage::Transmit);
        let mut blocked = 0;
        for (priority, queue) in Priority::all().zip(&self.queues) {
            if !queue.unsent.is_empty() || queue.byte_budget() <= 0 {
                blocked |= priority.bit();
            }
        }
        path.set_tx_blocked(port, blocked);
        self.accepted = 0;
        path.egress(port, self, now);
        probe.stage_ends(Stage::Schedule);
        moved += self.flush(path, port, now);
        probe.stage_ends(Stage::Transmit);
        moved
    }

    fn flush(&mut self, path: &mut Datapath<I::Buf>, port: PortId, now: Nanos) -> usize {
        let mut moved = 0;
        for queue in self
            .queues
            .iter_mut()
            .filter(|queue| !queue.unsent.is_empty())
        {
            moved += queue.send(path, port, now);
        }
        moved
    }
}

impl<I: Io> TxSink<I::Buf> for PerPriorityQueues<I> {
    /// Returns the burst room left in this turn. A queue that is not blocked is empty, and takes a burst.
    #[inline]
    fn free_slots(&self) -> usize {
        BURST - self.accepted.min(BURST)
    }

    #[inline]
    fn tx_queue(&self, priority: Priority) -> Priority {
        priority
    }

    #[inline]
    fn put(&mut self, frame: Queued<I::Buf>) {
        self.accepted += 1;
        if let Some(queue) = self.queues.get_mut(frame.meta.priority.index()) {
            queue.put(frame);
        }
    }

    #[inline]
    fn put_run(&mut self, run: &mut Run<I::Buf>) {
        self.accepted += run.frames.len();
        if let Some(queue) = self.queues.get_mut(run.head.priority.index()) {
            queue.put_run(run);
        }
    }
}

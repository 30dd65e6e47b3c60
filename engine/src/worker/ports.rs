//! Device queues that a worker polls: those of its own ports, and receive queues of ports that another worker owns.

use npcc_pipeline::counters::Stage;
use npcc_pipeline::frame::{FrameBuf, FrameVec};
use npcc_pipeline::partial;
use npcc_pipeline::pause::PfcFrame;
use npcc_pipeline::tx_ring::SENDS;
use npcc_pipeline::units::{BURST, Nanos, PortId};

use super::dpdk::Dpdk;
use super::frame::Datapath;
use super::io::{Buffer, Io, Pool, Receive};
use super::probe::Probe;
use super::transmit::Transmit;

/// Device queues of one port.
#[derive(Debug)]
pub struct PortQueues<I: Io = Dpdk> {
    pub(super) id: PortId,
    pub(super) rx: RxPoller<I>,
    pub(super) tx: Transmit<I>,
    spare: Spare<I::Buf>,
}

impl<I: Io> PortQueues<I> {
    /// Wraps the queues, with no unsent frames.
    #[must_use]
    pub fn new(id: PortId, rx: RxPoller<I>, tx: Transmit<I>) -> PortQueues<I> {
        PortQueues {
            id,
            rx,
            tx,
            spare: Spare::default(),
        }
    }

    /// Receives one burst of at most `most` frames into the pipeline; returns their number.
    #[inline]
    pub(super) fn poll<P: Probe>(
        &mut self,
        path: &mut Datapath<I::Buf>,
        most: usize,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        self.rx.poll(self.id, path, most, now, probe)
    }

    /// Sends what may be sent now: more than one burst if several arrived together, so that a queue grows because of its link and not
    /// because several ports, or workers, feed it in one turn. Returns the number of frames.
    #[inline]
    pub(super) fn send<P: Probe>(
        &mut self,
        path: &mut Datapath<I::Buf>,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        let mut sent = self.tx.send(path, self.id, now, probe);
        let mut last = sent;
        while self.tx.goes_on(last) && sent < SENDS * BURST && path.has_more(self.id) {
            last = self.tx.send(path, self.id, now, probe);
            sent += last;
        }
        sent
    }

    /// Sends the PFC frame that is due, if any, ahead of what is queued and unsent.
    #[inline]
    pub(super) fn control(&mut self, path: &mut Datapath<I::Buf>, pool: &I::Pool, now: Nanos) {
        if let Some(frame) = path.control_due(self.id, now) {
            self.pause(path, pool, &frame, now);
        }
    }

    #[cold]
    fn pause(&mut self, path: &mut Datapath<I::Buf>, pool: &I::Pool, frame: &PfcFrame, now: Nanos) {
        // A frame that cannot be sent now is due again next turn.
        let sent = self
            .spare
            .filled(pool, &frame.bytes)
            .is_some_and(|spare| self.tx.control(spare, now));
        if sent {
            path.control_sent(self.id, frame, now);
            self.spare.keep(pool);
        } else {
            path.control_failed(self.id);
        }
    }

    /// Allocates the buffer of the first pause frame.
    #[cold]
    pub(super) fn keep_spare(&mut self, pool: &I::Pool) {
        self.spare.keep(pool);
    }
}

/// Buffer of the next pause frame, allocated in advance: the pool may be empty when it is needed, for that is when peers are paused.
#[derive(Debug)]
pub struct Spare<B>(FrameVec<B>);

impl<B> Default for Spare<B> {
    fn default() -> Spare<B> {
        Spare(FrameVec::default())
    }
}

impl<B: Buffer> Spare<B> {
    /// Allocates the buffer if there is none yet. If the pool has none, the next frame tries again.
    #[cold]
    pub fn keep(&mut self, pool: &impl Pool<B>) {
        if self.0.is_empty() {
            pool.alloc_bulk(&mut *self.0, 1);
        }
    }

    /// Returns the buffer filled with these bytes; `None` if no buffer is available.
    #[cold]
    pub fn filled(&mut self, pool: &impl Pool<B>, bytes: &[u8]) -> Option<&mut FrameVec<B>> {
        self.keep(pool);
        let filled = self.0.iter_mut().all(|buf| buf.fill(bytes));
        (filled && !self.0.is_empty()).then_some(&mut self.0)
    }
}

/// Receive queue of a port that another worker owns.
#[derive(Debug)]
pub struct RemoteQueue<I: Io = Dpdk> {
    /// Port that it receives from.
    pub id: PortId,
    /// Receive queue.
    pub rx: RxPoller<I>,
}

impl<I: Io> RemoteQueue<I> {
    /// Receives one burst into the pipeline; returns the number of frames.
    #[inline]
    pub(super) fn poll<P: Probe>(
        &mut self,
        path: &mut Datapath<I::Buf>,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        self.rx.poll(self.id, path, BURST, now, probe)
    }
}

/// Receive queue, with the row that its driver fills with a burst.
#[derive(Debug)]
pub struct RxPoller<I: Io = Dpdk> {
    pub(super) queue: I::Rx,
    /// Ring fill, in frames, from which the peer is paused; `None` if the driver does not report it.
    high: Option<u16>,
    /// True if the ring's contents at the start are old: the device was started long before.
    stale: bool,
    /// True if frames may come with checksums that a kernel left to a card.
    partial: bool,
    burst: FrameVec<I::Buf>,
}

impl<I: Io> RxPoller<I> {
    /// Wraps a queue, with no unsent frames. `stale`: the ring's contents at the start are old and are discarded. `partial`: checksums
    /// that a kernel left to a card are completed.
    #[must_use]
    pub fn new(queue: I::Rx, stale: bool, partial: bool) -> RxPoller<I> {
        RxPoller {
            high: high(queue.descriptors(), |frames| queue.holds_more_than(frames)),
            queue,
            stale,
            partial,
            burst: FrameVec::default(),
        }
    }

    /// Discards frames that came before the worker ran: a ring at most.
    pub(super) fn discard(&mut self) {
        let mut left = if self.stale {
            usize::from(self.queue.descriptors())
        } else {
            0
        };
        while left > 0 {
            let received = self.queue.receive(&mut self.burst, BURST);
            I::Buf::free_all(&mut self.burst);
            left = if received == 0 {
                0
            } else {
                left.saturating_sub(received)
            };
        }
    }

    /// Receives one burst of a port's queue into the pipeline, if it may take one; returns the number of frames.
    #[inline]
    pub(super) fn poll<P: Probe>(
        &mut self,
        port: PortId,
        path: &mut Datapath<I::Buf>,
        most: usize,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        if !path.may_receive(port) {
            return 0;
        }
        let received = self.queue.receive(&mut self.burst, most);
        probe.stage_ends(Stage::Receive);
        if received > 0 {
            if self.partial {
                self.complete_checksums(port, path);
            }
            probe.received(port, &mut self.burst);
            path.ingress_by(port, &mut self.burst, now, || {
                probe.stage_ends(Stage::Parse)
            });
            debug_assert!(self.burst.is_empty(), "the path takes them all");
            probe.stage_ends(Stage::Enqueue);
        }
        if received == BURST
            && let Some(high) = self.high
        {
            path.ring(port, self.queue.holds_more_than(high) == Some(true));
        }
        received
    }

    /// Completes the checksums that a kernel left to a card.
    #[cold]
    fn complete_checksums(&mut self, port: PortId, path: &Datapath<I::Buf>) {
        let frames = self.burst.iter_mut();
        let completed = frames.filter_map(|frame| partial::complete(frame.data_mut()).then_some(1));
        let completed = completed.sum();
        if let Some(counters) = path.counters().port(port.index()) {
            counters.checksums_completed.add(completed);
        }
    }
}

/// Returns the ring fill, in frames, from which the peer is paused: half of the ring that the driver gave. `None` if the driver does not
/// report it.
fn high(descriptors: u16, holds_more_than: impl Fn(u16) -> Option<bool>) -> Option<u16> {
    let half = descriptors / 2;
    holds_more_than(half).map(|_| half)
}

#[cfg(test)]
mod tests {
    use super::high;

    /// Earlier defect: the query was always about 512 frames; a driver that gave a ring of 256 refuses it, and neither it nor the bursts
    /// showed a full ring.
    #[test]
    fn half_of_the_ring_that_the_driver_gave_is_asked_for() {
        for descriptors in [64u16, 256, 1024, 4096] {
            let driver = |frames: u16| (frames < descriptors).then_some(false);
            assert_eq!(high(descriptors, driver), Some(descriptors / 2));
        }
        assert_eq!(high(1024, |_| None), None, "a driver that cannot tell");
    }
}

//! The device queues a worker polls: those of its own ports, and receive queues of ports that another worker owns.

use npcc_dpdk::{Burst, Mempool, RxQueue};
use npcc_pipeline::frame::FrameVec;
use npcc_pipeline::pause::PfcFrame;
use npcc_pipeline::units::{BURST, Nanos, PortId};

use super::frame::{Datapath, Frame};
use super::probe::Probe;
use super::stages::Stage;
use super::transmit::Transmit;

/// One port's device queues.
#[derive(Debug)]
pub struct PortQueues {
    pub(super) id: PortId,
    pub(super) rx: Source,
    /// Whether the driver tells how full the receive ring is.
    tells: bool,
    pub(super) tx: Transmit,
}

/// Bursts a port may send in one turn.
const SENDS: usize = 8;

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
        }
    }

    /// Receives one burst of at most `most` into the pipeline; returns its frames.
    #[inline]
    pub(super) fn receive<P: Probe>(
        &mut self,
        path: &mut Datapath,
        most: usize,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        let received = self.rx.receive(self.id, path, most, now, probe);
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
    pub(super) fn send<P: Probe>(
        &mut self,
        path: &mut Datapath,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        let mut sent = self.tx.send(path, self.id, now, probe);
        let mut last = sent;
        while last == BURST && sent < SENDS * BURST && path.has_more(self.id) {
            last = self.tx.send(path, self.id, now, probe);
            sent += last;
        }
        sent
    }

    /// Sends the PFC frame that is due, if any, past what is queued and in hand.
    #[inline]
    pub(super) fn control(&mut self, path: &mut Datapath, pool: &Mempool, now: Nanos) {
        if let Some(frame) = path.control_due(self.id, now) {
            self.pause(path, pool, &frame, now);
        }
    }

    #[cold]
    fn pause(&mut self, path: &mut Datapath, pool: &Mempool, frame: &PfcFrame, now: Nanos) {
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
pub struct RemoteQueue {
    /// The port.
    pub id: PortId,
    /// The queue.
    pub rx: Source,
}

impl RemoteQueue {
    /// Receives one burst into the pipeline; returns its frames.
    #[inline]
    pub(super) fn receive<P: Probe>(
        &mut self,
        path: &mut Datapath,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        self.rx.receive(self.id, path, BURST, now, probe)
    }
}

/// A receive queue, and where its driver puts a burst.
#[derive(Debug)]
pub struct Source {
    pub(super) queue: RxQueue,
    row: FrameVec<Frame>,
}

impl Source {
    /// Nothing in hand.
    #[must_use]
    pub fn new(queue: RxQueue) -> Source {
        Source {
            queue,
            row: FrameVec::default(),
        }
    }

    /// Receives one burst of a port's queue into the pipeline, if it may take one; returns its frames.
    #[inline]
    pub(super) fn receive<P: Probe>(
        &mut self,
        port: PortId,
        path: &mut Datapath,
        most: usize,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        if !path.may_receive(port) {
            return 0;
        }
        let received = self.queue.rx_up_to(&mut *self.row, most);
        probe.stage_ends(Stage::Receive);
        if received > 0 {
            probe.received(port, &mut self.row);
            path.ingress_by(port, &mut self.row, now, || probe.stage_ends(Stage::Parse));
            debug_assert!(self.row.is_empty(), "the path takes them all");
            probe.stage_ends(Stage::Enqueue);
        }
        received
    }
}

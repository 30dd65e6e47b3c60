//! From the scheduler to the device: one transmit queue, or one a priority where the device obeys pauses by itself.
//!
//! Law: frames of one priority keep their order; what the device does not take stays in hand, and its priority is not
//! scheduled again before it is gone.

use arrayvec::ArrayVec;
use npcc_dpdk::{Burst, TxQueue};
use npcc_pipeline::datapath::Outgoing;
use npcc_pipeline::egress::serve::Outlet;
use npcc_pipeline::frame::{FrameBuf, Queued, Row, wire_len};
use npcc_pipeline::stage::packet::Packet;
use npcc_pipeline::units::{BURST, Nanos, PRIORITIES, PortId, Priority};

use super::frame::{Datapath, Frame};
use super::outstanding::Outstanding;
use super::probe::Probe;
use super::stages::Stage;

/// A port's way out.
#[derive(Debug)]
pub enum Transmit {
    /// One queue for all.
    One(Lane),
    /// One queue a priority, lowest first.
    Eight(Box<Eight>),
}

/// One transmit queue and what is in hand between pipeline and device.
#[derive(Debug)]
pub struct Lane {
    tx: TxQueue,
    /// Frames the device has not taken yet.
    hand: Row<Frame>,
    /// Their bytes.
    bytes: u64,
    /// What the ring holds, where the driver can tell.
    ring: Option<Outstanding>,
}

impl Lane {
    /// Nothing in hand. `bound`: wire bytes the device's ring may hold, where its driver can tell.
    #[must_use]
    pub fn new(tx: TxQueue, bound: u64) -> Lane {
        let tells = tx.holds_at_least(1).is_some();
        Lane {
            ring: tells.then(|| Outstanding::new(bound, tx.descriptors())),
            tx,
            hand: Row::default(),
            bytes: 0,
        }
    }

    /// Whether the driver tells what its ring holds.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        self.ring.is_some()
    }

    /// Hands over what the device takes; frames and bytes.
    #[inline]
    fn send(&mut self, now: Nanos) -> (usize, u64) {
        let taken = match &mut self.ring {
            None => self.tx.tx(&mut *self.hand),
            Some(ring) => bounded(ring, &mut self.tx, &mut self.hand, now),
        };
        let left = if self.hand.is_empty() {
            0
        } else {
            lengths(&self.hand).map(|length| length as u64).sum()
        };
        let before = std::mem::replace(&mut self.bytes, left);
        (taken, before - left)
    }
}

impl Outlet<Frame> for Lane {
    const ASKS: bool = false;

    #[inline]
    fn room(&self) -> usize {
        self.hand.room()
    }

    #[inline]
    fn put(&mut self, frame: Queued<Frame>) {
        self.bytes += frame.buf.data().len() as u64;
        self.hand.put(frame);
    }

    #[inline]
    fn put_all(&mut self, frames: &mut Row<Frame>, _: &[Packet], bytes: u64) {
        self.bytes += bytes;
        self.hand.put_all(frames, &[], bytes);
    }
}

/// Of the frames in hand.
fn lengths(hand: &[Frame]) -> impl Iterator<Item = usize> {
    hand.iter().map(|frame| frame.data().len())
}

/// Hands over as much as the ring may hold.
fn bounded(ring: &mut Outstanding, tx: &mut TxQueue, hand: &mut Row<Frame>, now: Nanos) -> usize {
    ring.look(now, |frames| tx.holds_at_least(frames));
    // Before they are the device's.
    let wire: ArrayVec<u64, BURST> = lengths(hand)
        .map(|length| wire_len(length).into())
        .collect();
    let taken = tx.tx_up_to(&mut **hand, ring.admits(wire.iter().copied(), now));
    wire.iter()
        .take(taken)
        .for_each(|length| ring.gave(*length));
    taken
}

impl Transmit {
    /// Sends what `port` may send now; what the device does not take stays in hand.
    #[inline]
    pub fn send<P: Probe>(
        &mut self,
        path: &mut Datapath,
        port: PortId,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        let lane = match self {
            Transmit::One(lane) => lane,
            Transmit::Eight(lanes) => return lanes.send(path, port, now, probe),
        };
        if lane.hand.is_empty() {
            path.egress(port, lane, now);
            probe.stage_ends(Stage::Schedule);
            if lane.hand.is_empty() {
                return 0;
            }
        }
        let (taken, bytes) = lane.send(now);
        if taken > 0 {
            path.sent(port, taken as u64, bytes);
        }
        probe.stage_ends(Stage::Transmit);
        taken
    }

    /// Sends a pause frame past everything queued and in hand, by a queue that no pause holds.
    #[cold]
    pub fn control(&mut self, frame: &mut Burst<1>) -> bool {
        let tx = match self {
            Transmit::One(lane) => &mut lane.tx,
            Transmit::Eight(lanes) => {
                let control = usize::from(lanes.control);
                let Some(lane) = lanes.lanes.get_mut(control) else {
                    return false;
                };
                &mut lane.tx
            }
        };
        tx.tx(frame) == 1
    }

    fn lanes_mut(&mut self) -> &mut [Lane] {
        match self {
            Transmit::One(lane) => std::slice::from_mut(lane),
            Transmit::Eight(lanes) => &mut lanes.lanes,
        }
    }

    /// Frames in hand.
    #[must_use]
    pub fn in_hand(&self) -> usize {
        match self {
            Transmit::One(lane) => lane.hand.len(),
            Transmit::Eight(lanes) => lanes.lanes.iter().map(|lane| lane.hand.len()).sum(),
        }
    }

    /// Counts what is in hand as dropped: the switch stops.
    pub fn abandon(&mut self, path: &mut Datapath, port: PortId) {
        for lane in self.lanes_mut() {
            for bytes in lengths(&lane.hand) {
                path.abandon(port, bytes as u64);
            }
            lane.bytes = 0;
            Frame::free_all(&mut lane.hand);
        }
    }
}

/// One transmit queue a priority: a priority that the device holds back holds back no other.
///
/// With more than one priority held back at a time, up to a burst of each counts as sent while it is still in hand.
#[derive(Debug)]
pub struct Eight {
    lanes: ArrayVec<Lane, PRIORITIES>,
    /// The priority by whose queue pause frames go: one that is never paused.
    control: u8,
}

impl Eight {
    /// Of the queues of all priorities, lowest first; the device holds those of `paused` when its peer asks it to.
    #[must_use]
    pub fn new(lanes: ArrayVec<Lane, PRIORITIES>, paused: u8) -> Eight {
        let free = (!paused).checked_ilog2().unwrap_or(7);
        Eight {
            lanes,
            control: u8::try_from(free).unwrap_or(7),
        }
    }

    fn send<P: Probe>(
        &mut self,
        path: &mut Datapath,
        port: PortId,
        now: Nanos,
        probe: &mut P,
    ) -> usize {
        let mut moved = self.flush(path, port, now);
        probe.stage_ends(Stage::Transmit);
        let mut held_back = 0;
        for (priority, lane) in Priority::all().zip(&self.lanes) {
            if !lane.hand.is_empty() {
                held_back |= priority.bit();
            }
        }
        path.hold_back(port, held_back);
        let mut out = Outgoing::new();
        path.egress(port, &mut out, now);
        for frame in out {
            if let Some(lane) = self.lanes.get_mut(frame.meta.priority.index()) {
                lane.put(frame);
            }
        }
        probe.stage_ends(Stage::Schedule);
        moved += self.flush(path, port, now);
        probe.stage_ends(Stage::Transmit);
        moved
    }

    fn flush(&mut self, path: &mut Datapath, port: PortId, now: Nanos) -> usize {
        let mut moved = 0;
        for lane in self.lanes.iter_mut().filter(|lane| !lane.hand.is_empty()) {
            let (taken, bytes) = lane.send(now);
            if taken > 0 {
                path.sent(port, taken as u64, bytes);
            }
            moved += taken;
        }
        moved
    }
}

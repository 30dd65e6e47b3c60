//! Transmit side from the scheduler to the device: one queue, or one per priority where the device obeys pauses by itself.
//!
//! Law: frames of one priority keep their order; frames that the device does not take stay in hand, and their priority is not scheduled
//! again before they are gone.

use arrayvec::ArrayVec;
use npcc_dpdk::{Burst, TxQueue};
use npcc_pipeline::burst::Run;
use npcc_pipeline::datapath::Sent;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::egress::serve::Outlet;
use npcc_pipeline::frame::{FrameBuf, FrameVec, Queued, wire_len};
use npcc_pipeline::units::{BURST, BitRate, Nanos, PRIORITIES, PortId, Priority};

use super::frame::{Datapath, Frame};
use super::outstanding::Outstanding;
use super::probe::Probe;
use super::stages::Stage;

/// Transmit side of a port.
#[derive(Debug)]
pub enum Transmit {
    /// One queue for all priorities.
    One(Lane),
    /// One queue per priority, lowest first.
    Eight(Box<Eight>),
}

/// Transmit queue, with the frames in hand between pipeline and device.
#[derive(Debug)]
pub struct Lane {
    tx: TxQueue,
    /// Frames the device has not taken yet.
    hand: FrameVec<Frame>,
    /// Totals of the frames in hand, which the pipeline gets once the device has taken them.
    held: Sent,
    /// Account of the ring; `None` if the driver does not report what it holds.
    ring: Option<Box<Ring>>,
}

/// Account of a device's ring whose driver reports what it holds.
#[derive(Debug)]
struct Ring {
    outstanding: Outstanding,
    /// Lengths of the frames in hand: read here, and not from buffers that have left the cache.
    lengths: ArrayVec<u16, BURST>,
    /// Wire bytes it takes now.
    credit: i64,
}

impl Lane {
    /// Wraps a transmit queue, with no frames in hand. `bound` is the most wire bytes in the device's ring and `rate` the speed of its
    /// link, used if the driver reports what the ring holds.
    #[must_use]
    pub fn new(tx: TxQueue, (bound, rate): (u64, BitRate)) -> Lane {
        let tells = tx.holds_at_least(1).is_some();
        Lane {
            ring: tells.then(|| {
                Box::new(Ring {
                    outstanding: Outstanding::new(bound, rate, tx.descriptors()),
                    lengths: ArrayVec::new(),
                    credit: 0,
                })
            }),
            tx,
            hand: FrameVec::default(),
            held: Sent::default(),
        }
    }

    /// Restricts the lane to frames of one priority, where each has its own.
    #[must_use]
    pub fn of(mut self, priority: Priority) -> Lane {
        self.held.lane = priority;
        self
    }

    /// Returns true if the driver reports what its ring holds.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        self.ring.is_some()
    }

    /// Updates the account of the device's ring, and the lane's credit from it: the scheduler hands over what that ring may take, so that
    /// hardly any frame stays in hand when the peer pauses.
    #[inline]
    fn look(&mut self, now: Nanos) {
        if let Some(ring) = &mut self.ring {
            ring.outstanding
                .look(now, |frames| self.tx.holds_at_least(frames));
            ring.credit = ring.outstanding.credit(now);
        }
    }

    /// Hands frames to the device; returns the totals of those it took.
    #[inline]
    fn send(&mut self, now: Nanos) -> Sent {
        let taken = match &mut self.ring {
            None => self.tx.tx(&mut *self.hand),
            Some(ring) => ring.give(&mut self.tx, &mut self.hand, now),
        };
        let left = if self.hand.is_empty() {
            Sent::default()
        } else {
            Sent::of(self.hand.iter().map(|frame| frame.data().len()))
        };
        let before = self.held;
        self.held = Sent {
            lane: before.lane,
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
    /// Hands over as much as the ring may hold; returns the number of frames.
    fn give(&mut self, tx: &mut TxQueue, hand: &mut FrameVec<Frame>, now: Nanos) -> usize {
        let ring = &mut self.outstanding;
        let wire = |length: &u16| u64::from(wire_len(usize::from(*length)));
        let admitted = ring.admits(self.lengths.iter().map(wire), now);
        let taken = tx.tx_up_to(&mut **hand, admitted);
        for length in self.lengths.drain(..taken) {
            ring.gave(wire(&length), now);
        }
        taken
    }
}

impl Outlet<Frame> for Lane {
    #[inline]
    fn room(&self) -> usize {
        self.hand.room()
    }

    #[inline]
    fn credit(&self) -> i64 {
        self.ring.as_ref().map_or(i64::MAX, |ring| ring.credit)
    }

    #[inline]
    fn put(&mut self, frame: Queued<Frame>) {
        self.held.add(frame.meta.len);
        if let Some(ring) = &mut self.ring {
            ring.credit -= i64::from(frame.meta.wire_len());
            ring.lengths.push(frame.meta.len);
        }
        self.hand.push(frame.buf);
    }

    #[inline]
    fn put_run(&mut self, run: &mut Run<Frame>) {
        self.held.amount = self.held.amount.plus(run.head.amount);
        self.held.bytes += run.head.bytes;
        if let Some(ring) = &mut self.ring {
            ring.credit -= i64::try_from(run.head.amount.bytes).unwrap_or(i64::MAX);
            ring.lengths
                .extend(run.known().iter().map(|record| record.len));
        }
        self.hand.put_run(run);
    }
}

impl Transmit {
    /// Sends what `port` may send now; frames that the device does not take stay in hand. Returns the number sent.
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
        lane.look(now);
        if lane.hand.is_empty() {
            path.egress(port, lane, now);
            probe.stage_ends(Stage::Schedule);
            if lane.hand.is_empty() {
                return 0;
            }
        }
        let sent = lane.send(now);
        probe.stage_ends(Stage::Transmit);
        reported(path, port, sent)
    }

    /// Sends a pause frame ahead of everything queued and in hand, by a queue that no pause holds; returns true if the device took it.
    #[cold]
    pub fn control(&mut self, frame: &mut Burst<1>, now: Nanos) -> bool {
        let lane = match self {
            Transmit::One(lane) => lane,
            Transmit::Eight(lanes) => {
                let control = usize::from(lanes.control);
                let Some(lane) = lanes.lanes.get_mut(control) else {
                    return false;
                };
                lane
            }
        };
        let length = frame.iter().map(|mbuf| mbuf.data().len()).next();
        let sent = lane.tx.tx(frame) == 1;
        if sent
            && let Some(ring) = &mut lane.ring
            && let Some(length) = length
        {
            ring.outstanding.gave(u64::from(wire_len(length)), now);
        }
        sent
    }

    fn lanes_mut(&mut self) -> &mut [Lane] {
        match self {
            Transmit::One(lane) => std::slice::from_mut(lane),
            Transmit::Eight(lanes) => &mut lanes.lanes,
        }
    }

    /// Returns the number of frames in hand.
    #[must_use]
    pub fn in_hand(&self) -> usize {
        match self {
            Transmit::One(lane) => lane.hand.len(),
            Transmit::Eight(lanes) => lanes.lanes.iter().map(|lane| lane.hand.len()).sum(),
        }
    }

    /// Sets the most wire bytes in each ring: the link has another speed.
    pub fn set_bound(&mut self, bound: u64, rate: BitRate) {
        for ring in self
            .lanes_mut()
            .iter_mut()
            .filter_map(|lane| lane.ring.as_mut())
        {
            ring.outstanding.set_bound(bound, rate);
        }
    }

    /// Counts frames in hand as dropped: the switch stops, or the link is down.
    pub fn abandon(&mut self, path: &mut Datapath, port: PortId, reason: DropReason) {
        for lane in self.lanes_mut() {
            path.capture_abandoned(port, reason, &lane.hand);
            let lane_of = lane.held.lane;
            path.abandon(port, lane.held, reason);
            lane.held = Sent {
                lane: lane_of,
                ..Sent::default()
            };
            if let Some(ring) = &mut lane.ring {
                ring.lengths.clear();
            }
            Frame::free_all(&mut lane.hand);
        }
    }
}

/// Reports to the path the frames that the device took; returns their number.
#[inline]
fn reported(path: &mut Datapath, port: PortId, sent: Sent) -> usize {
    if sent.amount.frames > 0 {
        path.sent(port, sent);
    }
    usize::try_from(sent.amount.frames).unwrap_or(usize::MAX)
}

/// One transmit queue per priority: a priority that the device holds back holds back no other.
#[derive(Debug)]
pub struct Eight {
    lanes: ArrayVec<Lane, PRIORITIES>,
    /// Priority by whose queue pause frames are sent: one that is never paused.
    control: u8,
    /// Frames given to all lanes in this turn.
    taken: usize,
}

impl Eight {
    /// Wraps the queues of all priorities, lowest first; the device holds those of `paused` when its peer asks it to.
    #[must_use]
    pub fn new(lanes: ArrayVec<Lane, PRIORITIES>, paused: u8) -> Eight {
        let free = (!paused).checked_ilog2().unwrap_or(7);
        let lanes = Priority::all()
            .zip(lanes)
            .map(|(priority, lane)| lane.of(priority));
        Eight {
            lanes: lanes.collect(),
            taken: 0,
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
        for (priority, lane) in Priority::all().zip(&mut self.lanes) {
            lane.look(now);
            if !lane.hand.is_empty() || lane.credit() <= 0 {
                held_back |= priority.bit();
            }
        }
        path.hold_back(port, held_back);
        self.taken = 0;
        path.egress(port, self, now);
        probe.stage_ends(Stage::Schedule);
        moved += self.flush(path, port, now);
        probe.stage_ends(Stage::Transmit);
        moved
    }

    fn flush(&mut self, path: &mut Datapath, port: PortId, now: Nanos) -> usize {
        let mut moved = 0;
        for lane in self.lanes.iter_mut().filter(|lane| !lane.hand.is_empty()) {
            moved += reported(path, port, lane.send(now));
        }
        moved
    }
}

impl Outlet<Frame> for Eight {
    /// Returns the burst room left in this turn. A lane that is not held back is empty, and takes a burst.
    #[inline]
    fn room(&self) -> usize {
        BURST - self.taken.min(BURST)
    }

    #[inline]
    fn lane(&self, priority: Priority) -> Priority {
        priority
    }

    #[inline]
    fn put(&mut self, frame: Queued<Frame>) {
        self.taken += 1;
        if let Some(lane) = self.lanes.get_mut(frame.meta.priority.index()) {
            lane.put(frame);
        }
    }

    #[inline]
    fn put_run(&mut self, run: &mut Run<Frame>) {
        self.taken += run.frames.len();
        if let Some(lane) = self.lanes.get_mut(run.head.priority.index()) {
            lane.put_run(run);
        }
    }
}

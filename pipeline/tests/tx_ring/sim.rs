//! A port's transmit side in simulated time: the product's account of the ring, its shaper and its bursts, over a model of a card.

use npcc_card::{Answer, Card, Profile, TxProfile};
use npcc_pipeline::egress::shaper::Shaper;
use npcc_pipeline::frame::{FrameVec, wire_len};
use npcc_pipeline::tx_ring::{Device, SENDS, TxRing};
use npcc_pipeline::units::{BURST, BitRate, Nanos};

/// Transmit sides of all drivers in the table of cards, by the names of their profiles.
pub(crate) fn profiles() -> impl Iterator<Item = (&'static str, TxProfile)> {
    let all = Profile::all().into_iter();
    all.map(|profile| (profile.name, profile.tx()))
}

/// Card's queue; a frame is its length.
pub(crate) struct Queue {
    pub(crate) card: Card,
    pub(crate) now: Nanos,
}

impl Device<u16> for Queue {
    fn descriptors(&self) -> u16 {
        self.card.ring(0).descriptors()
    }

    fn is_full(&self, offset: u16) -> Option<bool> {
        match self.card.ring(0).status(offset) {
            Answer::Full => Some(true),
            Answer::Done => Some(false),
            Answer::Unsupported => None,
        }
    }

    fn send(&mut self, frames: &mut FrameVec<u16>, most: usize) -> usize {
        let lengths: Vec<u32> = frames
            .iter()
            .take(most)
            .map(|len| wire_len((*len).into()).into())
            .collect();
        let taken = self.card.burst(0, lengths.into_iter(), self.now.0 * 1_000);
        frames.drain(..taken);
        taken
    }

    fn length(&self, frame: &u16) -> usize {
        (*frame).into()
    }
}

/// A port with as many frames of one length waiting as it may send.
pub(crate) struct Port {
    pub(crate) queue: Queue,
    pub(crate) ring: TxRing,
    unsent: FrameVec<u16>,
    shaper: Shaper,
    length: u16,
    pub(crate) bound: u64,
    pub(crate) rate: BitRate,
    /// Most wire bytes that the card held after a burst.
    pub(crate) most: u64,
}

/// The default of `tx_outstanding`: two frames of 9,146 bytes, and 2 us of the link at least.
pub(crate) fn bound(rate: BitRate) -> u64 {
    rate.bytes_in(Nanos::from_micros(2)).max(2 * 9_146)
}

impl Port {
    /// Creates a port of a link of `gbps`.
    pub(crate) fn new(profile: TxProfile, descriptors: u16, gbps: u64, length: u16) -> Port {
        let rate = BitRate(gbps * 1_000_000_000);
        let queue = Queue {
            card: Card::new(profile, 1, descriptors, rate.0),
            now: Nanos::ZERO,
        };
        let shaped = BitRate(rate.0 / 1_000 * 999);
        let burst = shaped.bytes_in(Nanos::from_micros(20)).max(2 * 9_146);
        Port {
            ring: TxRing::new(&queue, bound(rate), rate),
            queue,
            unsent: FrameVec::default(),
            shaper: Shaper::new(shaped, u32::try_from(burst).unwrap()),
            length,
            bound: bound(rate),
            rate,
            most: 0,
        }
    }

    /// Lets the link hold, or send, from now on.
    pub(crate) fn hold(&mut self, holds: bool) {
        self.queue
            .card
            .hold(u64::from(holds), self.queue.now.0 * 1_000, |_, _| {});
    }

    /// Runs one turn after `away`: as many bursts as a port may send; returns the number of frames that the device took.
    pub(crate) fn turn(&mut self, away: Nanos) -> usize {
        self.turn_of(away, SENDS * BURST)
    }

    /// Runs one turn after `away` in which no more than `waiting` frames wait.
    pub(crate) fn turn_of(&mut self, away: Nanos, mut waiting: usize) -> usize {
        self.queue.now += away;
        let now = self.queue.now;
        self.queue.card.advance(now.0 * 1_000, |_, _| {});
        self.shaper.refill(now);
        let mut sent = 0;
        loop {
            self.ring.poll(&self.queue, now);
            let mut last = 0;
            if !self.unsent.is_empty() {
                last = self.ring.send(&mut self.queue, &mut self.unsent, now);
            }
            if self.unsent.is_empty() {
                self.schedule(waiting);
                waiting -= self.unsent.len();
                if !self.unsent.is_empty() {
                    last += self.ring.send(&mut self.queue, &mut self.unsent, now);
                }
            }
            sent += last;
            self.most = self.most.max(self.held());
            let is_more = last >= BURST || (last > 0 && !self.unsent.is_empty());
            if !is_more || sent >= SENDS * BURST {
                return sent;
            }
        }
    }

    fn schedule(&mut self, waiting: usize) {
        let wire = wire_len(self.length.into());
        let most = BURST.min(waiting);
        while self.unsent.len() < most && self.ring.byte_budget() > 0 && self.shaper.ready() {
            self.shaper.charge(wire.into());
            self.unsent.push(self.length);
            self.ring.put(std::iter::once(self.length), wire.into());
        }
    }

    /// Wire bytes that the card holds in truth.
    pub(crate) fn held(&self) -> u64 {
        self.queue.card.ring(0).bytes()
    }

    pub(crate) fn wire(&self) -> u64 {
        wire_len(self.length.into()).into()
    }
}

//! Transmission by a device's ring alone, to count instructions: the account of the ring and the driver's answers, without scheduler and
//! without what the device does with frames.

use npcc_card::answers::Frees;
use npcc_card::{Answer, Card, Picos, Reports, Status, TxProfile};
use npcc_pipeline::frame::{FrameVec, wire_len};
use npcc_pipeline::tx_ring::{Device, TxRing};
use npcc_pipeline::units::{BURST, BitRate, Nanos};

/// Styles in which drivers answer, by name.
pub const STYLES: [(&str, TxProfile); 4] = [
    ("exact", profile(Status::Exact, Reports::Each)),
    (
        "from-oldest",
        profile(Status::FromOldest, Reports::ByBurst(32)),
    ),
    ("rounded", profile(Status::Rounded, Reports::ByIndex(32))),
    ("none", profile(Status::Absent, Reports::ByIndex(32))),
];

const fn profile(status: Status, reports: Reports) -> TxProfile {
    TxProfile {
        status,
        reports,
        free_below: u16::MAX,
        unused: 1,
        frees: Frees::Reported,
    }
}

const DESCRIPTORS: u16 = 1_024;
const RATE: BitRate = BitRate(100_000_000_000);
/// Length of a frame, without FCS.
const LENGTH: u16 = 1_082;

/// Card's queue, whose frames are their lengths. Its functions are not inlined: instructions in them are not counted.
#[derive(Debug)]
struct Queue {
    card: Card,
    now: Picos,
}

impl Device<u16> for Queue {
    fn descriptors(&self) -> u16 {
        DESCRIPTORS
    }

    fn is_full(&self, offset: u16) -> Option<bool> {
        model_answer(&self.card, offset)
    }

    fn send(&mut self, frames: &mut FrameVec<u16>, most: usize) -> usize {
        model_send(self, frames, most)
    }

    fn length(&self, frame: &u16) -> usize {
        usize::from(*frame)
    }
}

#[inline(never)]
fn model_answer(card: &Card, offset: u16) -> Option<bool> {
    std::hint::black_box(match card.ring(0).status(offset) {
        Answer::Full => Some(true),
        Answer::Done => Some(false),
        Answer::Unsupported => None,
    })
}

#[inline(never)]
fn model_send(queue: &mut Queue, frames: &mut FrameVec<u16>, most: usize) -> usize {
    let lengths = frames.iter().take(most);
    let lengths = lengths.map(|length| u32::from(wire_len(usize::from(*length))));
    let taken = queue.card.burst(0, lengths, queue.now);
    frames.drain(..taken);
    taken
}

/// Ring of a card, given bursts of one size at the rate of its link.
#[derive(Debug)]
pub struct RingRig {
    queue: Queue,
    ring: Box<TxRing>,
    frames: FrameVec<u16>,
    burst: usize,
    now: u64,
    sent: usize,
}

impl RingRig {
    /// Creates the rig for a style of [`STYLES`] and bursts of `burst` frames; `None` if there is no such style.
    #[must_use]
    pub fn new(style: &str, burst: usize) -> Option<RingRig> {
        let (_, profile) = STYLES.into_iter().find(|(name, _)| *name == style)?;
        let queue = Queue {
            card: Card::new(profile, 1, DESCRIPTORS, RATE.0),
            now: 0,
        };
        Some(RingRig {
            ring: Box::new(TxRing::new(&queue, 25_000, RATE)),
            queue,
            frames: FrameVec::default(),
            burst: burst.clamp(1, BURST),
            now: 0,
            sent: 0,
        })
    }

    /// Gives one burst, at the time at which a link that is a little slower would have sent the one before.
    pub fn walk(&mut self) {
        let bytes = self.burst as u64 * u64::from(wire_len(usize::from(LENGTH)));
        self.now += RATE.time_of(bytes).0 * 1_001 / 1_000 + 1;
        self.queue.now = self.now * 1_000;
        self.queue.card.advance(self.queue.now, |_, _| {});
        while self.frames.len() < self.burst {
            self.frames.push(LENGTH);
        }
        self.sent += turn(
            &mut self.ring,
            &mut self.queue,
            &mut self.frames,
            Nanos(self.now),
        );
        self.ring.forget();
        self.frames.clear();
    }

    /// Returns the number of frames that the device took.
    #[must_use]
    pub const fn sent(&self) -> usize {
        self.sent
    }
}

/// Part of a turn that is counted.
#[inline(never)]
fn turn(ring: &mut TxRing, queue: &mut Queue, frames: &mut FrameVec<u16>, now: Nanos) -> usize {
    ring.poll(queue, now);
    let bytes = frames.len() as u64 * u64::from(wire_len(usize::from(LENGTH)));
    ring.put(frames.iter().copied(), bytes);
    let sent = ring.send(queue, frames, now);
    // No function of the model is left by a jump, which would end the count early.
    std::hint::black_box(sent)
}

//! What a worker and the control core share of one flow: 64 bytes, every word with one writer.
//!
//! The generation is the sequence of a seqlock ([`crate::seqlock`]): odd while the slot changes hands, so that counts of
//! two flows are never mixed. The control word names the generation it is meant for, so that one written late is ignored.

use npcc_pipeline::units::Nanos;

use crate::key::low32;
use crate::sync::{AtomicU64, Ordering, fence};

/// Bit 0 of the control word: paired, send no details.
const PAIRED: u64 = 1;
/// Bits 1..=11: the low bits of the generation the word is meant for.
const GENERATION_SHIFT: u32 = 1;
const GENERATION_MASK: u64 = 0x7ff;
/// The bits above are `notified_until`, in units of 4,096 ns.
const UNTIL_SHIFT: u32 = 12;

/// Counts of a slot, read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotReading {
    /// Wire bytes of data enqueued since the slot became this flow's.
    pub bytes: u64,
    /// Packets of any class.
    pub packets: u64,
    /// Sequence number of the latest request (SEND, WRITE, READ REQUEST, ATOMIC of RC).
    pub request: Option<u32>,
    /// The latest.
    pub last_seen: Nanos,
}

/// A request was seen; its sequence number is below.
const REQUESTED: u64 = 1 << 32;

#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Slot {
    /// Worker writes.
    generation: AtomicU64,
    /// Worker writes.
    bytes: AtomicU64,
    /// Worker writes.
    packets: AtomicU64,
    /// Worker writes: the latest request.
    request: AtomicU64,
    /// Worker writes, in ns.
    last_seen: AtomicU64,
    /// Control core writes.
    control: AtomicU64,
}

/// Generations of live slots are even: their lowest bit says nothing.
const fn tag_of(generation: u32) -> u64 {
    (generation as u64 >> 1) & GENERATION_MASK
}

/// Adds to a word that only this thread writes.
#[inline]
fn bump(word: &AtomicU64, n: u64) {
    let value = word.load(Ordering::Relaxed).wrapping_add(n);
    word.store(value, Ordering::Relaxed);
}

impl Slot {
    /// Makes the slot another flow's, and returns its generation. Worker only.
    pub(super) fn renew(&self) -> u32 {
        let generation = self.generation.load(Ordering::Relaxed);
        self.generation
            .store(generation.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.bytes.store(0, Ordering::Relaxed);
        self.packets.store(0, Ordering::Relaxed);
        self.request.store(0, Ordering::Relaxed);
        self.last_seen.store(0, Ordering::Relaxed);
        self.generation
            .store(generation.wrapping_add(2), Ordering::Release);
        low32(generation.wrapping_add(2))
    }

    /// Counts a packet. Worker only, as are the next four.
    #[inline]
    pub(super) fn count(&self, now: Nanos) {
        bump(&self.packets, 1);
        self.last_seen.store(now.0, Ordering::Relaxed);
    }

    /// The packet contributes to congestion.
    #[inline]
    pub(super) fn contribute(&self, wire_len: u16) {
        bump(&self.bytes, u64::from(wire_len));
    }

    /// The packet is a request.
    #[inline]
    pub(super) fn request(&self, psn: u32) {
        self.request
            .store(REQUESTED | u64::from(psn), Ordering::Relaxed);
    }

    /// When it was last counted.
    pub(super) fn last_seen(&self) -> Nanos {
        Nanos(self.last_seen.load(Ordering::Relaxed))
    }

    /// Packets so far.
    pub(super) fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Whether the control core has this flow paired. Worker only.
    #[inline]
    pub(super) fn is_paired(&self, generation: u32) -> bool {
        self.control_for(generation) & PAIRED != 0
    }

    /// Whether the present flow's sender counts as told. Worker only.
    #[inline]
    pub(super) fn is_notified(&self, now: Nanos) -> bool {
        let generation = low32(self.generation.load(Ordering::Relaxed));
        self.control_for(generation) >> UNTIL_SHIFT > now.0 >> UNTIL_SHIFT
    }

    fn control_for(&self, generation: u32) -> u64 {
        let word = self.control.load(Ordering::Relaxed);
        let meant = (word >> GENERATION_SHIFT) & GENERATION_MASK == tag_of(generation);
        if meant { word } else { 0 }
    }

    /// The counts; `None` when the slot is another flow's. Any thread.
    pub(super) fn read(&self, generation: u32) -> Option<SlotReading> {
        let before = self.generation.load(Ordering::Acquire);
        let packets = self.packets.load(Ordering::Relaxed);
        let request = self.request.load(Ordering::Relaxed);
        let reading = SlotReading {
            bytes: self.bytes.load(Ordering::Relaxed),
            packets,
            request: (request & REQUESTED != 0).then(|| low32(request)),
            last_seen: Nanos(self.last_seen.load(Ordering::Relaxed)),
        };
        fence(Ordering::Acquire);
        let after = self.generation.load(Ordering::Relaxed);
        (before == after && low32(before) == generation).then_some(reading)
    }

    /// Writes the control word. Control core only.
    pub(super) fn tell(&self, generation: u32, until: Nanos, paired: bool) {
        let until = until.0.div_ceil(1 << UNTIL_SHIFT) << UNTIL_SHIFT;
        let tag = tag_of(generation) << GENERATION_SHIFT;
        self.control
            .store(until | tag | u64::from(paired), Ordering::Relaxed);
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn counts_of_two_flows_are_never_mixed() {
        loom::model(|| {
            let slot = Arc::new(Slot::default());
            let first = slot.renew();
            slot.contribute(10);
            slot.count(Nanos(1));
            let worker = Arc::clone(&slot);
            let thread = loom::thread::spawn(move || {
                let second = worker.renew();
                worker.contribute(7);
                worker.count(Nanos(2));
                second
            });
            if let Some(reading) = slot.read(first) {
                assert_eq!(
                    (reading.bytes, reading.packets, reading.last_seen),
                    (10, 1, Nanos(1))
                );
            }
            let second = thread.join().unwrap();
            assert_eq!(slot.read(first), None);
            assert_eq!(slot.read(second).map(|reading| reading.bytes), Some(7));
        });
    }
}

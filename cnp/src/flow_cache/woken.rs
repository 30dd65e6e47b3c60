//! Ring of flows that send again: a worker reports every flow whose packet of data comes after [`PAUSE`] of silence.
//!
//! ```text
//!   worker:        a packet, the one before it long ago  ->  its slot's number into the ring
//!   control core:  reads the flows that send every tick, and leaves those alone that have paused
//! ```
//! Law: a flow that the control core has left alone after [`ASLEEP`] of silence is in the ring when it sends again. The ring is
//! never full: numbers not taken in time are overwritten, counted, and found by the slow round of readings.

use npcc_pipeline::sync::{AtomicU32, Ordering};
use npcc_pipeline::units::Nanos;

/// Silence after which a packet wakes its flow.
pub(super) const PAUSE: Nanos = Nanos::from_micros(64);
/// Silence after which a flow has surely paused, as its worker will see it: a burst is counted within the difference.
pub(crate) const ASLEEP: Nanos = Nanos::from_micros(128);
/// Capacity of the ring, a power of two.
#[cfg(not(loom))]
const LENGTH: usize = 16_384;
#[cfg(loom)]
const LENGTH: usize = 8;

/// Ring of slot numbers. The worker writes, the control core reads.
#[derive(Debug)]
pub(super) struct Woken {
    slots: Box<[AtomicU32]>,
    /// Number of entries written so far, modulo 2^32.
    written: AtomicU32,
}

impl Woken {
    pub(super) fn new() -> Woken {
        Woken {
            slots: (0..LENGTH).map(|_| AtomicU32::new(0)).collect(),
            written: AtomicU32::new(0),
        }
    }

    /// Reports that a slot's flow sends again. Worker only.
    #[inline]
    pub(super) fn note(&self, slot: u32) {
        let written = self.written.load(Ordering::Relaxed);
        if let Some(place) = self.slots.get(place(written)) {
            // Whoever sees it sees too that those before it are written.
            place.store(slot, Ordering::Release);
        }
        self.written
            .store(written.wrapping_add(1), Ordering::Release);
    }

    /// Takes the entry after the first `taken`, and advances `taken`; entries that were overwritten before are added to `lost`.
    pub(super) fn take(&self, taken: &mut u32, lost: &mut u64) -> Option<u32> {
        while self.written.load(Ordering::Acquire) != *taken {
            let slot = self.slots.get(place(*taken))?.load(Ordering::Acquire);
            // Looked at after the entry: while as many wait as the ring has, the next one takes the place of the oldest.
            let waiting = self.written.load(Ordering::Relaxed).wrapping_sub(*taken);
            if waiting < LENGTH_32 {
                *taken = taken.wrapping_add(1);
                return Some(slot);
            }
            // The oldest entries that are left will soon be overwritten: an eighth of the ring is skipped too.
            let skipped = waiting - LENGTH_32 / 8 * 7;
            *taken = taken.wrapping_add(skipped);
            *lost += u64::from(skipped);
        }
        None
    }
}

#[expect(clippy::cast_possible_truncation, reason = "LENGTH is small")]
const LENGTH_32: u32 = LENGTH as u32;

const fn place(number: u32) -> usize {
    number as usize % LENGTH
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_order_and_the_oldest_are_lost() {
        let ring = Woken::new();
        let (mut taken, mut lost) = (u32::MAX - 1, 0);
        ring.written.store(taken, Ordering::Relaxed);
        let mut take = || {
            let slot = ring.take(&mut taken, &mut lost);
            (slot, lost)
        };
        assert_eq!(take(), (None, 0));
        (7..10).for_each(|slot| ring.note(slot));
        let all = [take(), take(), take(), take()].map(|(slot, _)| slot);
        assert_eq!(all, [Some(7), Some(8), Some(9), None]);
        (0..LENGTH_32 + 10).for_each(|slot| ring.note(slot));
        let lost = LENGTH_32 / 8 + 10;
        assert_eq!(take(), (Some(lost), u64::from(lost)));
        for slot in lost + 1..LENGTH_32 + 10 {
            assert_eq!(take().0, Some(slot));
        }
        assert_eq!(take().0, None);
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn a_number_taken_was_written() {
        loom::model(|| {
            let ring = Arc::new(Woken::new());
            let worker = Arc::clone(&ring);
            let thread = loom::thread::spawn(move || (5..7).for_each(|slot| worker.note(slot)));
            let (mut taken, mut lost) = (0, 0);
            let mut seen = Vec::new();
            seen.extend(ring.take(&mut taken, &mut lost));
            seen.extend(ring.take(&mut taken, &mut lost));
            thread.join().unwrap();
            while let Some(slot) = ring.take(&mut taken, &mut lost) {
                seen.push(slot);
            }
            assert_eq!((seen, lost), (vec![5, 6], 0));
        });
    }

    /// Regression: a number that was overwritten while it was read was not counted as lost, and the one in its place was taken twice.
    #[test]
    fn a_number_that_is_overwritten_is_counted() {
        loom::model(|| {
            let ring = Arc::new(Woken::new());
            (1..LENGTH_32).for_each(|slot| ring.note(slot));
            let worker = Arc::clone(&ring);
            let thread = loom::thread::spawn(move || {
                (LENGTH_32..LENGTH_32 + 2).for_each(|slot| worker.note(slot));
            });
            let (mut taken, mut lost) = (0, 0);
            let mut seen = Vec::new();
            seen.extend(ring.take(&mut taken, &mut lost));
            thread.join().unwrap();
            while let Some(slot) = ring.take(&mut taken, &mut lost) {
                seen.push(slot);
            }
            assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
            assert_eq!(seen.len() as u64 + lost, u64::from(LENGTH_32) + 1);
        });
    }
}

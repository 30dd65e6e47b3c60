//! Table of the frames that are followed through the switch, by their buffers, whose addresses stay the same from driver to
//! driver.
//!
//! A frame is found again whichever worker holds it, so all workers read one table. It is written only while frames are
//! followed, once when one is chosen and once when nothing more happens to it.

use crate::sync::{AtomicU32, AtomicUsize, Ordering};

/// Most frames that are followed at a time.
#[cfg(not(loom))]
const PLACES: usize = 16;
#[cfg(loom)]
const PLACES: usize = 2;

/// Table of the frames that are followed.
#[derive(Debug, Default)]
pub struct Tracked {
    places: [Place; PLACES],
    /// Numbers assigned so far.
    numbers: AtomicU32,
    /// Most frames that are followed over the whole capture.
    most: u32,
}

#[derive(Debug, Default)]
struct Place {
    /// Address of the buffer; 0 is free.
    buffer: AtomicUsize,
    number: AtomicU32,
}

impl Tracked {
    /// Returns an empty table for a capture that follows `most` frames in all.
    #[must_use]
    pub fn new(most: u32) -> Tracked {
        Tracked {
            most,
            ..Tracked::default()
        }
    }

    /// Follows a frame from here on. Returns its number, or `None` if as many as allowed are or were followed.
    pub(super) fn follow(&self, buffer: usize) -> Option<u32> {
        // A buffer that is still in the table was freed where no capture looked, and is another frame now.
        self.forget(buffer);
        if self.numbers.load(Ordering::Relaxed) >= self.most {
            return None;
        }
        let free = |place: &&Place| {
            let taken = &place.buffer;
            let done = taken.compare_exchange(0, buffer, Ordering::Relaxed, Ordering::Relaxed);
            done.is_ok()
        };
        let place = self.places.iter().find(free)?;
        // Another worker may have followed the last frame since.
        let more = |numbers| (numbers < self.most).then_some(numbers + 1);
        let taken = self
            .numbers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let Ok(before) = taken else {
            place.buffer.store(0, Ordering::Relaxed);
            return None;
        };
        place.number.store(before + 1, Ordering::Relaxed);
        Some(before + 1)
    }

    /// Returns the number of a frame that is followed. A worker that was handed a frame sees what was written before.
    pub(super) fn number(&self, buffer: usize) -> Option<u32> {
        let place = self.place(buffer)?;
        Some(place.number.load(Ordering::Relaxed))
    }

    /// Forgets a frame to which nothing more happens.
    pub(super) fn forget(&self, buffer: usize) {
        if let Some(place) = self.place(buffer) {
            place.buffer.store(0, Ordering::Relaxed);
        }
    }

    fn place(&self, buffer: usize) -> Option<&Place> {
        let here = |place: &&Place| place.buffer.load(Ordering::Relaxed) == buffer;
        self.places.iter().find(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_be_are_followed_each_under_a_number_of_its_own() {
        let tracked = Tracked::new(20);
        let numbers: Vec<_> = (1..=17).map(|buffer| tracked.follow(buffer * 64)).collect();
        assert_eq!(numbers[15], Some(16));
        assert_eq!(numbers[16], None, "the table is full");
        assert_eq!(tracked.number(3 * 64), Some(3));
        tracked.forget(3 * 64);
        assert_eq!(tracked.number(3 * 64), None);
        for number in 17..=20 {
            assert_eq!(
                tracked.follow(64 * 64),
                Some(number),
                "a buffer that comes again"
            );
        }
        assert_eq!(tracked.follow(3 * 64), None, "so many and no more");
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// Regression: two workers that looked at the count at the same time followed one frame more than was requested.
    #[test]
    fn two_workers_together_follow_no_more_than_requested() {
        loom::model(|| {
            let tracked = Arc::new(Tracked::new(1));
            let other = Arc::clone(&tracked);
            let worker = loom::thread::spawn(move || other.follow(64));
            let numbers = [tracked.follow(128), worker.join().unwrap()];
            assert_eq!(numbers.iter().flatten().collect::<Vec<_>>(), [&1]);
        });
    }
}

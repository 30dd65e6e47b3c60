//! Ring of records, each of which is read whole or not at all.
//!
//! A ring has one writer and any number of readers, and lies in [`Words`]: memory of this process, or memory that outlives it
//! ([`crate::shared::SharedWords`]). A new record takes the place of the oldest one.
//!
//! Record `n`, counted from 1, is in slot `n % slots`. A slot is four things: the record's number, its length in words, a sum
//! over number and words, and the words.
//!
//! | writer | reader |
//! |---|---|
//! | `number` := 0, Relaxed | `number`, Acquire; 0: not whole |
//! | fence Release | length, sum, words, Relaxed |
//! | length := none, words, sum, length, Relaxed | fence Acquire |
//! | `number` := n, Release | `number` and the sum are as before: whole |
//!
//! Laws: a reader of the memory gets the words of one write (the seqlock of Boehm, MSPC 2012; loom model below). A writer that is killed
//! between two stores leaves a slot without a number, and all other slots as they were. A reader of a copy made during a write, and a
//! reader of damaged memory, detect it by the sum, which matches other words by a chance of 1 in 2^64.

use std::fmt::Debug;
use std::sync::Arc;

use crate::sync::{AtomicU64, Ordering, fence};

/// Number of words of a slot before the record's own: number, length, sum.
pub const HEAD: usize = 3;

/// Memory of words that several threads, or processes, access.
pub trait Words: Debug + Send + Sync {
    /// Returns all words.
    fn words(&self) -> &[AtomicU64];
}

impl Words for Vec<AtomicU64> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

#[cfg(not(loom))]
impl Words for crate::shared::SharedWords {
    fn words(&self) -> &[AtomicU64] {
        self.words()
    }
}

/// Place of a ring in its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of its first word.
    pub first: usize,
    /// Number of records that it keeps, 1 or more.
    pub slots: usize,
    /// Number of words of a slot: [`HEAD`] and those of the longest record.
    pub width: usize,
}

impl Place {
    /// Number of words of the whole ring.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.slots.saturating_mul(self.width)
    }

    /// Returns the words of a slot; `None` if the memory is too small or the ring has no slots.
    fn slot<'a>(&self, memory: &'a [AtomicU64], at: u64) -> Option<&'a [AtomicU64]> {
        let at = usize::try_from(at.checked_rem(self.slots as u64)?).ok()?;
        let first = self.first.checked_add(at.checked_mul(self.width)?)?;
        memory.get(first..first.checked_add(self.width)?)
    }
}

/// Record that was read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Number of the record in its ring, from 1.
    pub number: u64,
    /// Words of the record.
    pub words: Vec<u64>,
}

/// Contents of a ring when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    /// Whole records, oldest first: the number of the first one shows how many were overwritten.
    pub whole: Vec<Record>,
    /// Number of slots that were being written, were overwritten meanwhile, or are damaged.
    pub inconsistent: usize,
}

/// Writes record `number`, which is not 0; words beyond the width of a slot are left out. One thread at a time.
pub fn write(
    memory: &[AtomicU64],
    place: Place,
    number: u64,
    record: impl IntoIterator<Item = u64>,
) {
    let slot = place.slot(memory, number);
    let Some(([own, length, sum], room)) = slot.and_then(|slot| slot.split_first_chunk()) else {
        return;
    };
    own.store(0, Ordering::Relaxed);
    // A reader that sees a new word also sees that the number is gone, and a kill from here on finds it gone.
    fence(Ordering::Release);
    length.store(u64::MAX, Ordering::Relaxed);
    let (mut total, mut count) = (mix(!0, number), 0);
    for (to, word) in room.iter().zip(record) {
        to.store(word, Ordering::Relaxed);
        total = mix(total, word);
        count += 1;
    }
    // The sum first: an empty record must not look like a slot that was never written.
    sum.store(total, Ordering::Relaxed);
    length.store(count, Ordering::Relaxed);
    own.store(number, Ordering::Release);
}

/// Highest number of a record: more than a writer numbers in ten thousand years, and far from the end of the numbers.
const HIGHEST: u64 = 1 << 62;

/// Reads all slots, at any time, in any state.
#[must_use]
pub fn read(memory: &[AtomicU64], place: Place) -> Records {
    let mut records = Records::default();
    for slot in (0..place.slots as u64).map_while(|at| place.slot(memory, at)) {
        match whole(slot) {
            Some(record) => records.whole.push(record),
            // A slot that was never written; its pages may not be there yet.
            None if slot
                .iter()
                .take(HEAD)
                .all(|word| word.load(Ordering::Relaxed) == 0) => {}
            None => records.inconsistent += 1,
        }
    }
    records.whole.sort_unstable_by_key(|record| record.number);
    records
}

/// Returns the record of a slot, if it is whole.
fn whole(slot: &[AtomicU64]) -> Option<Record> {
    let ([own, length, sum], words) = slot.split_first_chunk()?;
    let number = own.load(Ordering::Acquire);
    // No writer ever comes to so high a number, after which a later one might find no more.
    if !(1..=HIGHEST).contains(&number) {
        return None;
    }
    let count = usize::try_from(length.load(Ordering::Relaxed)).ok()?;
    let (words, sum) = (words.get(..count)?, sum.load(Ordering::Relaxed));
    let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let words: Vec<u64> = words.iter().map(load).collect();
    fence(Ordering::Acquire);
    let is_whole = own.load(Ordering::Relaxed) == number
        && words.iter().copied().fold(mix(!0, number), mix) == sum;
    is_whole.then_some(Record { number, words })
}

/// Adds a word to the sum; the order of words matters.
const fn mix(sum: u64, word: u64) -> u64 {
    let mixed = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Packs octets into words, the last one filled up with zeros.
pub fn words_of(octets: &[u8]) -> impl Iterator<Item = u64> {
    octets.chunks(8).map(|some| {
        let mut word = [0; 8];
        word.iter_mut().zip(some).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    })
}

/// Unpacks the octets of words, zeros at the end included.
#[must_use]
pub fn octets_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Ring in its memory: one writer, and any number of readers.
#[derive(Debug)]
pub struct Ring {
    memory: Arc<dyn Words>,
    place: Place,
    /// Number of the newest record; only the writer stores it.
    newest: AtomicU64,
}

impl Ring {
    /// Opens the ring at this place, which continues after the newest record that is there.
    #[must_use]
    pub fn new(memory: Arc<dyn Words>, place: Place) -> Ring {
        let newest = newest(memory.words(), place).map_or(0, |record| record.number);
        Ring {
            memory,
            place,
            newest: AtomicU64::new(newest),
        }
    }

    /// Creates an empty ring in memory of its own, for records of at most `words` words.
    #[must_use]
    pub fn on_heap(slots: usize, words: usize) -> Ring {
        let place = Place {
            first: 0,
            slots,
            width: HEAD + words,
        };
        let memory: Vec<AtomicU64> = (0..place.words()).map(|_| AtomicU64::new(0)).collect();
        Ring::new(Arc::new(memory), place)
    }

    /// Writes a record over the oldest one; words beyond the width of a slot are left out. One thread at a time.
    pub fn push(&self, record: impl IntoIterator<Item = u64>) {
        let number = self.written() + 1;
        write(self.memory.words(), self.place, number, record);
        self.newest.store(number, Ordering::Relaxed);
    }

    /// Writes a record over the newest one, under its number; the first one where there is none. One thread at a time.
    pub fn replace(&self, record: impl IntoIterator<Item = u64>) {
        let number = self.written().max(1);
        write(self.memory.words(), self.place, number, record);
        self.newest.store(number, Ordering::Relaxed);
    }

    /// Number of records that were ever written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    /// Maximum number of words of a record.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.place.width.saturating_sub(HEAD)
    }

    /// Reads all slots.
    #[must_use]
    pub fn read(&self) -> Records {
        read(self.memory.words(), self.place)
    }

    /// Returns the record of this number, if it is still there and whole.
    #[must_use]
    pub fn record(&self, number: u64) -> Option<Record> {
        let record = whole(self.place.slot(self.memory.words(), number)?)?;
        (record.number == number).then_some(record)
    }

    /// Number of records that it keeps.
    #[must_use]
    pub const fn kept(&self) -> usize {
        self.place.slots
    }

    /// Returns the newest whole record.
    #[must_use]
    pub fn newest(&self) -> Option<Record> {
        newest(self.memory.words(), self.place)
    }
}

fn newest(memory: &[AtomicU64], place: Place) -> Option<Record> {
    read(memory, place).whole.pop()
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "records_tests.rs"]
mod tests;

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use super::*;

    #[test]
    fn every_interleaving_reads_one_write() {
        loom::model(|| {
            let ring = Arc::new(Ring::on_heap(1, 2));
            let writer = Arc::clone(&ring);
            let thread = loom::thread::spawn(move || {
                writer.push([1, 10]);
                writer.push([2, 20]);
            });
            if let Some(record) = ring.newest() {
                let number = record.number;
                assert_eq!(record.words, [number, number * 10]);
            }
            thread.join().unwrap();
            assert_eq!(ring.newest().unwrap().words, [2, 20]);
        });
    }
}

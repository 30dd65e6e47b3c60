//! A ring of records in shared words: one writer, and readers that may come at any moment, after the writer's end too.
//!
//! A slot is a number that grows by one a record, a sum over all other words, a time, a head and the record's own words. Who is
//! stopped between two stores leaves a slot whose sum is wrong, and so does who overwrites one that is being read: it is torn, and
//! counted. A slot of zeros was never written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use npcc_heap::shared::SharedWords;

/// Words of a slot before the record's own.
pub const HEAD: usize = 4;

/// Where a ring stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its first word.
    pub first: usize,
    /// Records it keeps.
    pub slots: usize,
    /// Words of a record, [`HEAD`] included.
    pub width: usize,
}

impl Place {
    /// Words in all.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.slots * self.width
    }
}

/// What is summed over; the order of the words counts.
#[inline]
const fn add(sum: u64, word: u64) -> u64 {
    (sum ^ word)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

/// The writer's end of a ring.
#[derive(Debug)]
pub struct Writer {
    memory: Arc<SharedWords>,
    place: Place,
    written: u64,
}

impl Writer {
    /// Of a ring that nobody else writes.
    #[must_use]
    pub const fn new(memory: Arc<SharedWords>, place: Place) -> Writer {
        Writer {
            memory,
            place,
            written: 0,
        }
    }

    /// Writes a record over the oldest; what of it has no room is left out.
    #[inline]
    pub fn write(&mut self, time: u64, head: u64, record: impl IntoIterator<Item = u64>) {
        let Place {
            first,
            slots,
            width,
        } = self.place;
        let at = usize::try_from(self.written % slots as u64).unwrap_or(0);
        let from = first + at * width;
        let Some([number, sum, rest @ ..]) = self.memory.words().get(from..from + width) else {
            return;
        };
        self.written += 1;
        let words = [time, head].into_iter().chain(record);
        let words = words.chain(std::iter::repeat(0));
        let mut total = add(0, self.written);
        for (to, word) in rest.iter().zip(words) {
            total = add(total, word);
            to.store(word, Ordering::Relaxed);
        }
        sum.store(total, Ordering::Relaxed);
        number.store(self.written, Ordering::Release);
    }
}

/// A record that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The how-manieth of its ring, from 1.
    pub number: u64,
    /// When, as its writer tells the time.
    pub time: u64,
    /// What its writer put before it.
    pub head: u64,
    /// Its words.
    pub words: Vec<u64>,
}

/// What a ring holds: whole records, oldest first, and how many were torn.
#[must_use]
pub fn read(memory: &[u64], place: Place) -> (Vec<Record>, usize) {
    let all = memory.get(place.first..place.first.saturating_add(place.words()));
    let slots = all.unwrap_or_default().chunks(place.width.max(HEAD));
    let mut records = Vec::new();
    let mut torn = 0;
    for slot in slots {
        let [number, sum, rest @ ..] = slot else {
            continue;
        };
        let [time, head, words @ ..] = rest else {
            continue;
        };
        let total = rest
            .iter()
            .fold(add(0, *number), |sum, word| add(sum, *word));
        if *number > 0 && total == *sum {
            records.push(Record {
                number: *number,
                time: *time,
                head: *head,
                words: words.to_vec(),
            });
        } else if slot.iter().any(|word| *word != 0) {
            torn += 1;
        }
    }
    records.sort_by_key(|record| record.number);
    (records, torn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACE: Place = Place {
        first: 8,
        slots: 5,
        width: HEAD + 3,
    };

    fn written(records: u64) -> (Arc<SharedWords>, Writer) {
        let memory = Arc::new(SharedWords::new("ring", 8 + PLACE.words()).unwrap());
        let mut writer = Writer::new(Arc::clone(&memory), PLACE);
        for n in 0..records {
            writer.write(n * 10, n, [n + 1, n + 2]);
        }
        (memory, writer)
    }

    fn copy(memory: &SharedWords) -> Vec<u64> {
        let words = memory.words().iter();
        words.map(|word| word.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn the_last_records_come_back_in_order() {
        let (memory, _) = written(13);
        let (records, torn) = read(&copy(&memory), PLACE);
        assert_eq!(torn, 0);
        let numbers: Vec<u64> = records.iter().map(|record| record.number).collect();
        assert_eq!(numbers, [9, 10, 11, 12, 13]);
        let last = &records[4];
        assert_eq!((last.time, last.head), (120, 12));
        assert_eq!(last.words, [13, 14, 0]);
        let (none, torn) = read(&copy(&written(0).0), PLACE);
        assert_eq!((none.len(), torn), (0, 0));
    }

    proptest! {
        /// A writer that is stopped after any number of its stores, over an older record or over nothing.
        #[test]
        fn a_record_that_was_being_written_is_torn_and_the_others_whole(
            before in 0..20u64,
            stores in 1..PLACE.width,
        ) {
            let (memory, mut writer) = written(before);
            let old = copy(&memory);
            writer.write(777, 7, [7, 7, 7]);
            let new = copy(&memory);
            let at = usize::try_from(before).unwrap() % PLACE.slots * PLACE.width + PLACE.first;
            // In the writer's order: the record, the sum, the number.
            let order: Vec<usize> = (2..PLACE.width).chain([1, 0]).map(|n| at + n).collect();
            let mut half = old.clone();
            for place in &order[..stores] {
                half[*place] = new[*place];
            }
            let (records, torn) = read(&half, PLACE);
            if half == old {
                prop_assert_eq!(torn, 0);
            } else {
                prop_assert_eq!(torn, 1, "{:?}", records);
                prop_assert_eq!(records.len() as u64, before.min(5) - u64::from(before >= 5));
            }
            prop_assert!(records.iter().all(|record| record.time != 777));
        }
    }
}

//! Seqlock: a record of words with one writer and any number of readers, none of which waits for another.
//!
//! | writer | reader |
//! |---|---|
//! | `sequence` := odd, Relaxed | `before` := `sequence`, Acquire |
//! | fence Release | words, Relaxed |
//! | words, Relaxed | fence Acquire |
//! | `sequence` := even, Release | `after` := `sequence`, Relaxed |
//!
//! Equal and even: the words are of one write. A reader that keeps meeting the writer gives up after [`TRIES`] and says so;
//! the writer never notices. Boehm, "Can seqlocks get along with programming language memory models?" (MSPC 2012).

use crate::sync::{AtomicU64, Ordering, fence};

/// Maximum number of tries of a reader.
const TRIES: usize = 64;

/// Cell of `N` words, aligned to a cache line: a write must not touch one more than it needs to.
#[derive(Debug)]
#[repr(align(64))]
pub struct SeqCell<const N: usize> {
    sequence: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> Default for SeqCell<N> {
    fn default() -> SeqCell<N> {
        SeqCell::new()
    }
}

impl<const N: usize> SeqCell<N> {
    /// Makes a cell of zeros.
    #[must_use]
    pub fn new() -> SeqCell<N> {
        SeqCell {
            sequence: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Reads a word of each of its lines, for the writer to bring them into the cache.
    #[must_use]
    pub fn look(&self) -> u64 {
        let last = self.words.last();
        self.sequence.load(Ordering::Relaxed) ^ last.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Replaces the words. One thread only.
    pub fn write(&self, words: &[u64; N]) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence
            .store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (cell, word) in self.words.iter().zip(words) {
            cell.store(*word, Ordering::Relaxed);
        }
        self.sequence
            .store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Reads the words of one write; `None` if every try met the writer.
    #[must_use]
    pub fn read(&self) -> Option<[u64; N]> {
        (0..TRIES).find_map(|_| self.try_read())
    }

    /// Returns a number that differs after each write from that before it.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Reads the words of one write, with the [version](SeqCell::version) after it; `None` if it met the writer.
    #[must_use]
    pub fn try_read_versioned(&self) -> Option<(u64, [u64; N])> {
        let before = self.sequence.load(Ordering::Acquire);
        if before & 1 == 1 {
            std::hint::spin_loop();
            return None;
        }
        let words = std::array::from_fn(|at| {
            self.words
                .get(at)
                .map_or(0, |cell| cell.load(Ordering::Relaxed))
        });
        fence(Ordering::Acquire);
        (self.sequence.load(Ordering::Relaxed) == before).then_some((before, words))
    }

    fn try_read(&self) -> Option<[u64; N]> {
        self.try_read_versioned().map(|(_, words)| words)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Number of writes: fewer under miri, where each takes a microsecond.
    const WRITES: u64 = if cfg!(miri) { 300 } else { 100_000 };

    #[test]
    fn a_reader_on_another_thread_sees_whole_writes_only() {
        let cell = Arc::new(SeqCell::<4>::new());
        let writer = Arc::clone(&cell);
        let thread = std::thread::spawn(move || {
            (1..WRITES).for_each(|n| writer.write(&[n, n * 3, n * 5, !n]))
        });
        while !thread.is_finished() {
            if let Some([a, b, c, d]) = cell.read().filter(|words| words[0] != 0) {
                assert_eq!((b, c, d), (a * 3, a * 5, !a));
            }
        }
        thread.join().unwrap();
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn every_interleaving_reads_one_write() {
        loom::model(|| {
            let cell = Arc::new(SeqCell::<2>::new());
            let writer = Arc::clone(&cell);
            let thread = loom::thread::spawn(move || {
                writer.write(&[1, 10]);
                writer.write(&[2, 20]);
            });
            for _ in 0..2 {
                if let Some([a, b]) = cell.try_read() {
                    assert_eq!(b, a * 10);
                }
            }
            thread.join().unwrap();
            assert_eq!(cell.try_read(), Some([2, 20]));
        });
    }
}

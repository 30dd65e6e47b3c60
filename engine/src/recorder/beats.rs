//! Heartbeat of each thread: when it last moved, as the management thread sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use npcc_heap::shared::SharedWords;

use super::layout::{BEATS, Head, THREAD, THREAD_NAME, THREADS, words_of};

/// Returns the wall-clock time, in ns since 1970.
#[must_use]
pub fn wall() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// Slot of one thread in the recorder, with one writer.
#[derive(Debug)]
pub struct Beat {
    memory: Arc<SharedWords>,
    first: usize,
}

impl Beat {
    /// Allocates a slot for the thread of this name; `None` when all are taken.
    pub fn new(memory: &Arc<SharedWords>, name: &str) -> Option<Beat> {
        let taken = memory.words().get(Head::Threads as usize)?;
        let next = |taken| (taken < THREADS as u64).then_some(taken + 1);
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let at = taken.fetch_update(set, get, next).ok()?;
        let beat = Beat {
            memory: Arc::clone(memory),
            first: BEATS + usize::try_from(at).ok()? * THREAD,
        };
        for (to, word) in beat.words().iter().zip(words_of(name, THREAD_NAME)) {
            to.store(word, Ordering::Relaxed);
        }
        beat.write(0, wall());
        Some(beat)
    }

    fn words(&self) -> &[AtomicU64] {
        let words = self.memory.words();
        words
            .get(self.first..self.first + THREAD)
            .unwrap_or_default()
    }

    /// Records that the thread had done `loops` loops when it moved at `now`, in ns since 1970.
    pub fn write(&self, loops: u64, now: u64) {
        if let [.., counted, moved] = self.words() {
            counted.store(loops, Ordering::Relaxed);
            moved.store(now, Ordering::Relaxed);
        }
    }
}

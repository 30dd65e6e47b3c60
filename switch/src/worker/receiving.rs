//! How workers agree that a stop is complete.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Workers that may still hand frames over to others.
///
/// A worker is done once it receives no more and holds nothing for others. What it handed over before it said so, others
/// see when they see that it did (release, acquire).
#[derive(Debug)]
pub struct Receiving(AtomicUsize);

impl Receiving {
    /// All of `workers` may.
    #[must_use]
    pub const fn new(workers: usize) -> Receiving {
        Receiving(AtomicUsize::new(workers))
    }

    pub(super) fn done(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    pub(super) fn nobody(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

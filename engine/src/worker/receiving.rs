//! Agreement of the workers that a stop is complete.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of workers that may still hand frames over to others.
///
/// A worker is done once it receives no more and holds no frames for others. Frames it handed over before are visible to a worker that sees
/// it is done (release, acquire).
#[derive(Debug)]
pub struct Receiving(AtomicUsize);

impl Receiving {
    /// Starts with all of `workers`.
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

//! Brings a burst's image entries in before they are looked up.
//!
//! A small table stays in the core's own cache and nothing is done here. Of a large one nearly every lookup waits for memory,
//! and a wrong guess about what it finds (a group below, another next hop) keeps the next from being asked for. So all are
//! asked for first, by loads that nothing depends on.

use std::hint::black_box;
use std::sync::atomic::Ordering;

use super::fib::FibReader;
use super::image::load;

/// Routes of which the images are looked up as they come.
pub(super) const FEW: usize = 4_096;

impl FibReader {
    /// Whether [`FibReader::warm_v4`] is worth its while.
    #[inline]
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.fib.large.load(Ordering::Relaxed)
    }

    /// Loads the first entry of each of these IPv4 addresses. Any number is allowed.
    #[inline]
    pub fn warm_v4(&self, addresses: impl Iterator<Item = u32>) {
        let root = self.images().v4.root.as_slice();
        let sum = addresses.fold(0, |sum, address| sum ^ load(root, (address >> 8) as usize));
        black_box(sum);
    }
}

//! Prefetch of a burst's image entries before they are looked up.
//!
//! A small table stays in the core's own cache and nothing is done here. With a large one nearly every lookup waits for
//! memory, and a mispredicted branch on its result (a group below, another next hop) keeps the next load from being issued. So
//! all are issued first, by loads that nothing depends on.

use std::hint::black_box;
use std::sync::atomic::Ordering;

use super::fib::FibReader;
use super::image::load;

/// Largest number of routes for which the entries are not prefetched.
pub(super) const FEW: usize = 4_096;

impl FibReader {
    /// Returns true if [`FibReader::warm_v4`] is worthwhile.
    #[inline]
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.fib.large.load(Ordering::Relaxed)
    }

    /// Loads the first entry of each of these IPv4 addresses, of which there may be any number.
    #[inline]
    pub fn warm_v4(&self, addresses: impl Iterator<Item = u32>) {
        let root = self.images().v4.root.as_slice();
        let sum = addresses.fold(0, |sum, address| sum ^ load(root, (address >> 8) as usize));
        black_box(sum);
    }
}

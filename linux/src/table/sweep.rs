//! Epochs: number of the dump that last contained an object, so that objects missing from a dump can be removed.

/// Number of a dump; wraps around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epoch(u8);

impl Epoch {
    /// Returns the epoch of the next dump. An object is removed at the end of the dump that did not contain it, so the numbers may be reused.
    #[must_use]
    pub const fn next(self) -> Epoch {
        Epoch(self.0.wrapping_add(1))
    }
}

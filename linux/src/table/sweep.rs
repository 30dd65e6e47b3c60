//! Which dump last named a thing, so that what a dump does not name can be swept out.

/// The number of a dump; one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epoch(u8);

impl Epoch {
    /// The next dump's. A thing is swept out at the end of the dump that did not name it, so the numbers may come round.
    #[must_use]
    pub const fn next(self) -> Epoch {
        Epoch(self.0.wrapping_add(1))
    }
}

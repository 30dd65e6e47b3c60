//! Cable lengths.

use super::scalar::quantity;

/// A length in millimetres.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Length(pub u64);

impl Length {
    /// So many metres.
    #[must_use]
    pub const fn from_metres(metres: u64) -> Self {
        Self(metres * 1_000)
    }

    /// Millimetres.
    #[must_use]
    pub const fn millimetres(self) -> u64 {
        self.0
    }
}

quantity!(
    Length, "a length",
    "write a number with m or km, such as 40m or 100km",
    parse: &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)],
    print: &[("km", 1_000_000), ("m", 1_000), ("cm", 10), ("mm", 1)],
    bare: None,
    pattern: r"^[0-9]+(\.[0-9]+)? *(mm|cm|m|km)$", examples: ["40m", "100km"]
);

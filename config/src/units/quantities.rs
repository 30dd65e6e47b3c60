//! Whole numbers of a base unit: table entries, millimetres.

use npcc_pipeline::quantity;

/// Number of table entries; `k` is 1024 and `M` is 1024 k, as tables are sized in powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(pub u64);

impl Count {
    /// Returns the number of entries.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the number of entries as a table's length.
    #[must_use]
    pub fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

quantity!(
    Count as "Count", "a number of entries",
    "write a whole number, with k for 1024 or M for 1048576 if you like, such as 16k or 65536",
    parse: &[("", 1), ("k", 1 << 10), ("K", 1 << 10), ("M", 1 << 20)],
    print: &[("M", 1 << 20), ("k", 1 << 10), ("", 1)],
    bare: Some(1),
    pattern: r"^[0-9]+(\.[0-9]+)? *[kKM]?$", examples: ["16k", 65536]
);

/// Length in millimetres.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Length(pub u64);

impl Length {
    /// Creates a length from metres.
    #[must_use]
    pub const fn from_metres(metres: u64) -> Self {
        Self(metres * 1_000)
    }

    /// Returns the length in millimetres.
    #[must_use]
    pub const fn millimetres(self) -> u64 {
        self.0
    }
}

quantity!(
    Length as "Length", "a length",
    "write a number with m or km, such as 40m or 100km",
    parse: &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)],
    // The last is for zero, which every unit divides.
    print: &[("km", 1_000_000), ("m", 1_000), ("cm", 10), ("mm", 1), ("m", 1)],
    bare: None,
    pattern: r"^[0-9]+(\.[0-9]+)? *(mm|cm|m|km)$", examples: ["40m", "100km"]
);

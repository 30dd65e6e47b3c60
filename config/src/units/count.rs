//! Table sizes.

use super::scalar::quantity;

/// A number of table entries; `k` is 1024 and `M` is 1024 k, as tables are sized in powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(pub u64);

impl Count {
    /// The number of entries.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

quantity!(
    Count, "a number of entries",
    "write a whole number, with k for 1024 or M for 1048576 if you like, such as 16k or 65536",
    parse: &[("", 1), ("k", 1 << 10), ("K", 1 << 10), ("M", 1 << 20)],
    print: &[("M", 1 << 20), ("k", 1 << 10), ("", 1)],
    bare: Some(1),
    pattern: r"^[0-9]+(\.[0-9]+)? *[kKM]?$", examples: ["16k", 65536]
);

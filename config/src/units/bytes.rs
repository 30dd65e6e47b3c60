//! Sizes in bytes.

use super::scalar::quantity;

/// A size in bytes. `KB`, `MB`, `GB` are powers of 1000; `KiB`, `MiB`, `GiB` of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

quantity!(
    Bytes, "a size",
    "write bytes as a number with B, KB, KiB, MB, MiB, GB or GiB, such as 64MB or 1.5MiB",
    parse: &[
        ("", 1), ("B", 1),
        ("KB", 1_000), ("kB", 1_000), ("KiB", 1 << 10),
        ("MB", 1_000_000), ("MiB", 1 << 20),
        ("GB", 1_000_000_000), ("GiB", 1 << 30),
    ],
    print: &[
        ("GiB", 1 << 30), ("GB", 1_000_000_000), ("MiB", 1 << 20), ("MB", 1_000_000),
        ("KiB", 1 << 10), ("KB", 1_000), ("B", 1),
    ],
    bare: Some(1),
    pattern: r"^[0-9]+(\.[0-9]+)? *([KMG]i?B|kB|B)?$", examples: ["64MB", "20KB", "1.5MiB", 9216]
);

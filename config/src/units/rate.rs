//! Rates in bits per second.

use super::Bytes;
use super::scalar::quantity;

/// A rate in bits per second, powers of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(pub u64);

impl Rate {
    /// Bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// What this rate carries in `time`, rounded down; saturates.
    #[must_use]
    pub fn bytes_in(self, time: super::Time) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(time.0) / 8_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

quantity!(
    Rate, "a rate",
    "write bits per second as a number with K, M, G or T, with or without bps, such as 100G, 25Gbps or 10M",
    parse: &[
        ("", 1), ("bps", 1),
        ("k", 1_000), ("K", 1_000), ("kbps", 1_000), ("Kbps", 1_000), ("kbit", 1_000),
        ("M", 1_000_000), ("Mbps", 1_000_000), ("Mbit", 1_000_000),
        ("G", 1_000_000_000), ("Gbps", 1_000_000_000), ("Gbit", 1_000_000_000),
        ("T", 1_000_000_000_000), ("Tbps", 1_000_000_000_000), ("Tbit", 1_000_000_000_000),
    ],
    print: &[
        ("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("K", 1_000), ("bps", 1),
    ],
    bare: Some(1),
    pattern: r"^[0-9]+(\.[0-9]+)? *([kKMGT]?(bps|bit)?)?$", examples: ["100G", "25Gbps", "10M"]
);

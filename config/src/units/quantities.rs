//! Whole numbers of a base unit: bytes, table entries, millimetres, bits per second, nanoseconds.

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

/// A number of table entries; `k` is 1024 and `M` is 1024 k, as tables are sized in powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(pub u64);

impl Count {
    /// The number of entries.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of entries, as a table's length.
    #[must_use]
    pub fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
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
    pub fn bytes_in(self, time: Time) -> Bytes {
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

/// A time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// So many microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }
}

impl From<Time> for std::time::Duration {
    fn from(time: Time) -> Self {
        Self::from_nanos(time.0)
    }
}

quantity!(
    Time, "a time",
    "write a number with ns, us, ms or s, such as 20us or 200ms",
    parse: &[
        ("ns", 1), ("us", 1_000), ("\u{b5}s", 1_000), ("\u{3bc}s", 1_000),
        ("ms", 1_000_000), ("s", 1_000_000_000),
    ],
    print: &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)],
    bare: None,
    pattern: r"^[0-9]+(\.[0-9]+)? *(ns|us|µs|ms|s)$", examples: ["20us", "200ms"]
);

//! Times in nanoseconds.

use super::scalar::quantity;

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

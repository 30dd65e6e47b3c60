//! Queue depths: bytes, or the time the queue needs to drain them.

use std::str::FromStr;

use npcc_pipeline::textual;

use super::{BitRate, Bytes, Nanos, UnitError};

const ACCEPTED: &str =
    "write a size, such as 20KB, or a time of the queue's drain rate, such as 30us";

/// Queue depth, in bytes or as a time of the queue's drain rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, derive_more::Display)]
pub enum Threshold {
    /// Fixed number of bytes, whatever the rate.
    Bytes(Bytes),
    /// Number of bytes that the queue drains in this time.
    Time(Nanos),
}

impl Threshold {
    /// Creates a depth of so many microseconds of the drain rate.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self::Time(Nanos::from_micros(us))
    }

    /// Returns the depth in bytes for a queue that drains at `drain`, without any floor.
    #[must_use]
    pub fn bytes(&self, drain: BitRate) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.0,
            Self::Time(time) => drain.bytes_in(*time),
        }
    }

    /// Returns the depth as [`bytes`](Self::bytes), but at least four frames of `mtu` bytes if given as a time: below
    /// that a depth reflects packet sizes, not congestion. Depths given in bytes are taken as written.
    #[must_use]
    pub fn bytes_floored(&self, drain: BitRate, mtu: u16) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.0,
            Self::Time(_) => self.bytes(drain).max(4 * u64::from(mtu)),
        }
    }

    /// Returns twice this depth; saturates.
    #[must_use]
    pub const fn doubled(self) -> Self {
        match self {
            Self::Bytes(Bytes(n)) => Self::Bytes(Bytes(n.saturating_mul(2))),
            Self::Time(Nanos(n)) => Self::Time(Nanos(n.saturating_mul(2))),
        }
    }
}

impl FromStr for Threshold {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if let Ok(bytes) = text.parse() {
            return Ok(Self::Bytes(bytes));
        }
        match text.parse() {
            Ok(time) => Ok(Self::Time(time)),
            Err(_) => Err(UnitError::not(text, "a queue depth", ACCEPTED)),
        }
    }
}

textual!(
    Threshold as "Threshold", "a queue depth", ACCEPTED,
    numbers: { visit_u64(n: u64) => Ok(Threshold::Bytes(Bytes(n))), },
    schema: |generator| {
        "description": ACCEPTED,
        "anyOf": [generator.subschema_for::<Bytes>(), generator.subschema_for::<Nanos>()]
    }
);

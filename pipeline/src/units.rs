//! Newtypes of the packet path: time, ports, priorities, MAC addresses, wire rates. Those that an operator writes are parsed
//! and printed in the operator's notation ([`mod@crate::quantity`]).

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use crate::quantity::UnitError;

/// Number of priorities (and egress queues) of a port, as in IEEE 802.1Q.
pub const PRIORITIES: usize = 8;

/// Bytes that a frame occupies on the wire beyond its own: 7 preamble + 1 SFD + 4 FCS + 12 gap (IEEE 802.3).
pub const WIRE_OVERHEAD: u32 = 24;

/// Maximum number of frames handled together by one walk of the pipeline.
pub const BURST: usize = 64;

/// A point in time or an interval, in nanoseconds of the worker's clock.
///
/// Time is always an argument, never read from a clock: the simulator and the tests drive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero on the worker's clock, or an empty interval.
    pub const ZERO: Nanos = Nanos(0);

    /// Returns `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    /// Returns `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// Returns the time passed since `earlier`; zero if `earlier` lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

crate::quantity!(
    Nanos as "Time", "a time",
    "write a number with ns, us, ms or s, such as 20us or 200ms",
    parse: &[
        ("ns", 1), ("us", 1_000), ("\u{b5}s", 1_000), ("\u{3bc}s", 1_000),
        ("ms", 1_000_000), ("s", 1_000_000_000),
    ],
    print: &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)],
    bare: None,
    pattern: r"^[0-9]+(\.[0-9]+)? *(ns|us|µs|ms|s)$", examples: ["20us", "200ms"]
);

impl From<std::time::Duration> for Nanos {
    fn from(time: std::time::Duration) -> Nanos {
        Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(time: Nanos) -> Self {
        Self::from_nanos(time.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, rhs: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, rhs: Nanos) {
        *self = *self + rhs;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, rhs: Nanos) -> Nanos {
        self.since(rhs)
    }
}

/// A port's index, in the order of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PortId(pub u8);

impl PortId {
    /// Returns the index into per-port arrays.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the port's bit in a port set.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1u32.unbounded_shl(self.0 as u32)
    }
}

/// Largest number of ports of one switch: a port set is a `u32`.
pub const MAX_PORTS: usize = 32;

/// A worker's index, in the order of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u8);

impl WorkerId {
    /// The first worker, and often the only one.
    pub const FIRST: WorkerId = WorkerId(0);

    /// Returns the index into per-worker arrays.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Largest number of workers of one switch.
pub const MAX_WORKERS: usize = 32;

/// A priority 0..=7: the egress queue, the PFC class, the ingress priority group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(u8);

impl Priority {
    /// Returns the priority with the low three bits of `value`.
    #[must_use]
    pub const fn new(value: u8) -> Priority {
        Priority(value & 7)
    }

    /// Returns the number, 0..=7.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the index into an array of eight.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the priority's bit in a mask of eight.
    #[must_use]
    pub const fn bit(self) -> u8 {
        1 << self.0
    }

    /// Iterates over all eight priorities, lowest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Priority> + ExactSizeIterator {
        (0..8u8).map(Priority)
    }

    /// Iterates over the priorities of a set (see [`Priority::bit`]), lowest first.
    #[inline]
    pub fn all_of(mut set: u8) -> impl Iterator<Item = Priority> {
        std::iter::from_fn(move || {
            let lowest = u8::try_from(set.trailing_zeros()).ok()?;
            set &= set.wrapping_sub(1);
            (lowest < 8).then_some(Priority(lowest))
        })
    }
}

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, derive_more::Debug)]
#[debug("{self}")]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Returns true if the group bit is set: broadcast or multicast.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Returns the reason why no frame may be sent to this address as a neighbour's, where `is_own` tells the addresses of the switch; `None`
    /// for the address of another host.
    #[must_use]
    pub fn refused_as_neighbor(self, is_own: impl FnOnce(Mac) -> bool) -> Option<RefusedMac> {
        match self {
            Mac([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => Some(RefusedMac::Broadcast),
            group if group.is_group() => Some(RefusedMac::Group),
            Mac([0, 0, 0, 0, 0, 0]) => Some(RefusedMac::Zero),
            host => is_own(host).then_some(RefusedMac::Own),
        }
    }

    /// Returns the address as the low 48 bits of a word, first octet highest.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Returns the address in the low 48 bits of a word.
    #[must_use]
    pub const fn from_u64(word: u64) -> Mac {
        let [_, _, a, b, c, d, e, f] = word.to_be_bytes();
        Mac([a, b, c, d, e, f])
    }
}

crate::named! {
    /// Reason why a MAC address cannot be a neighbour's: frames to it would reach all hosts of a segment, or none (RFC 1812, 3.3.2).
    pub enum RefusedMac {
        /// The broadcast address.
        Broadcast = "broadcast",
        /// A multicast address.
        Group = "group",
        /// All zero.
        Zero = "zero",
        /// The address of a port of the switch, any port: over a loop between two ports the switch would forward frames to itself.
        Own = "own",
    }
}

impl FromStr for Mac {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refuse = || UnitError::not(text, "an Ethernet address", MAC);
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut bytes = [0; 6];
        let mut parts = text.split(separator);
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(refuse)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(refuse());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| refuse())?;
        }
        if parts.next().is_some() {
            Err(refuse())
        } else {
            Ok(Self(bytes))
        }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        f.pad(&format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
    }
}

const MAC: &str = "write six bytes in hexadecimal, such as \"02:00:00:00:01:01\"";

crate::textual!(
    Mac as "MacAddr", "an Ethernet address", MAC,
    schema: |_generator| { "description": MAC, "type": "string", "examples": ["02:00:00:00:01:01"] }
);

/// A wire rate in bits per second; bytes on the wire include [`WIRE_OVERHEAD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitRate(pub u64);

impl BitRate {
    /// Returns the bytes this rate carries in `time` (rounded down, saturating).
    #[must_use]
    pub fn bytes_in(self, time: Nanos) -> u64 {
        let bytes = u128::from(self.0) * u128::from(time.0) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the time that `bytes` take at this rate (rounded up, saturating; infinite at rate zero).
    #[must_use]
    pub fn time_of(self, bytes: u64) -> Nanos {
        if self.0 == 0 {
            return Nanos(u64::MAX);
        }
        let ns = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
        Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

crate::quantity!(
    BitRate as "Rate", "a rate",
    "write bits per second as a number with K, M, G or T, with or without bps, such as 100G, 25Gbps or 10M",
    parse: &[
        ("bps", 1),
        ("k", 1_000), ("K", 1_000), ("kbps", 1_000), ("Kbps", 1_000), ("kbit", 1_000),
        ("M", 1_000_000), ("Mbps", 1_000_000), ("Mbit", 1_000_000),
        ("G", 1_000_000_000), ("Gbps", 1_000_000_000), ("Gbit", 1_000_000_000),
        ("T", 1_000_000_000_000), ("Tbps", 1_000_000_000_000), ("Tbit", 1_000_000_000_000),
    ],
    print: &[
        ("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("K", 1_000), ("bps", 1),
    ],
    bare: None,
    pattern: r"^[0-9]+(\.[0-9]+)? *([kKMGT]|[kKMGT]?bps|[kKMGT]bit)$", examples: ["100G", "25Gbps", "10M"]
);

/// A size in bytes. `KB`, `MB`, `GB` are powers of 1000; `KiB`, `MiB`, `GiB` of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Returns the number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

crate::quantity!(
    Bytes as "Bytes", "a size",
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

/// A number of thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PerMille(pub u64);

crate::quantity!(
    PerMille as "PerMille", "a share",
    "write thousandths, such as 50/1000, or percent, such as 5%",
    parse: &[("/1000", 1), ("", 1), ("%", 10)], print: &[("/1000", 1)], bare: Some(1),
    pattern: r"^[0-9]+(\.[0-9]+)? *(/1000|%)?$", examples: ["50/1000", "5%"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_round_trips_through_a_word() {
        let mac = Mac([0x02, 0, 0x5e, 0xff, 1, 2]);
        assert_eq!(Mac::from_u64(mac.to_u64()), mac);
        assert_eq!(mac.to_string(), "02:00:5e:ff:01:02");
    }

    #[test]
    fn rates_convert_both_ways() {
        let rate = BitRate(100_000_000_000);
        assert_eq!(rate.bytes_in(Nanos::from_micros(30)), 375_000);
        assert_eq!(rate.time_of(375_000), Nanos::from_micros(30));
        assert_eq!(BitRate(0).time_of(1), Nanos(u64::MAX));
    }
}

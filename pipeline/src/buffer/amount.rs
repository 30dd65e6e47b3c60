//! An amount of buffer, in wire bytes and in frames.

use crate::units::WIRE_OVERHEAD;

/// An amount of buffer. Both units count: short frames run out of packet buffers before they run out of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Number of wire bytes.
    pub bytes: u64,
    /// Number of frames, each of which takes one packet buffer.
    pub frames: u64,
}

impl Amount {
    /// Zero bytes and zero frames.
    pub const ZERO: Amount = Amount {
        bytes: 0,
        frames: 0,
    };

    /// Returns the amount of one frame of `wire_len` bytes.
    #[inline]
    #[must_use]
    pub const fn frame(wire_len: u16) -> Amount {
        Amount {
            bytes: wire_len as u64,
            frames: 1,
        }
    }

    /// Returns the amount of `frames` frames of `bytes` together (without FCS), each long enough that Ethernet does not pad it.
    #[inline]
    #[must_use]
    pub const fn of_unpadded(bytes: u64, frames: u64) -> Amount {
        Amount {
            bytes: bytes + frames * WIRE_OVERHEAD as u64,
            frames,
        }
    }

    /// Returns the amount of `bytes` wire bytes, in frames of at least `wire_len` on average.
    #[must_use]
    pub const fn of_bytes(bytes: u64, wire_len: u16) -> Amount {
        let each = if wire_len == 0 { 1 } else { wire_len as u64 };
        Amount {
            bytes,
            frames: bytes.div_ceil(each),
        }
    }

    /// Returns the sum.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes + other.bytes,
            frames: self.frames + other.frames,
        }
    }

    /// Returns the difference, saturating at zero in each unit.
    #[inline]
    #[must_use]
    pub const fn minus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.saturating_sub(other.bytes),
            frames: self.frames.saturating_sub(other.frames),
        }
    }

    /// Returns the sum modulo 2^64: a part may be below zero where one worker charges and another releases.
    #[inline]
    #[must_use]
    pub const fn wrapping_plus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.wrapping_add(other.bytes),
            frames: self.frames.wrapping_add(other.frames),
        }
    }

    /// Returns the difference modulo 2^64.
    #[inline]
    #[must_use]
    pub const fn wrapping_minus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.wrapping_sub(other.bytes),
            frames: self.frames.wrapping_sub(other.frames),
        }
    }

    /// Returns the amount with each negative unit set to zero: a sum of parts read one after the other may come out below zero.
    #[inline]
    #[must_use]
    pub fn or_nothing(self) -> Amount {
        let positive = |part: u64| if part.cast_signed() < 0 { 0 } else { part };
        Amount {
            bytes: positive(self.bytes),
            frames: positive(self.frames),
        }
    }

    /// Returns one of `parts` equal parts, rounded down.
    #[must_use]
    pub fn part(self, parts: u8) -> Amount {
        let parts = u64::from(parts.max(1));
        Amount {
            bytes: self.bytes / parts,
            frames: self.frames / parts,
        }
    }

    /// Returns the minimum in each unit.
    #[inline]
    #[must_use]
    pub fn min(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.min(other.bytes),
            frames: self.frames.min(other.frames),
        }
    }

    /// Returns true if it exceeds `limit` in neither unit.
    #[inline]
    #[must_use]
    pub const fn within(self, limit: Amount) -> bool {
        self.bytes <= limit.bytes && self.frames <= limit.frames
    }

    /// Returns true if both units are zero.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.bytes == 0 && self.frames == 0
    }

    /// Returns `share`/256 of it, rounded down. Exact up to 256 GiB at a share of 64.
    #[inline]
    #[must_use]
    pub const fn share(self, share: u32) -> Amount {
        Amount {
            bytes: self.bytes.saturating_mul(share as u64) >> 8,
            frames: self.frames.saturating_mul(share as u64) >> 8,
        }
    }
}

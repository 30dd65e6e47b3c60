//! Wire bytes and frames together.

use crate::units::WIRE_OVERHEAD;

/// So much of the buffer. Both count: short frames run out of buffers before they run out of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Wire bytes.
    pub bytes: u64,
    /// Frames.
    pub frames: u64,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount {
        bytes: 0,
        frames: 0,
    };

    /// One frame of `wire_len` bytes.
    #[inline]
    #[must_use]
    pub const fn frame(wire_len: u16) -> Amount {
        Amount {
            bytes: wire_len as u64,
            frames: 1,
        }
    }

    /// `frames` frames of `bytes` together, each long enough that Ethernet does not pad it.
    #[inline]
    #[must_use]
    pub const fn of_unpadded(bytes: u64, frames: u64) -> Amount {
        Amount {
            bytes: bytes + frames * WIRE_OVERHEAD as u64,
            frames,
        }
    }

    /// `bytes`, in frames of at least `wire_len` on average.
    #[must_use]
    pub const fn of_bytes(bytes: u64, wire_len: u16) -> Amount {
        let each = if wire_len == 0 { 1 } else { wire_len as u64 };
        Amount {
            bytes,
            frames: bytes.div_ceil(each),
        }
    }

    /// Both together.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes + other.bytes,
            frames: self.frames + other.frames,
        }
    }

    /// What is left without `other`; nothing where `other` is more.
    #[inline]
    #[must_use]
    pub const fn minus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.saturating_sub(other.bytes),
            frames: self.frames.saturating_sub(other.frames),
        }
    }

    /// Both together, modulo 2^64: a part may be below zero where one worker takes and another gives back.
    #[inline]
    #[must_use]
    pub const fn wrapping_plus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.wrapping_add(other.bytes),
            frames: self.frames.wrapping_add(other.frames),
        }
    }

    /// What is left without `other`, modulo 2^64.
    #[inline]
    #[must_use]
    pub const fn wrapping_minus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.wrapping_sub(other.bytes),
            frames: self.frames.wrapping_sub(other.frames),
        }
    }

    /// Nothing where a sum of parts that were read one after the other came out below zero.
    #[inline]
    #[must_use]
    pub fn or_nothing(self) -> Amount {
        let positive = |part: u64| if part.cast_signed() < 0 { 0 } else { part };
        Amount {
            bytes: positive(self.bytes),
            frames: positive(self.frames),
        }
    }

    /// An equal part of `parts`, rounded down.
    #[must_use]
    pub fn part(self, parts: u8) -> Amount {
        let parts = u64::from(parts.max(1));
        Amount {
            bytes: self.bytes / parts,
            frames: self.frames / parts,
        }
    }

    /// The lesser of each.
    #[inline]
    #[must_use]
    pub fn min(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.min(other.bytes),
            frames: self.frames.min(other.frames),
        }
    }

    /// Neither more bytes nor more frames than `limit`.
    #[inline]
    #[must_use]
    pub const fn within(self, limit: Amount) -> bool {
        self.bytes <= limit.bytes && self.frames <= limit.frames
    }

    /// No bytes and no frames.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.bytes == 0 && self.frames == 0
    }

    /// `share` 256ths of it. Exact up to 256 GiB at a share of 64.
    #[inline]
    #[must_use]
    pub const fn share(self, share: u32) -> Amount {
        Amount {
            bytes: self.bytes.saturating_mul(share as u64) >> 8,
            frames: self.frames.saturating_mul(share as u64) >> 8,
        }
    }
}

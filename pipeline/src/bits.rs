//! Truncation of a number to its low bits, where the rest is known to be zero or not wanted; and bits that octets have in common.
#![expect(
    clippy::cast_possible_truncation,
    reason = "cutting is what these functions are for"
)]

/// Returns the low 8 bits.
#[inline]
#[must_use]
pub const fn low8(value: usize) -> u8 {
    value as u8
}

/// Returns the low 16 bits.
#[inline]
#[must_use]
pub const fn low16(value: usize) -> u16 {
    value as u16
}

/// Returns the low 32 bits.
#[inline]
#[must_use]
pub const fn low32(value: u64) -> u32 {
    value as u32
}

/// Returns the low 64 bits.
#[inline]
pub(crate) const fn low64(value: u128) -> u64 {
    value as u64
}

/// Returns the high 64 bits.
#[inline]
pub(crate) const fn high64(value: u128) -> u64 {
    (value >> 64) as u64
}

/// Returns the number after `word` in a sequence of `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
#[must_use]
pub const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Bits that are set in all of some octets, and bits that are set in any: the same if all octets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Octets {
    /// Bits set in all.
    pub all: u8,
    /// Bits set in any.
    pub any: u8,
}

impl Octets {
    /// No octets.
    pub const NONE: Octets = Octets {
        all: u8::MAX,
        any: 0,
    };

    /// Adds an octet.
    #[inline(always)]
    pub const fn add(&mut self, octet: u8) {
        self.all &= octet;
        self.any |= octet;
    }

    /// Returns the bits of both sets of octets.
    #[inline]
    #[must_use]
    pub const fn and(self, more: Octets) -> Octets {
        Octets {
            all: self.all & more.all,
            any: self.any | more.any,
        }
    }

    /// Returns the value that the bits in `mask` have in all octets, if it is the same.
    #[inline]
    #[must_use]
    pub const fn only(self, mask: u8) -> Option<u8> {
        if (self.all ^ self.any) & mask == 0 {
            Some(self.any & mask)
        } else {
            None
        }
    }
}

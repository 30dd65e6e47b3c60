//! Truncation of a number to its low bits, where the rest is known to be zero or not wanted.
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

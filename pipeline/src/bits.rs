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

/// Returns the high 64 bits.
#[inline]
pub(crate) const fn high64(value: u128) -> u64 {
    (value >> 64) as u64
}

/// Returns the number after `word` in a sequence of `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
pub(crate) const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

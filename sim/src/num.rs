//! Conversions between the models' real numbers and the engine's integers.

/// The whole part; 0 below 0 and for NaN, the largest above the range.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what every caller wants"
)]
pub(crate) const fn whole(value: f64) -> u64 {
    value as u64
}

/// As an index or a small count; saturates.
pub(crate) fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

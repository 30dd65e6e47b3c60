//! Conversion between whole and real numbers: for display, and for values computed once, never per packet.

/// Returns the value as a real number; above 2^53, the nearest that exists.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "said above")]
pub const fn real(value: u64) -> f64 {
    value as f64
}

/// Returns the whole part; 0 below 0 and for NaN, the maximum above the range.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what every caller wants"
)]
pub const fn whole(value: f64) -> u64 {
    value as u64
}

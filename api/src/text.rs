//! Numbers for people.

/// Formats a time in the unit that fits it, with at most one decimal: `5.7 s`, `312 us`.
#[must_use]
pub fn time(ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    match units.into_iter().find(|(_, scale)| ns >= *scale) {
        Some((unit, scale)) => format!("{} {unit}", decimal(ns, scale)),
        None if ns == 0 => "0".to_owned(),
        None => format!("{ns} ns"),
    }
}

/// Formats a value in a unit, with at most one decimal.
#[must_use]
pub fn decimal(value: u64, unit: u64) -> String {
    // Every unit is a multiple of ten.
    let tenths = value / (unit / 10);
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

//! Exact decimal arithmetic between a number with a suffix and a whole count of the base unit.

/// A suffix, and the number of base units it stands for.
pub type Suffix = (&'static str, u64);

/// Reason why a text is not a whole number of base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Text that is not a decimal number followed by a known suffix.
    Form,
    /// Number without a suffix where one is needed.
    NoSuffix,
    /// Number finer than the base unit.
    TooFine,
    /// Number larger than the type holds.
    TooLarge,
}

/// Splits `text` into number and suffix and scales it exactly.
///
/// Spaces may separate the two (`10 Gbps`). No sign, no exponent, no digit grouping.
pub fn parse(text: &str, suffixes: &[Suffix]) -> Result<u64, Flaw> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let suffix = suffix.trim_start();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let malformed = whole.is_empty()
        || fraction.contains('.')
        || (number.contains('.') && fraction.is_empty())
        || fraction.len() > 18;
    if malformed {
        return Err(Flaw::Form);
    }
    let Some(&(_, scale)) = suffixes.iter().find(|(name, _)| *name == suffix) else {
        let bare = suffix.is_empty();
        return if bare && whole.bytes().all(|b| b == b'0') && fraction.is_empty() {
            Ok(0)
        } else if bare {
            Err(Flaw::NoSuffix)
        } else {
            Err(Flaw::Form)
        };
    };
    let whole: u128 = whole.parse().map_err(|_| Flaw::TooLarge)?;
    let mut total = whole.checked_mul(u128::from(scale)).ok_or(Flaw::TooLarge)?;
    if !fraction.is_empty() {
        let digits: u128 = fraction.parse().map_err(|_| Flaw::Form)?;
        let power = 10u128.pow(u32::try_from(fraction.len()).map_err(|_| Flaw::Form)?);
        let scaled = digits * u128::from(scale);
        if !scaled.is_multiple_of(power) {
            return Err(Flaw::TooFine);
        }
        total += scaled / power;
    }
    u64::try_from(total).map_err(|_| Flaw::TooLarge)
}

/// Returns the value in the largest unit that divides it; `units` go from large to small, the last is 1, and the
/// one for zero.
#[must_use]
pub fn shortest(value: u64, units: &[Suffix]) -> (u64, &'static str) {
    units
        .iter()
        .find(|(_, scale)| value != 0 && value.is_multiple_of(*scale))
        .or_else(|| units.last())
        .map_or((value, ""), |(name, scale)| (value / scale, *name))
}

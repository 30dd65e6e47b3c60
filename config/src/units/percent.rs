//! Percentages, exact to a hundredth of a percent.

use std::fmt;
use std::str::FromStr;

use npcc_pipeline::quantity::UnitError;
use npcc_pipeline::quantity::decimal::{Flaw, parse};
use npcc_pipeline::textual;

const ACCEPTED: &str = "write 0% to 100%, at most two decimals, such as 10% or 0.5%";

/// Share between 0 % and 100 % in basis points (hundredths of a percent).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Percent(u16);

impl Percent {
    /// One hundred percent.
    pub const FULL: Self = Self(10_000);

    /// Creates a share from whole percent; `None` above 100.
    #[must_use]
    pub const fn new(percent: u16) -> Option<Self> {
        if percent <= 100 {
            Some(Self(percent * 100))
        } else {
            None
        }
    }

    /// Creates a share from a constant number of whole percent; panics at compile time above 100.
    pub(crate) const fn of_whole(percent: u16) -> Self {
        assert!(percent <= 100);
        Self(percent * 100)
    }

    /// Creates a share from a constant number of thousandths; panics at compile time above 1,000.
    pub(crate) const fn of_thousandths(thousandths: u16) -> Self {
        assert!(thousandths <= 1_000);
        Self(thousandths * 10)
    }

    /// Returns the share in basis points, 0 to 10000.
    #[must_use]
    pub const fn basis_points(self) -> u16 {
        self.0
    }

    /// Returns the share in whole percent, 0 to 100, rounded down.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most 100")]
    pub const fn whole(self) -> u8 {
        (self.0 / 100) as u8
    }

    /// Returns the share as a fraction, 0.0 to 1.0.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }

    /// Returns this share of `whole`, rounded down.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        let share = u128::from(whole) * u128::from(self.0) / 10_000;
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

impl FromStr for Percent {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match parse(text, &[("%", 100), ("", 100)]) {
            Ok(points) => match u16::try_from(points) {
                Ok(points) if points <= 10_000 => Ok(Self(points)),
                _ => Err(UnitError::bad(text, "is more than 100%", ACCEPTED)),
            },
            Err(Flaw::TooFine) => Err(UnitError::bad(text, "is finer than 0.01%", ACCEPTED)),
            Err(Flaw::TooLarge) => Err(UnitError::bad(text, "is more than 100%", ACCEPTED)),
            Err(Flaw::Form | Flaw::NoSuffix) => Err(UnitError::not(text, "a percentage", ACCEPTED)),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 100, self.0 % 100);
        let text = match rest {
            0 => format!("{whole}%"),
            _ if rest % 10 == 0 => format!("{whole}.{}%", rest / 10),
            _ => format!("{whole}.{rest:02}%"),
        };
        f.pad(&text)
    }
}

textual!(
    Percent as "Percent", "a percentage", ACCEPTED,
    numbers: {
        visit_u64(n: u64) => n.to_string().parse(),
        // 0.1 may mean 10 % or 0.1 %: the operator must say.
        visit_f64(n: f64) => Err(UnitError::bad(n.to_string(), "has no percent sign", ACCEPTED)),
    },
    schema: |_generator| {
        "description": ACCEPTED,
        "anyOf": [
            { "type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,2})? *%?$" },
            { "type": "integer", "minimum": 0, "maximum": 100 }
        ],
        "examples": ["10%", "0.5%"]
    }
);

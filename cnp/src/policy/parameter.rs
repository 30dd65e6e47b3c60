//! Parameters of a policy as operators see and change them: a name, a unit, a range, a value.
//!
//! A law declares its parameters as a table of [`Declared`]; listing, reading and changing them follow from the table.

use std::fmt;

use arrayvec::ArrayVec;
use npcc_pipeline::named;
use npcc_pipeline::quantity::UnitError;
use npcc_pipeline::units::{Bytes, Nanos, PerMille};

named! {
    /// Unit of a parameter's number.
    pub enum Unit {
        /// Time in nanoseconds.
        Nanos = "ns",
        /// Size in wire bytes.
        Bytes = "bytes",
        /// Ratio in thousandths.
        PerMille = "per-mille",
    }
}

impl Unit {
    /// Parses a value with its unit, such as `300us`, `64KB`, `50/1000` or `5%`.
    ///
    /// # Errors
    /// A description of what is wrong with the text, and of what would have been accepted.
    pub fn parse(self, text: &str) -> Result<u64, UnitError> {
        match self {
            Unit::Nanos => text.parse().map(|Nanos(value)| value),
            Unit::Bytes => text.parse().map(|Bytes(value)| value),
            Unit::PerMille => text.parse().map(|PerMille(value)| value),
        }
    }

    /// Formats a value with its unit, as [`Unit::parse`] reads it.
    #[must_use]
    pub fn text(self, value: u64) -> String {
        match self {
            Unit::Nanos => Nanos(value).to_string(),
            Unit::Bytes => Bytes(value).to_string(),
            Unit::PerMille => PerMille(value).to_string(),
        }
    }
}

/// One parameter of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Name in `set` and in the configuration.
    pub name: &'static str,
    /// Unit of the number.
    pub unit: Unit,
    /// Value at this moment.
    pub value: u64,
    /// Smallest and largest valid value.
    pub range: (u64, u64),
}

/// Maximum number of parameters of a policy.
pub const PARAMETERS: usize = 8;

/// All parameters of a policy.
pub type Parameters = ArrayVec<Parameter, PARAMETERS>;

/// Reason why a parameter was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadParameter {
    /// The policy has no parameter of this name.
    Unknown,
    /// The value is outside of this range, in this unit.
    Range(Unit, u64, u64),
}

impl fmt::Display for BadParameter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadParameter::Unknown => {
                write!(
                    out,
                    "the queue's policy has no such parameter; see show npcc"
                )
            }
            BadParameter::Range(unit, low, high) => {
                let (low, high) = (unit.text(*low), unit.text(*high));
                write!(out, "out of range: write {low} to {high}")
            }
        }
    }
}

/// Accessor of a parameter's value in the settings `C` of a law; its variant gives the unit.
enum Field<C> {
    Time(fn(&mut C) -> &mut Nanos),
    PerMille(fn(&mut C) -> &mut u16),
}

/// Declaration of a parameter of a law with settings `C`. Its default is the value that the law's settings are made with.
pub(super) struct Declared<C> {
    name: &'static str,
    field: Field<C>,
    least: fn(&C) -> u64,
    most: u64,
}

/// Declares a time of at most a second; `least` in ns.
pub(super) const fn time<C>(
    name: &'static str,
    least: fn(&C) -> u64,
    field: fn(&mut C) -> &mut Nanos,
) -> Declared<C> {
    Declared {
        name,
        field: Field::Time(field),
        least,
        most: 1_000_000_000,
    }
}

/// Declares a number of thousandths.
pub(super) const fn per_mille<C>(
    name: &'static str,
    least: fn(&C) -> u64,
    most: u16,
    field: fn(&mut C) -> &mut u16,
) -> Declared<C> {
    Declared {
        name,
        field: Field::PerMille(field),
        least,
        most: most as u64,
    }
}

impl<C: Copy> Declared<C> {
    fn parameter(&self, settings: &C) -> Parameter {
        let mut settings = *settings;
        let range = ((self.least)(&settings), self.most);
        let (unit, value) = match self.field {
            Field::Time(field) => (Unit::Nanos, field(&mut settings).0),
            Field::PerMille(field) => (Unit::PerMille, u64::from(*field(&mut settings))),
        };
        Parameter {
            name: self.name,
            unit,
            value,
            range,
        }
    }
}

/// Lists all parameters of a table, with the values of these settings.
pub(super) fn list<C: Copy>(table: &[Declared<C>], settings: &C) -> Parameters {
    table.iter().map(|one| one.parameter(settings)).collect()
}

/// Sets the parameter of this name, if the value is within its range.
pub(super) fn set<C: Copy>(
    table: &[Declared<C>],
    settings: &mut C,
    name: &str,
    value: u64,
) -> Result<(), BadParameter> {
    let declared = table.iter().find(|one| one.name == name);
    let declared = declared.ok_or(BadParameter::Unknown)?;
    let Parameter { unit, range, .. } = declared.parameter(settings);
    if !(range.0..=range.1).contains(&value) {
        return Err(BadParameter::Range(unit, range.0, range.1));
    }
    match declared.field {
        Field::Time(field) => *field(settings) = Nanos(value),
        Field::PerMille(field) => *field(settings) = u16::try_from(value).unwrap_or(u16::MAX),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_reads_what_it_prints() {
        for unit in Unit::ALL {
            for value in [0, 1, 50, 20_000, 1_000_000_000] {
                assert_eq!(unit.parse(&unit.text(value)), Ok(value), "{unit:?}");
            }
            assert!(unit.parse("soon").is_err(), "{unit:?}");
        }
        assert_eq!(Unit::PerMille.parse("5%"), Ok(50));
        assert_eq!(Unit::PerMille.parse("50"), Ok(50));
    }

    #[test]
    fn a_range_is_printed_in_the_parameters_unit() {
        let out = |unit, low, high| BadParameter::Range(unit, low, high).to_string();
        assert_eq!(
            out(Unit::Nanos, 20_000, 1_000_000_000),
            "out of range: write 20us to 1s"
        );
        assert_eq!(
            out(Unit::PerMille, 1, 1_000),
            "out of range: write 1/1000 to 1000/1000"
        );
    }
}

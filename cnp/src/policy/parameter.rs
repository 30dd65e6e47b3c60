//! A policy's parameters as operators see and change them: a name, a unit, a value.

use arrayvec::ArrayVec;
use npcc_pipeline::named;

named! {
    /// What a parameter's number means.
    pub enum Unit {
        /// Nanoseconds.
        Nanos = "ns",
        /// Wire bytes.
        Bytes = "bytes",
        /// Thousandths.
        PerMille = "per-mille",
    }
}

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in `set`.
    pub name: &'static str,
    /// What the number means.
    pub unit: Unit,
    /// Its value.
    pub value: u64,
    /// Smallest and largest value it takes.
    pub range: (u64, u64),
}

/// Most parameters a policy has.
pub const PARAMETERS: usize = 8;

/// All parameters of a policy.
pub type Parameters = ArrayVec<Parameter, PARAMETERS>;

/// Why a parameter was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadParameter {
    /// The policy has none of this name.
    Unknown,
    /// Smallest and largest value it takes.
    Range(u64, u64),
}

/// The value, if it is within the range of the parameter of this name.
pub(super) fn checked(
    parameters: &Parameters,
    name: &str,
    value: u64,
) -> Result<&'static str, BadParameter> {
    let parameter = parameters
        .iter()
        .find(|parameter| parameter.name == name)
        .ok_or(BadParameter::Unknown)?;
    let (low, high) = parameter.range;
    if (low..=high).contains(&value) {
        Ok(parameter.name)
    } else {
        Err(BadParameter::Range(low, high))
    }
}

/// A time that may be changed, between 0 and a second.
pub(super) fn time(
    name: &'static str,
    value: npcc_pipeline::units::Nanos,
    least: u64,
) -> Parameter {
    Parameter {
        name,
        unit: Unit::Nanos,
        value: value.0,
        range: (least, 1_000_000_000),
    }
}

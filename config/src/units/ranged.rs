//! Whole numbers limited to a range.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::UnitError;

/// Whole number from `MIN` to `MAX`, both included.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display,
)]
#[serde(transparent)]
pub struct Ranged<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Ranged<MIN, MAX> {
    /// Creates the number, or returns `None` outside the range.
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        if MIN <= value && value <= MAX {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Creates a constant; outside the range it panics, at compile time in a constant.
    pub(crate) const fn fixed(value: u32) -> Self {
        assert!(MIN <= value && value <= MAX);
        Self(value)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the number in one byte; larger ones saturate, which no range of this crate with this use has.
    #[must_use]
    pub fn byte(self) -> u8 {
        u8::try_from(self.0).unwrap_or(u8::MAX)
    }

    /// Returns the number in two bytes; larger ones saturate, which no range of this crate with this use has.
    #[must_use]
    pub fn short(self) -> u16 {
        u16::try_from(self.0).unwrap_or(u16::MAX)
    }

    /// Returns the number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn refuse(text: impl Into<String>) -> UnitError {
        UnitError::bad(
            text,
            format!("is not a whole number from {MIN} to {MAX}"),
            format!("write a whole number from {MIN} to {MAX}"),
        )
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Ranged<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visit<const MIN: u32, const MAX: u32>;
        impl<const MIN: u32, const MAX: u32> Visitor<'_> for Visit<MIN, MAX> {
            type Value = Ranged<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let lead = if f.alternate() { "write " } else { "" };
                write!(f, "{lead}a whole number from {MIN} to {MAX}")
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Self::Value, E> {
                u32::try_from(n)
                    .ok()
                    .and_then(Ranged::new)
                    .ok_or_else(|| E::custom(Ranged::<MIN, MAX>::refuse(n.to_string())))
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Self::Value, E> {
                match u64::try_from(n) {
                    Ok(n) => self.visit_u64(n),
                    Err(_) => Err(E::custom(Ranged::<MIN, MAX>::refuse(n.to_string()))),
                }
            }

            fn visit_f64<E: de::Error>(self, n: f64) -> Result<Self::Value, E> {
                Err(E::custom(Ranged::<MIN, MAX>::refuse(n.to_string())))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Err(E::custom(Ranged::<MIN, MAX>::refuse(text)))
            }
        }
        d.deserialize_any(Visit::<MIN, MAX>)
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Ranged<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("From{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

//! The serde and schema halves that every quantity shares.

/// Implements `FromStr`, serde and `JsonSchema` for a tuple struct over `u64` counted in base units.
///
/// `bare` tells what to do with a number without unit: `Some(scale)` takes it, `None` refuses it.
macro_rules! quantity {
    (
        $name:ident, $what:literal, $accepted:literal,
        parse: $suffixes:expr, print: $units:expr, bare: $bare:expr,
        pattern: $pattern:literal, examples: $examples:tt
    ) => {
        impl std::str::FromStr for $name {
            type Err = $crate::units::UnitError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                use $crate::units::decimal::{Flaw, parse};
                use $crate::units::UnitError;
                parse(text, $suffixes).map($name).map_err(|flaw| match flaw {
                    Flaw::Form => UnitError::not(text, $what, $accepted),
                    Flaw::NoSuffix => UnitError::bad(text, "has no unit", $accepted),
                    Flaw::TooFine => {
                        UnitError::bad(text, concat!("is finer than ", $what, " can be"), $accepted)
                    }
                    Flaw::TooLarge => {
                        UnitError::bad(text, concat!("is more than ", $what, " can be"), $accepted)
                    }
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let (value, unit) = $crate::units::decimal::shortest(self.0, $units);
                f.pad(&format!("{value}{unit}"))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Visit;
                impl serde::de::Visitor<'_> for Visit {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(if f.alternate() { $accepted } else { $what })
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<$name, E> {
                        let bare: Option<u64> = $bare;
                        match bare.and_then(|scale| n.checked_mul(scale)) {
                            Some(value) => Ok($name(value)),
                            None => n.to_string().parse().map_err(E::custom),
                        }
                    }

                    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<$name, E> {
                        n.to_string().parse().map_err(E::custom)
                    }

                    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<$name, E> {
                        Err(E::custom($crate::units::UnitError::bad(
                            n.to_string(),
                            "has no unit",
                            $accepted,
                        )))
                    }
                }
                d.deserialize_any(Visit)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": $accepted,
                    "anyOf": [
                        { "type": "string", "pattern": $pattern },
                        { "type": "integer", "minimum": 0 }
                    ],
                    "examples": $examples
                })
            }
        }
    };
}

/// Implements serde and `JsonSchema` for a type that is written as text only.
macro_rules! textual {
    ($name:ident, $what:literal, $accepted:literal, examples: $examples:tt) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Visit;
                impl serde::de::Visitor<'_> for Visit {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(if f.alternate() { $accepted } else { $what })
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                d.deserialize_str(Visit)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": $accepted, "type": "string", "examples": $examples
                })
            }
        }
    };
}

pub(crate) use {quantity, textual};

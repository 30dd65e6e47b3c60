//! Quantities as an operator writes them: `64MB`, `25Gbps`, `30us`, `02:00:00:00:01:01`.
//!
//! Law: every type parses from text, prints the shortest text that parses back to the same value, and refuses what it cannot
//! hold exactly. A refusal names the offending text; its alternate form (`{:#}`) says what would have been accepted.
//! Nothing here is called for a packet.

pub mod decimal;
mod error;

pub use error::UnitError;

/// Implements `FromStr`, `Display`, serde and `JsonSchema` (named `schema`) for a tuple struct over `u64` counted in base
/// units.
///
/// `bare` is the scale of a number without unit: `Some(scale)` accepts it, `None` refuses it. The caller depends on serde, and
/// on schemars if this package has its feature `config`.
#[macro_export]
macro_rules! quantity {
    (
        $name:ident as $schema:literal, $what:literal, $accepted:literal,
        parse: $suffixes:expr, print: $units:expr, bare: $bare:expr,
        pattern: $pattern:literal, examples: $examples:tt
    ) => {
        impl std::str::FromStr for $name {
            type Err = $crate::quantity::UnitError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                use $crate::quantity::UnitError;
                use $crate::quantity::decimal::{Flaw, parse};
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
                let (value, unit) = $crate::quantity::decimal::shortest(self.0, $units);
                f.pad(&format!("{value}{unit}"))
            }
        }

        $crate::textual!(
            $name as $schema, $what, $accepted,
            numbers: {
                visit_u64(n: u64) => {
                    let bare: Option<u64> = $bare;
                    match bare.and_then(|scale| n.checked_mul(scale)) {
                        Some(value) => Ok($name(value)),
                        None => n.to_string().parse(),
                    }
                },
                visit_i64(n: i64) => n.to_string().parse(),
                visit_f64(n: f64) => {
                    Err($crate::quantity::UnitError::bad(n.to_string(), "has no unit", $accepted))
                },
            },
            schema: |_generator| {
                "description": $accepted,
                "anyOf": [
                    { "type": "string", "pattern": $pattern },
                    { "type": "integer", "minimum": 0 }
                ],
                "examples": $examples
            }
        );
    };
}

/// Implements serde and `JsonSchema` (named `schema`) for a type parsed by `FromStr` and printed by `Display`; `accepted`
/// describes how it is written. `numbers` are the visitor methods by which a number is accepted too, each returning a `Result`
/// with an error that `FromStr` may have.
#[macro_export]
macro_rules! textual {
    (
        $name:ident as $schema:literal, $what:expr, $accepted:expr,
        $( numbers: { $( $visit:ident($number:ident: $of:ty) => $make:expr, )+ }, )?
        schema: |$generator:ident| $json:tt
    ) => {
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

                    $( $(
                        fn $visit<E: serde::de::Error>(self, $number: $of) -> Result<$name, E> {
                            let read: Result<_, $crate::quantity::UnitError> = $make;
                            read.map_err(E::custom)
                        }
                    )+ )?
                }
                d.deserialize_any(Visit)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        $crate::quantity_schema!($name as $schema, |$generator| $json);
    };
}

/// Implements `JsonSchema` if this package has its feature `config`.
#[cfg(feature = "config")]
#[doc(hidden)]
#[macro_export]
macro_rules! quantity_schema {
    ($name:ident as $schema:literal, |$generator:ident| $json:tt) => {
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $schema.into()
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($json)
            }
        }
    };
}

/// Expands to nothing without the feature `config`.
#[cfg(not(feature = "config"))]
#[doc(hidden)]
#[macro_export]
macro_rules! quantity_schema {
    ($($given:tt)*) => {};
}

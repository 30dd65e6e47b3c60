//! `routing:` sizes of the routing tables, and the ECMP hash seed.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::units::{Count, UnitError};

npcc_pipeline::defaults! {
    /// Sizes of the routing tables, and the ECMP hash seed.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Routing {
        /// Maximum number of IPv4 routes, connected ones included.
        pub ipv4_routes: Count = Count(16 << 10),
        /// Maximum number of IPv6 routes, connected ones included.
        pub ipv6_routes: Count = Count(16 << 10),
        /// Seed of the ECMP hash. Switches in series need different seeds.
        pub ecmp_seed: EcmpSeed = EcmpSeed::Auto,
    }
}

/// Seed of the ECMP hash, by which flows are balanced over equal-cost paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EcmpSeed {
    /// Derived from the ports' MAC addresses: unchanged by a restart, different on any other switch.
    #[default]
    Auto,
    /// Fixed number.
    Number(u64),
}

const ACCEPTED: &str = "write auto, or a number such as 7";

impl<'de> Deserialize<'de> for EcmpSeed {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = EcmpSeed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(if f.alternate() { ACCEPTED } else { "a seed" })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<EcmpSeed, E> {
                match text {
                    "auto" => Ok(EcmpSeed::Auto),
                    _ => text
                        .parse()
                        .map(EcmpSeed::Number)
                        .map_err(|_| E::custom(UnitError::not(text, "a seed", ACCEPTED))),
                }
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<EcmpSeed, E> {
                Ok(EcmpSeed::Number(n))
            }
        }
        d.deserialize_any(Visit)
    }
}

impl Serialize for EcmpSeed {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => s.serialize_str("auto"),
            Self::Number(number) => number.serialize(s),
        }
    }
}

impl JsonSchema for EcmpSeed {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EcmpSeed".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": ACCEPTED,
            "anyOf": [{ "const": "auto" }, { "type": "integer", "minimum": 0 }]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_auto_or_a_number() {
        let read = |text: &str| serde_json::from_str::<EcmpSeed>(text).ok();
        assert_eq!(read("\"auto\""), Some(EcmpSeed::Auto));
        assert_eq!(read("7"), Some(EcmpSeed::Number(7)));
        assert_eq!(
            read("\"18446744073709551615\""),
            Some(EcmpSeed::Number(u64::MAX))
        );
        assert_eq!((read("-1"), read("\"some\"")), (None, None));
        for seed in [EcmpSeed::Auto, EcmpSeed::Number(9)] {
            assert_eq!(read(&serde_json::to_string(&seed).unwrap()), Some(seed));
        }
    }
}

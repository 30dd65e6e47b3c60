//! `routes:` static routes.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Address, Prefix};

/// A static route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Destination prefix.
    pub prefix: Prefix,
    /// Next hop, or a list of next hops over which flows are balanced (ECMP).
    pub via: Via,
}

/// Next hops of a route: one address or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Via(pub Vec<Address>);

impl<'de> Deserialize<'de> for Via {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Via;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text = "write one next hop, such as 10.0.12.2, or a list of them";
                f.write_str(if f.alternate() { text } else { "a next hop" })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Via, E> {
                text.parse()
                    .map(|address| Via(vec![address]))
                    .map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Via, A::Error> {
                let mut all = Vec::new();
                while let Some(address) = seq.next_element()? {
                    all.push(address);
                }
                Ok(Via(all))
            }
        }
        d.deserialize_any(Visit)
    }
}

impl Serialize for Via {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(s),
            all => all.serialize(s),
        }
    }
}

impl JsonSchema for Via {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Via".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let one = generator.subschema_for::<Address>();
        schemars::json_schema!({
            "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }]
        })
    }
}

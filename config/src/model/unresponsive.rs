//! Treatment of hosts that do not respond to CNPs: `mark`, or `{ queue: PRIORITY }`.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PriorityId;

/// Treatment of hosts that do not respond to CNPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unresponsive {
    /// Their flows stay in the watched queue and keep ordinary ECN marking.
    #[default]
    Mark,
    /// Their flows are moved to a queue of their own.
    Moved(MovedQueue),
}

/// Queue of hosts that do not respond to CNPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MovedQueue {
    /// Priority of the queue: a lossy DWRR queue that nothing else uses.
    pub queue: PriorityId,
}

impl Unresponsive {
    /// Returns the priority of the queue of moved hosts, if hosts are moved.
    #[must_use]
    pub fn queue(self) -> Option<PriorityId> {
        match self {
            Unresponsive::Mark => None,
            Unresponsive::Moved(moved) => Some(moved.queue),
        }
    }
}

const ACCEPTED: &str = "write mark, or a queue such as { queue: 5 }";

impl<'de> Deserialize<'de> for Unresponsive {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Unresponsive;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(if f.alternate() {
                    ACCEPTED
                } else {
                    "a treatment of hosts"
                })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Unresponsive, E> {
                match text {
                    "mark" => Ok(Unresponsive::Mark),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Unresponsive, A::Error> {
                MovedQueue::deserialize(MapAccessDeserializer::new(map)).map(Unresponsive::Moved)
            }
        }
        d.deserialize_any(Visit)
    }
}

impl Serialize for Unresponsive {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Mark => s.serialize_str("mark"),
            Self::Moved(moved) => moved.serialize(s),
        }
    }
}

impl JsonSchema for Unresponsive {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Unresponsive".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [{ "const": "mark" }, generator.subschema_for::<MovedQueue>()]
        })
    }
}

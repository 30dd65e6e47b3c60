//! `qos:` classification, queues, scheduling, ECN. What is not written comes from the profile.

use std::collections::BTreeMap;
use std::fmt;

pub use npcc_pipeline::classify::Trust;
use npcc_pipeline::named;
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Dscp, PriorityId};
use crate::units::{BitRate, Percent, Ranged, Threshold};

/// Classification, queues, scheduling, ECN.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Qos {
    /// The set of defaults that the other keys start from.
    pub profile: Profile,
    /// Which field of a packet tells its priority.
    pub trust: Option<Trust>,
    /// Priority of whatever no table names.
    pub default_priority: Option<PriorityId>,
    /// DSCP to priority; entries add to the profile's.
    pub dscp_to_priority: BTreeMap<Dscp, PriorityId>,
    /// VLAN priority to priority; entries add to the profile's.
    pub pcp_to_priority: BTreeMap<PriorityId, PriorityId>,
    /// The eight queues of every port; keys add to the profile's.
    pub priorities: BTreeMap<PriorityId, Priority>,
}

named! {
    /// A set of defaults.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Profile {
        /// DSCP 26 to priority 3: lossless, DWRR 50, ECN; 48 to 6: strict; the rest to 0: DWRR 50.
        #[default]
        RoceLossless = "roce-lossless",
        /// The same, without pause towards senders: ECN and notification alone.
        RoceSemiLossless = "roce-semi-lossless",
        /// The same queues, all of them lossy.
        Lossy = "lossy",
    }
}

/// One of the eight queues of every port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {
    /// Whether its frames may not be dropped for want of buffer.
    pub lossless: Option<bool>,
    /// How it shares the port.
    pub scheduler: Option<Scheduler>,
    /// Its share among the DWRR queues.
    pub weight: Option<Ranged<1, 100>>,
    /// At which depth ECN-capable frames are marked.
    pub ecn: Option<EcnChoice>,
    /// At which depth frames that cannot be marked are dropped early.
    pub wred: Option<Wred>,
    /// Most it may send.
    pub max_rate: Option<BitRate>,
    /// What it gets before strict queues and shares.
    pub min_rate: Option<BitRate>,
}

named! {
    /// How a queue shares its port.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Scheduler {
        /// Before all DWRR queues; among strict ones the higher priority first.
        Strict = "strict",
        /// By weight, in bytes.
        #[default]
        Dwrr = "dwrr",
    }
}

npcc_pipeline::defaults! {
    /// ECN marking: none below `kmin`, `pmax` at `kmax`, all above.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Ecn {
        /// Depth at which marking begins.
        pub kmin: Threshold = Threshold::from_micros(60),
        /// Depth from which everything is marked.
        pub kmax: Threshold = Threshold::from_micros(480),
        /// Share marked just below `kmax`.
        pub pmax: Percent = Percent::of_whole(10),
    }
}

npcc_pipeline::defaults! {
    /// Early drop of frames that are not ECN-capable: none below `min`, `prob` at `max`, all above.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Wred {
        /// Depth at which dropping begins.
        pub min: Threshold = Threshold::from_micros(240),
        /// Depth from which everything is dropped.
        pub max: Threshold = Threshold::from_micros(960),
        /// Share dropped just below `max`.
        pub prob: Percent = Percent::of_whole(10),
    }
}

/// ECN thresholds, or `off` where the profile has some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnChoice {
    /// No marking.
    Off,
    /// Marking by these thresholds.
    On(Ecn),
}

impl<'de> Deserialize<'de> for EcnChoice {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = EcnChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text =
                    "write off, or thresholds such as { kmin: 60us, kmax: 480us, pmax: 10% }";
                f.write_str(if f.alternate() {
                    text
                } else {
                    "an ECN setting"
                })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<EcnChoice, E> {
                match text {
                    "off" => Ok(EcnChoice::Off),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<EcnChoice, E> {
                Ok(if on {
                    EcnChoice::On(Ecn::default())
                } else {
                    EcnChoice::Off
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<EcnChoice, A::Error> {
                Ecn::deserialize(MapAccessDeserializer::new(map)).map(EcnChoice::On)
            }
        }
        d.deserialize_any(Visit)
    }
}

impl Serialize for EcnChoice {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => s.serialize_str("off"),
            Self::On(ecn) => ecn.serialize(s),
        }
    }
}

impl JsonSchema for EcnChoice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EcnChoice".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [{ "const": "off" }, { "type": "boolean" }, generator.subschema_for::<Ecn>()]
        })
    }
}

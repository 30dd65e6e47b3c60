//! `qos:` classification, queues, scheduling and ECN. Keys that are absent come from the profile.

use std::collections::BTreeMap;
use std::fmt;

pub use npcc_pipeline::classify::Trust;
use npcc_pipeline::named;
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Dscp, PriorityId};
use crate::units::{BitRate, Percent, Ranged, Threshold};

/// Classification, queues, scheduling and ECN.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Qos {
    /// Set of defaults that the other keys start from.
    pub profile: Profile,
    /// Trust mode: the packet field that determines the priority.
    pub trust: Option<Trust>,
    /// Priority of packets that no map classifies.
    pub default_priority: Option<PriorityId>,
    /// DSCP to priority map; entries add to the profile's.
    pub dscp_to_priority: BTreeMap<Dscp, PriorityId>,
    /// VLAN PCP to priority map; entries add to the profile's.
    pub pcp_to_priority: BTreeMap<PriorityId, PriorityId>,
    /// Settings of the eight queues of every port; keys add to the profile's.
    pub priorities: BTreeMap<PriorityId, Priority>,
}

named! {
    /// Set of QoS defaults.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Profile {
        /// DSCP 26 to priority 3: lossless, DWRR 50, ECN; 48 to 6: strict; the rest to 0: DWRR 50.
        #[default]
        RoceLossless = "roce-lossless",
        /// Same queues as `roce-lossless`, but no pause is sent to senders: ECN and NPCC only.
        RoceSemiLossless = "roce-semi-lossless",
        /// Same queues as `roce-lossless`, all of them lossy.
        Lossy = "lossy",
    }
}

/// Settings of one of the eight queues of every port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {
    /// True if frames of this priority must not be dropped for lack of buffer.
    pub lossless: Option<bool>,
    /// Scheduling of the queue on its port.
    pub scheduler: Option<Scheduler>,
    /// DWRR weight, 1 to 100: the queue's share among the DWRR queues.
    pub weight: Option<Ranged<1, 100>>,
    /// Queue depths at which ECN-capable frames are marked.
    pub ecn: Option<EcnChoice>,
    /// Queue depths at which frames that are not ECN-capable are dropped early.
    pub wred: Option<Wred>,
    /// Maximum rate of the queue; default a tenth of the port's rate for a control queue (strict and lossy), no limit for any other.
    pub max_rate: Option<BitRate>,
    /// Guaranteed minimum rate, served ahead of strict queues and DWRR shares.
    pub min_rate: Option<BitRate>,
}

named! {
    /// Scheduling of a queue on its port.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Scheduler {
        /// Strict priority: before all DWRR queues; among strict queues the higher priority first.
        Strict = "strict",
        /// Deficit weighted round robin: by weight, in bytes.
        #[default]
        Dwrr = "dwrr",
    }
}

npcc_pipeline::defaults! {
    /// ECN marking curve: none below `kmin`, `pmax` at `kmax`, everything above.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Ecn {
        /// Queue depth at which marking begins.
        pub kmin: Threshold = Threshold::from_micros(60),
        /// Queue depth from which every frame is marked.
        pub kmax: Threshold = Threshold::from_micros(480),
        /// Marking probability just below `kmax`.
        pub pmax: Percent = Percent::of_whole(10),
    }
}

npcc_pipeline::defaults! {
    /// WRED curve for frames that are not ECN-capable: no early drop below `min`, `prob` at `max`, everything above.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Wred {
        /// Queue depth at which dropping begins.
        pub min: Threshold = Threshold::from_micros(240),
        /// Queue depth from which every frame is dropped.
        pub max: Threshold = Threshold::from_micros(960),
        /// Drop probability just below `max`.
        pub prob: Percent = Percent::of_whole(10),
    }
}

/// ECN thresholds, or `off` to disable those of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnChoice {
    /// ECN marking disabled.
    Off,
    /// ECN marking by these thresholds.
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

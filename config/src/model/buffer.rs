//! `buffer:` the shared packet buffer.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Bytes, Nanos, Ranged, UnitError};

/// The shared packet buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Buffer {
    /// Bytes of packets it holds.
    pub pool: Bytes,
    /// How much of what is free one queue may take (dynamic threshold).
    #[schemars(range(min = 0.0078125, max = 64.0))]
    pub alpha: f64,
    /// Data room of one packet buffer.
    pub mbuf: MbufSize,
    /// Mean frame size of lossless traffic in bytes at the worst, from which the number of buffers
    /// follows.
    pub lossless_min_frame: Ranged<64, 9216>,
    /// Longest turn of a worker's loop that headroom covers; `show pfc` compares it with the longest measured.
    pub loop_time: Nanos,
    /// Headroom shared by all ports; 0 gives each lossless priority of each port its own.
    pub shared_headroom: Bytes,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            pool: Bytes(64_000_000),
            alpha: 1.0,
            mbuf: MbufSize::Auto,
            lossless_min_frame: Ranged::fixed(1024),
            loop_time: Nanos::from_micros(50),
            shared_headroom: Bytes(0),
        }
    }
}

impl Buffer {
    /// `alpha` in 1/256, as the packet path uses it.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked configurations bound alpha to 1/128 to 64, and the cast saturates"
    )]
    pub fn alpha_256(&self) -> u32 {
        (self.alpha * 256.0).round() as u32
    }
}

/// Data room of one packet buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MbufSize {
    /// So that the largest frame of any port fits into one buffer.
    #[default]
    Auto,
    /// So many bytes, headroom included.
    Bytes(Bytes),
}

const ACCEPTED: &str = "write auto, or a size such as 2304B";

impl<'de> Deserialize<'de> for MbufSize {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = MbufSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(if f.alternate() {
                    ACCEPTED
                } else {
                    "a buffer size"
                })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<MbufSize, E> {
                match text {
                    "auto" => Ok(MbufSize::Auto),
                    _ => text
                        .parse()
                        .map(MbufSize::Bytes)
                        .map_err(|_| E::custom(UnitError::not(text, "a buffer size", ACCEPTED))),
                }
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<MbufSize, E> {
                Ok(MbufSize::Bytes(Bytes(n)))
            }
        }
        d.deserialize_any(Visit)
    }
}

impl Serialize for MbufSize {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => s.serialize_str("auto"),
            Self::Bytes(bytes) => bytes.serialize(s),
        }
    }
}

impl JsonSchema for MbufSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MbufSize".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": ACCEPTED,
            "anyOf": [{ "const": "auto" }, generator.subschema_for::<Bytes>()]
        })
    }
}

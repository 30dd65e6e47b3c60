//! `buffer:` the shared packet buffer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos, Ranged, word_or};

npcc_pipeline::defaults! {
    /// The shared packet buffer.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Buffer {
        /// Total size of the packet buffer shared by all ports, reserves and headroom included.
        pub pool: Bytes = Bytes(64_000_000),
        /// Dynamic threshold factor: a queue may hold up to alpha times the free shared buffer.
        #[schemars(range(min = 0.0078125, max = 64.0))]
        pub alpha: f64 = 1.0,
        /// Size of one packet buffer (mbuf): its data room, DPDK's 128 bytes of headroom included.
        pub mbuf: MbufSize = MbufSize::Auto,
        /// Smallest mean frame size of lossless traffic in bytes; determines the number of packet buffers.
        pub lossless_min_frame: Ranged<64, 9216> = Ranged::fixed(1024),
        /// Longest iteration of a worker's loop that headroom covers; `show pfc` compares it with the longest measured.
        pub loop_time: Nanos = Nanos::from_micros(50),
        /// Headroom pool shared by all ports; 0 gives each lossless priority of each port its own headroom.
        pub shared_headroom: Bytes = Bytes(0),
    }
}

impl Buffer {
    /// Returns `alpha` in units of 1/256, as the packet path uses it.
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

/// Size of one packet buffer (mbuf).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MbufSize {
    /// Large enough for the largest frame of any port to fit into one buffer.
    #[default]
    Auto,
    /// Fixed number of bytes, DPDK's headroom included.
    Bytes(Bytes),
}

const ACCEPTED: &str = "write auto, or a size such as 2304B";

word_or!(
    MbufSize as "MbufSize", "a buffer size", ACCEPTED,
    "auto" => Auto, Bytes(Bytes), number: n => MbufSize::Bytes(Bytes(n));
    schema: |generator| {
        "description": ACCEPTED,
        "anyOf": [{ "const": "auto" }, generator.subschema_for::<Bytes>()]
    }
);

//! `dpdk:` startup of DPDK's environment abstraction layer (EAL).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

npcc_pipeline::defaults! {
    /// Startup of DPDK's environment abstraction layer (EAL).
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Dpdk {
        /// Extra EAL arguments, passed on unchanged, such as `--no-pci` or `--file-prefix=lab`.
        pub eal_args: Vec<String> = Vec::new(),
        /// Use of hugepages for packet memory.
        pub hugepages: Hugepages = Hugepages::default(),
        /// Time to wait at startup for links to come up. Startup then continues, and each port forwards as soon as its own link is up.
        pub link_wait: Nanos = Nanos::from_millis(10_000),
    }
}

/// Use of hugepages for packet memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hugepages {
    /// Use hugepages if enough are free, ordinary memory otherwise.
    #[default]
    Auto,
    /// Require hugepages; refuse to start without them.
    On,
    /// Use ordinary memory (`--no-huge`).
    Off,
}

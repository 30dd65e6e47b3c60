//! `dpdk:` how DPDK's environment layer starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

npcc_pipeline::defaults! {
    /// How DPDK's environment layer starts.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Dpdk {
        /// Further EAL arguments, handed on as they are, such as `--no-pci` or `--file-prefix=lab`.
        pub eal_args: Vec<String> = Vec::new(),
        /// Whether packet memory is in hugepages.
        pub hugepages: Hugepages = Hugepages::default(),
        /// How long the start waits for links to come up. Then it goes on, and each port forwards as soon as its own link is up.
        pub link_wait: Nanos = Nanos::from_millis(10_000),
    }
}

/// Whether packet memory is in hugepages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hugepages {
    /// Hugepages when enough are free, ordinary memory otherwise.
    #[default]
    Auto,
    /// Hugepages, or do not start.
    On,
    /// Ordinary memory (`--no-huge`).
    Off,
}

//! `cores:` assignment of CPU cores to threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Auto, Ranged};

/// CPU core number, 0 to 1023.
pub type Core = Ranged<0, 1023>;

npcc_pipeline::defaults! {
    /// Assignment of CPU cores to threads.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Cores {
        /// CPU core of the control thread.
        pub control: Core = Core::fixed(0),
        /// CPU cores of the worker threads, which forward packets.
        pub workers: Vec<Core> = vec![Core::fixed(1)],
        /// CPU core of all other threads (management, link state, Linux integration); never a worker's. `auto` takes a core that neither
        /// control nor workers use, or pins to none.
        pub housekeeping: Auto<Core> = Auto::Auto,
        /// Behaviour of a worker that has no packets to process.
        pub idle: Idle = Idle::Poll,
    }
}

/// Behaviour of a worker that has no packets to process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Polls without pause: lowest latency, one whole core per worker.
    #[default]
    Poll,
    /// Sleeps after a while without traffic, and the next frame wakes it: for hosts shared with other work. Not allowed with lossless
    /// priorities.
    Adaptive,
}

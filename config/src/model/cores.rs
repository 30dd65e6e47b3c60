//! `cores:` which cores do what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Auto, Ranged};

/// A core's number.
pub type Core = Ranged<0, 1023>;

npcc_pipeline::defaults! {
    /// Which cores do what.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Cores {
        /// The core of the control thread.
        pub control: Core = Core::fixed(0),
        /// The cores that move packets.
        pub workers: Vec<Core> = vec![Core::fixed(1)],
        /// The core of all other threads: management, links, Linux; never a worker's. `auto` takes one that neither control nor workers
        /// use, or none in particular.
        pub housekeeping: Auto<Core> = Auto::Auto,
        /// What a worker does when there is nothing to do.
        pub idle: Idle = Idle::Poll,
    }
}

/// What a worker does when there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Polls without pause: the least latency, a whole core.
    #[default]
    Poll,
    /// Sleeps when nothing has come for a while, and the next frame wakes it: for hosts shared with others. Not with lossless
    /// priorities.
    Adaptive,
}

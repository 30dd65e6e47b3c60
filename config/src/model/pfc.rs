//! `pfc:` priority flow control, for all ports.

pub use npcc_pipeline::pause::StormAction as WatchdogAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Nanos, Percent};

/// Priority flow control, for all ports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pfc {
    /// Who makes the pause frames.
    pub backend: PfcBackend,
    /// What is done about a peer that pauses without end.
    #[serde(skip_serializing_if = "Watchdog::is_default")]
    pub watchdog: Watchdog,
}

/// Who makes the pause frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PfcBackend {
    /// The device where it can, else the switch.
    #[default]
    Auto,
    /// The device.
    Hardware,
    /// The switch.
    Software,
    /// Nobody: no pause is sent and none is obeyed.
    None,
}

npcc_pipeline::defaults! {
    /// What is done about a peer that pauses without end.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Watchdog {
        /// Paused for so long without sending is a storm.
        pub detect: Nanos = Nanos::from_millis(200),
        /// Paused with frames waiting for this share of twice that is one too, however often the peer lets go in between; 100% leaves only
        /// pauses without a break.
        pub share: Percent = Percent::of_whole(90),
        /// Without pause for so long is the end of it.
        pub restore: Nanos = Nanos::from_millis(200),
        /// How often it looks.
        pub poll: Nanos = Nanos::from_millis(100),
        /// What becomes of the queue's frames meanwhile.
        pub action: WatchdogAction = WatchdogAction::Drop,
    }
}

impl Watchdog {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

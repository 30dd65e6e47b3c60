//! `pfc:` priority flow control, for all ports.

pub use npcc_pipeline::pause::StormAction as WatchdogAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Nanos, Percent};

/// Priority flow control, for all ports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pfc {
    /// Origin of pause frames: the device or the switch's software.
    pub backend: PfcBackend,
    /// PFC watchdog: detection of pause storms, and the action taken.
    #[serde(skip_serializing_if = "Watchdog::is_default")]
    pub watchdog: Watchdog,
}

/// Origin of pause frames: the device or the switch's software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PfcBackend {
    /// Device where it supports PFC, software otherwise.
    #[default]
    Auto,
    /// Device only.
    Hardware,
    /// Software only.
    Software,
    /// PFC disabled: no pause frame is sent and none is honoured.
    None,
}

npcc_pipeline::defaults! {
    /// PFC watchdog: detection of pause storms (a peer that pauses without end), and the action taken.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Watchdog {
        /// Detection time: a queue whose frames wait behind an unbroken pause for this long is in a storm.
        pub detect: Nanos = Nanos::from_millis(200),
        /// Share of twice the detection time during which a queue with waiting frames must be paused to be in a storm as well, however often
        /// the peer releases it in between; 100% detects only unbroken pauses.
        pub share: Percent = Percent::of_whole(90),
        /// Restoration time: the storm ends after this long without a pause.
        pub restore: Nanos = Nanos::from_millis(200),
        /// Polling interval of the watchdog.
        pub poll: Nanos = Nanos::from_millis(100),
        /// Action on the queue's frames while the storm lasts.
        pub action: WatchdogAction = WatchdogAction::Drop,
    }
}

impl Watchdog {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

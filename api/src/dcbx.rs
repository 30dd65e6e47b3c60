//! Queue settings for hosts, as TLVs of DCBX.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Contents of `show dcbx --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Dcbx {
    /// Ports on which the TLVs are announced.
    pub ports: Vec<String>,
    /// Bit mask of the priorities that are paused rather than dropped.
    pub pfc: u8,
    /// Priority of each application.
    pub applications: Vec<Application>,
}

/// An application and its priority.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Application {
    /// Selector: `udp-port` or `dscp`.
    pub selector: String,
    /// UDP port or DSCP.
    pub value: u16,
    /// Priority of the application.
    pub priority: u8,
}

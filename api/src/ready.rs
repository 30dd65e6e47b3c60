//! Readiness of the switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of a switch that forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// True: every worker forwards. A switch that does not yet forward answers with status 503.
    pub forwards: bool,
    /// Time in microseconds since 1970 since when the routes are complete; null while they are not.
    pub routes_ready: Option<u64>,
    /// Time since when the sender of 95 % of the flows is known; null while that of fewer is, or there are no flows.
    pub pairs_ready: Option<u64>,
}

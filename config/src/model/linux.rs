//! `linux:` Linux as the control plane.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Linux as the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Linux {
    /// One TAP a port: Linux answers ARP, ND and ICMP, and its routes and neighbours are ours.
    pub integrate: bool,
}

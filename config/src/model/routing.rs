//! `routing:` sizes of the routing tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Count;

/// Sizes of the routing tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Routing {
    /// How many IPv4 routes fit, connected ones included.
    pub ipv4_routes: Count,
    /// How many IPv6 routes fit, connected ones included.
    pub ipv6_routes: Count,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            ipv4_routes: Count(16 << 10),
            ipv6_routes: Count(16 << 10),
        }
    }
}

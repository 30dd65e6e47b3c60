//! `neighbors:` static neighbours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Address, Mac};

/// Who has an address on a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbor {
    /// The neighbour's IP address.
    pub address: Address,
    /// The port it is on.
    pub port: String,
    /// Its Ethernet address.
    pub mac: Mac,
}

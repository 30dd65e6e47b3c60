//! `neighbors:` static neighbour (ARP and ND) entries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Address, Mac};

/// Static neighbour entry: an IP address on a port and its MAC address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbor {
    /// IP address of the neighbour.
    pub address: Address,
    /// Port on which the neighbour is reached.
    pub port: String,
    /// MAC address of the neighbour.
    pub mac: Mac,
}

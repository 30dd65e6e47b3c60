//! Pairs that an operator names by addresses and numbers.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pair in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ListedPair {
    /// Address of the data sender.
    pub src: IpAddr,
    /// Address of the data receiver.
    pub dst: IpAddr,
    /// Queue pair of the receiver.
    pub dest_qp: u32,
    /// Queue pair of the sender.
    pub sender_qp: u32,
}

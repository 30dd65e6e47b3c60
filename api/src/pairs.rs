//! Pairs that an operator names by addresses and numbers.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Operator's command about a pair, as it goes over the management socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairRequest {
    /// Add a pair: these queue pairs are one connection.
    AddPair(ListedPair),
    /// Delete the pair of these packets.
    DeletePair {
        /// Address of the sender.
        src: IpAddr,
        /// Address of the receiver.
        dst: IpAddr,
        /// Queue pair of the receiver.
        dest_qp: u32,
    },
}

/// Pair in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

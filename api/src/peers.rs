//! Peers: other boxes and agents of hosts, their names and their reports.

use std::collections::BTreeMap;

use npcc_roce::pair::foreign::view::PeerCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest name of a peer.
const LONGEST_NAME: usize = 32;

/// Name of a peer, as a client gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, derive_more::Display)]
#[serde(rename_all = "kebab-case")]
pub enum PeerName {
    /// Another box.
    #[display("{_0}")]
    Peer(String),
    /// Agent of a host.
    #[display("host:{_0}")]
    Host(String),
}

impl From<&str> for PeerName {
    /// Reads a name as `show peers` lists it.
    fn from(listed: &str) -> PeerName {
        match listed.strip_prefix("host:") {
            Some(host) => PeerName::Host(host.to_owned()),
            None => PeerName::Peer(listed.to_owned()),
        }
    }
}

impl PeerName {
    /// Returns the name under which the peer is listed.
    ///
    /// # Errors
    /// Says how a name is written.
    pub fn listed(&self) -> Result<String, String> {
        let (PeerName::Peer(name) | PeerName::Host(name)) = self;
        let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(valid) {
            return Err(format!(
                "`{name}` is no name of a peer: write 1 to {LONGEST_NAME} of a-z, 0-9 and -"
            ));
        }
        Ok(self.to_string())
    }
}

/// Most rows of a request.
pub const MOST_ROWS: usize = 1_024;

/// Rows of one peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestion {
    /// The peer: another box, or a host's agent.
    #[serde(flatten)]
    pub name: PeerName,
    /// Its rows, each an [`EndRow`](crate::ends::EndRow); one that is none is counted as malformed.
    pub rows: Vec<Value>,
}

/// Outcome of a list of reports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Suggested {
    /// Number of rows taken.
    pub accepted: u64,
    /// Number of rows refused, by reason.
    pub refused: BTreeMap<String, u64>,
}

/// Output of `show peers --json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct PeerTable {
    /// Version of the program.
    pub version: String,
    /// Time in microseconds since 1970 since when the routes are complete; null while they are not.
    pub routes_ready: Option<u64>,
    /// Time since when the sender of 95 % of the flows is known; null while that of fewer is, or there are no flows.
    pub pairs_ready: Option<u64>,
    /// Peers, in the order in which they were first heard.
    pub peers: Vec<PeerRow>,
}

/// Peer in `show peers`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct PeerRow {
    /// Name of the box; of a host's agent with `host:` before it.
    pub peer: String,
    /// True while nothing of it is believed.
    pub distrusted: bool,
    /// Time of its last report in microseconds since 1970; null before the first.
    pub heard: Option<u64>,
    /// Counters of the peer.
    #[serde(flatten)]
    pub counts: PeerCount,
}

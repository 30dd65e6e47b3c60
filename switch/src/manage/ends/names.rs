//! Names of peers, and their numbers.

use std::sync::{Mutex, PoisonError};

use npcc_cnp::pair::foreign::{PEERS, PeerId};
use serde::{Deserialize, Serialize};

use super::row::Speaker;

/// Longest name of a peer.
const LONGEST_NAME: usize = 32;
/// Name of a peer, as a client gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, derive_more::Display)]
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
    fn listed(&self) -> Result<String, String> {
        let (prefix, name) = match self {
            PeerName::Peer(name) => ("", name),
            PeerName::Host(name) => ("host:", name),
        };
        let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(valid) {
            return Err(format!(
                "`{name}` is no name of a peer: write 1 to {LONGEST_NAME} of a-z, 0-9 and -"
            ));
        }
        Ok(format!("{prefix}{name}"))
    }

    pub(super) const fn speaker(&self) -> Speaker {
        match self {
            PeerName::Peer(_) => Speaker::Box,
            PeerName::Host(_) => Speaker::Host,
        }
    }
}

/// Name that the agents share for which no number of their own is left.
const OTHERS: &str = "host:other-agents";

/// Names of the peers; the place of a name is the peer's number.
#[derive(Debug, Default)]
pub struct PeerNames(Mutex<Vec<String>>);

impl PeerNames {
    pub(super) fn all(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the number of a peer, which gets one the first time. Agents that come when all numbers but one are given share the last
    /// ([`OTHERS`]).
    pub(super) fn number(&self, name: &PeerName) -> Result<PeerId, String> {
        let listed = name.listed()?;
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = names.len() >= PEERS - 1;
        let is_host = matches!(name, PeerName::Host(_));
        let listed = if is_full && is_host && !names.contains(&listed) {
            OTHERS.to_owned()
        } else {
            listed
        };
        let at = match names.iter().position(|one| *one == listed) {
            Some(at) => at,
            None if is_full && !is_host => {
                let known = names.len();
                return Err(format!(
                    "{known} peers are known already: restart the switch to forget them"
                ));
            }
            None => {
                names.push(listed);
                names.len() - 1
            }
        };
        u8::try_from(at)
            .map(PeerId)
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;

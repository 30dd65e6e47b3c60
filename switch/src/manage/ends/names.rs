//! Names of peers, and their numbers.

use std::sync::{Mutex, PoisonError};

use npcc_roce::pair::foreign::{PEERS, PeerId};
use serde::{Deserialize, Serialize};

use super::row::Speaker;

/// Longest name of a peer.
const LONGEST_NAME: usize = 32;
/// Number of numbers that agents of hosts leave to boxes.
const BOXES: usize = 32;

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
    pub(super) fn listed(&self) -> Result<String, String> {
        let (PeerName::Peer(name) | PeerName::Host(name)) = self;
        let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(valid) {
            return Err(format!(
                "`{name}` is no name of a peer: write 1 to {LONGEST_NAME} of a-z, 0-9 and -"
            ));
        }
        Ok(self.to_string())
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

    /// Returns the number of a peer, which gets one the first time. Agents that come when all numbers but those of [`BOXES`] are given share
    /// one ([`OTHERS`]).
    pub(super) fn number(&self, name: &PeerName) -> Result<PeerId, String> {
        let listed = name.listed()?;
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = place(&names, &listed).or_else(|| match name {
            PeerName::Host(_) if names.len() + BOXES + 1 >= PEERS => {
                place(&names, OTHERS).or_else(|| enter(&mut names, OTHERS.to_owned()))
            }
            _ => enter(&mut names, listed),
        });
        let known = names.len();
        at.ok_or_else(|| {
            format!("{known} peers are known already: restart the switch to forget them")
        })
    }

    /// Returns the number of a peer that is known and not one of those who share a number: trust is given to it alone. A name that nobody
    /// used yet gets no number: there are few, and made-up names would leave none to boxes.
    pub(super) fn own_number(&self, name: &PeerName) -> Result<PeerId, String> {
        let listed = name.listed()?;
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place(&names, &listed).ok_or_else(|| match name {
            PeerName::Host(_) if place(&names, OTHERS).is_some() => {
                format!("`{name}` has no number of its own: name {OTHERS} for all that have none")
            }
            _ => format!("nothing was reported by `{name}`: `show peers` lists who did"),
        })
    }
}

fn place(names: &[String], listed: &str) -> Option<PeerId> {
    let at = names.iter().position(|one| one == listed)?;
    u8::try_from(at).ok().map(PeerId)
}

/// Gives a name the next number, if one is left.
fn enter(names: &mut Vec<String>, listed: String) -> Option<PeerId> {
    let number = u8::try_from(names.len()).ok().map(PeerId)?;
    names.push(listed);
    Some(number)
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;

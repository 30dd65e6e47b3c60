//! Names of peers, and their numbers.

use std::sync::{Mutex, PoisonError};

use npcc_api::peers::PeerName;
use npcc_roce::pair::foreign::{PEERS, PeerId};

/// Number of numbers that agents of hosts leave to boxes.
const BOXES: usize = 32;

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

//! Whose queue pair sends a flow: the number a CNP must carry and no data packet contains (facts 5; DESIGN section 3).
//!
//! A datagram names its sender (`datagram`). Every packet of RC or UC from A to B names a queue pair at B: an *end*. Ends of A -> B and of B -> A are the two sets
//! of names; pairing is matching them. One method a file, each a function of what is known *now*: nothing is remembered as
//! paired, so that a second arrival, a changed port or a lost candidate demotes before the next CNP.
//!
//! A method answers only when the match is the only one it could give. This module does not decide which evidence is
//! enough; the planner does.

pub mod book;
mod calibrate;
pub(crate) mod cm;
mod datagram;
pub(crate) mod ends;
mod judge;
mod numbers;
mod only;
mod pair_state;
mod port;
pub mod port_hash;
pub(crate) mod psn;

use crate::key::Qpn;
pub(crate) use judge::Judgement;

/// How a sender's queue pair is known, worst first, so that a better one compares greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Evidence {
    /// Not known.
    #[default]
    None,
    /// One queue pair in each direction between these addresses for a second.
    Only,
    /// One queue pair in each direction on this UDP source port, unchanged.
    Port,
    /// Acknowledged sequence numbers agree.
    Psn,
    /// Same UDP source port in both directions, and it is the hash of both queue pairs.
    PortHash,
    /// Both were named by the connection manager.
    Cm,
    /// Every packet names its sender: unreliable datagrams.
    Deth,
}

impl Evidence {
    /// All, worst first.
    pub const ALL: [Evidence; 7] = [
        Evidence::None,
        Evidence::Only,
        Evidence::Port,
        Evidence::Psn,
        Evidence::PortHash,
        Evidence::Cm,
        Evidence::Deth,
    ];

    /// The stable name operators and JSON see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Evidence::None => "none",
            Evidence::Only => "only",
            Evidence::Port => "port",
            Evidence::Psn => "psn",
            Evidence::PortHash => "port-hash",
            Evidence::Cm => "cm",
            Evidence::Deth => "deth",
        }
    }

    /// As an index into an array of seven.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The inverse of [`Evidence::index`]; out of range is [`Evidence::None`].
    #[must_use]
    pub fn from_index(index: usize) -> Evidence {
        Evidence::ALL.get(index).copied().unwrap_or_default()
    }
}

/// What is known of a flow's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Its queue pair.
    Paired(Qpn, Evidence),
    /// Packets come back, but which of them are this flow's cannot be told.
    Unpaired,
    /// No packet has come back yet: nobody can know.
    Cold,
}

impl Pairing {
    /// The evidence.
    #[must_use]
    pub const fn evidence(self) -> Evidence {
        match self {
            Pairing::Paired(_, evidence) => evidence,
            Pairing::Unpaired | Pairing::Cold => Evidence::None,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

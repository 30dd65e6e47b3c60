//! Pairing: finds the queue pair that sends a flow, the number a CNP must carry and no data packet contains (docs/pairing.md).
//!
//! A datagram names its sender (`datagram`). A packet of RC or UC from host A to host B names only a queue pair at B: an *endpoint*. The packets back
//! name endpoints at A, and pairing finds the endpoint at A that belongs to the one at B. There is one method per file, each a function of what is
//! known *now*: nothing is remembered as paired, so that a second arrival, a changed port or a lost candidate demotes before the next CNP.
//!
//! A method answers only when the match is the only one it could give. This module does not decide which evidence is
//! enough; a caller that signals senders does.

mod bindings;
mod calibrate;
pub(crate) mod cm;
pub mod connections;
mod datagram;
pub mod endpoints;
pub mod export;
mod exporter;
pub mod foreign;
mod pair_state;
mod port;
pub mod port_hash;
mod port_key;
pub mod psn;
mod resolve;
mod senders;
mod transport;

use npcc_pipeline::named;

use crate::key::Qpn;
pub use resolve::Resolution;
pub use transport::Transport;

named! {
    /// Evidence for a sender's queue pair, worst first: a better one compares greater.
    #[derive(PartialOrd, Ord, Default)]
    #[cfg_attr(
        feature = "config",
        derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
    )]
    #[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
    pub enum Evidence {
        /// Not known.
        #[default]
        #[cfg_attr(feature = "config", serde(skip))]
        None = "none",
        /// An end that another box or a host's agent reported, which the flow's own packets confirm.
        Foreign = "foreign",
        /// One queue pair in each direction on this UDP source port, unchanged.
        Port = "port",
        /// Acknowledged sequence numbers agree.
        Psn = "psn",
        /// Same UDP source port in both directions, and it is the hash of both queue pairs.
        PortHash = "port-hash",
        /// Both were named by the connection manager.
        Cm = "cm",
        /// Every packet names its sender: unreliable datagrams.
        #[cfg_attr(feature = "config", serde(skip))]
        Deth = "deth",
    }
}

/// Pairing of a flow with its sender's queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// The sender's queue pair is known, by this evidence.
    Paired(Qpn, Evidence),
    /// Packets come back, but which of them are this flow's is not known.
    Unpaired,
    /// No packet has come back yet: the sender cannot be known.
    Cold,
}

impl Pairing {
    /// Evidence for the sender's queue pair.
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

//! Foreign ends: reverse traffic that another box saw, and queue pairs that a host's agent reported (docs/pairing.md, "Foreign ends").
//!
//! A connection's answers may pass another box, and this switch then cannot learn the sender's queue pair from them. A peer's report
//! alone pairs no flow: an end counts where packets that this switch forwards confirm it ([`sender`]), ranks below all own evidence, and is gone as
//! soon as the switch sees the same queue pair itself.
//!
//! Fixed capacity, and a share of it for each peer ([`peers`]). An end is forgotten when its peer says so, when it was not reported again in time,
//! when the peer is distrusted, or when it is the oldest and another comes.

mod intake;
pub(super) mod peers;
pub(super) mod sender;
pub mod view;

use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

use super::port_key::PortKey;
use crate::fixed_map::{FixedMap, NONE};
use crate::key::{FlowKey, Qpn};
use crate::links::{Links, List};
use peers::Peers;

/// Maximum number of peers, hosts' agents included.
pub const PEERS: usize = 256;
/// Longest time for which an end is believed that is not reported again. A feed reports an end every 10 s while packets pass.
pub const HOLDS: Nanos = Nanos::from_millis(60_000);

/// Number of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u8);

/// Report of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// An end was seen.
    Seen(ReportedEnd),
    /// An end with this UDP source port is gone.
    Gone(FlowKey, u16),
}

/// End as a peer or a host's agent reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedEnd {
    /// Addresses of its frames, and the queue pair that they name: one of the host that might be signalled. Where a host does not know the address
    /// of its peer, the source is unspecified.
    pub key: FlowKey,
    /// UDP source port of its frames.
    pub udp_port: u16,
    /// Queue pair at the source, if a host's agent named it.
    pub partner: Option<Qpn>,
    /// Time for which the report holds, [`HOLDS`] at most.
    pub holds: Nanos,
}

named! {
    /// Reason why a report was refused.
    pub enum RefusedEnd {
        /// The peer is distrusted.
        Distrusted = "distrusted",
        /// The peer reports too many ends a second.
        Rate = "rate",
        /// The sender does not lie behind a trusted port, or the receiver behind no watched one, by the routes.
        NotBehindPort = "not-behind-port",
        /// Another peer reported the queue pair with another UDP source port.
        Disputed = "disputed",
        /// The report is older than it may be.
        Expired = "expired",
        /// The row has no queue pair of a connection, or addresses of none.
        Malformed = "malformed",
        /// The row is of a kind or a transport that is not used.
        Unsupported = "unsupported",
    }
}

/// End in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct ForeignEnd {
    port: u16,
    peer: PeerId,
    partner: Option<Qpn>,
    until: Nanos,
    /// Neighbours among the ends with the same direction and UDP source port.
    grouped: Links,
    /// Neighbours among the ends of the same peer, by the time of their reports.
    held: Links,
}

/// Ends of all peers.
#[derive(Debug)]
pub(super) struct ForeignEnds {
    ends: FixedMap<FlowKey, ForeignEnd>,
    ports: FixedMap<PortKey, List>,
    peers: Peers,
    /// Number of ends without a source.
    sourceless: usize,
}

impl ForeignEnds {
    /// Makes a table of at most `capacity` ends (about 170 bytes each, from the first report on).
    pub(super) fn new(capacity: usize, seed: u64) -> ForeignEnds {
        ForeignEnds {
            ends: FixedMap::new(capacity, seed),
            ports: FixedMap::new(capacity, seed),
            peers: Peers::new(capacity),
            sourceless: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of ends that a peer holds.
    pub(super) fn held_by(&self, peer: PeerId) -> usize {
        self.peers.held_by(peer)
    }

    /// Peer that reported this end.
    fn peer_of(&self, key: &FlowKey) -> Option<PeerId> {
        let end = self.ends.get(self.ends.find(key)?)?;
        Some(end.peer)
    }

    /// Peer that reported a queue pair which sends to the receiver of `flow`.
    pub(super) fn reporter(&self, flow: &FlowKey, sender: Qpn) -> Option<PeerId> {
        let key = flow.reversed(sender);
        let sourceless = || self.peer_of(&key.sourceless());
        self.peer_of(&key).or_else(sourceless)
    }

    /// Enters an end that is not there, if there is room.
    fn insert(&mut self, peer: PeerId, end: &ReportedEnd, until: Nanos) {
        let fresh = ForeignEnd {
            port: end.udp_port,
            peer,
            partner: end.partner,
            until,
            grouped: Links::NONE,
            held: Links::NONE,
        };
        let port = PortKey::of(&end.key, end.udp_port, false);
        let known = self.ports.find(&port);
        let Some(group) = known.or_else(|| self.ports.insert(port, List::EMPTY)) else {
            return;
        };
        let Some(index) = self.ends.insert(end.key, fresh) else {
            return;
        };
        if let Some(list) = self.ports.get_mut(group) {
            list.push_front(&mut self.ends, |end| &mut end.grouped, index);
        }
        self.peers.hold(&mut self.ends, peer, index);
        self.sourceless += usize::from(end.key.is_sourceless());
    }

    /// Removes an end; returns its key and its UDP source port.
    fn remove(&mut self, index: u32) -> Option<(FlowKey, u16)> {
        let (key, end) = (self.ends.key(index)?, *self.ends.get(index)?);
        let group = self.ports.find(&PortKey::of(&key, end.port, false));
        if let Some(group) = group
            && let Some(list) = self.ports.get_mut(group)
        {
            list.remove(&mut self.ends, |end| &mut end.grouped, index);
            if list.len == 0 {
                self.ports.remove(group);
            }
        }
        self.peers.release(&mut self.ends, end.peer, index);
        self.sourceless -= usize::from(key.is_sourceless());
        self.ends.remove(index);
        Some((key, end.port))
    }

    /// Number of ends of one direction and UDP source port, and the first of them.
    fn group(&self, port: &PortKey) -> (u32, u32) {
        let list = self.ports.find(port).and_then(|at| self.ports.get(at));
        list.map_or((0, NONE), |list| (list.len, list.head))
    }

    /// End with this key, if it is believed at this moment.
    fn believed(&self, key: &FlowKey, now: Nanos) -> Option<&ForeignEnd> {
        let end = self.ends.get(self.ends.find(key)?)?;
        (end.until > now && self.peers.is_believed(end.peer)).then_some(end)
    }

    /// Ends of a group that are believed at this moment.
    fn members(&self, head: u32, now: Nanos) -> impl Iterator<Item = (FlowKey, &ForeignEnd)> + '_ {
        let mut at = head;
        let all = std::iter::from_fn(move || {
            let (key, end) = (self.ends.key(at)?, self.ends.get(at)?);
            at = end.grouped.next;
            Some((key, end))
        });
        all.filter(move |(_, end)| end.until > now && self.peers.is_believed(end.peer))
    }
}

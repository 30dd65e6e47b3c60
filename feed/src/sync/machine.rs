//! The machine: own ends, peers, and what is published when.

use std::collections::BTreeMap;
use std::time::Duration;

use npcc_api::ends::{End, EndRow};
use npcc_pipeline::bits::mix;
use npcc_pipeline::token_bucket::TokenBucket;

use super::limits::Limits;
use super::message::{Body, Message, RejectReason, Topic};
use super::own::Own;
use super::parts::Parts;
use super::replica::{PARTS_A_SECOND, PARTS_AT_ONCE, PeerCounts, Replica};
use crate::name::Name;

/// Time between heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Time between digests.
const DIGEST: Duration = Duration::from_secs(10);

/// Message to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    topic: Topic,
    /// Peer that it is for; `None` for all.
    to: Option<Name>,
    /// Content, at most [`LONGEST`](super::LONGEST) bytes.
    pub bytes: Vec<u8>,
}

impl Outgoing {
    /// Returns the subject, after `npcc.SITE.BOX.`.
    #[must_use]
    pub fn subject(&self) -> String {
        let topic = self.topic.name();
        match &self.to {
            Some(peer) => format!("ends.{topic}.{peer}"),
            None => format!("ends.{topic}"),
        }
    }
}

/// State of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerState {
    /// Ends held.
    pub ends: usize,
    /// Time of the peer's last message, on the caller's clock; `None` before the first.
    pub heard: Option<Duration>,
    /// True if the copy equals the peer's ends as far as is known.
    pub equal: bool,
    /// Counters of messages and rows from this peer since the start.
    pub counts: PeerCounts,
}

/// Peer: the copy of its ends, and what it requested.
#[derive(Debug)]
struct Peer {
    replica: Replica,
    requested: Parts,
    digest_requested: bool,
    /// Bounds what it may request.
    serves: TokenBucket,
    /// Bounds the octets that are read as JSON, before they are.
    octets: TokenBucket,
}

/// Octets a second for each row a second: a row of a message takes some 160.
const OCTETS_A_ROW: u64 = 256;

impl Peer {
    /// Records a request for parts; an empty list requests the digest.
    fn request(&mut self, now: Duration, parts: &[u16]) {
        if !self.serves.take(now.into(), parts.len().max(1) as u64) {
            self.replica.refuse(RejectReason::Rate, 1);
        } else if parts.is_empty() {
            self.digest_requested = true;
        } else {
            parts
                .iter()
                .for_each(|part| self.requested.set(*part, true));
        }
    }
}

/// State machine of a box's feed.
#[derive(Debug)]
pub struct Machine {
    name: Name,
    epoch: u64,
    own: Own,
    peers: BTreeMap<Name, Peer>,
    heartbeat_at: Duration,
    digest_at: Duration,
    random: u64,
    /// Peer that was last sent parts, and peer whose rows were last suggested: the others come first.
    served: Option<Name>,
    suggested: Option<Name>,
}

/// Returns the names of all peers, those after `last` first.
fn round_robin(peers: &BTreeMap<Name, Peer>, last: Option<&Name>) -> Vec<Name> {
    let (before, after): (Vec<_>, Vec<_>) = peers
        .keys()
        .cloned()
        .partition(|name| last.is_some_and(|last| name <= last));
    after.into_iter().chain(before).collect()
}

impl Machine {
    /// Makes the machine of the box `name`. `epoch` is a random number of this start.
    #[must_use]
    pub fn new(name: Name, epoch: u64, peers: &[Name], limits: &Limits) -> Self {
        let octets = limits.rows_per_second.saturating_mul(OCTETS_A_ROW);
        let peer = |name: &Name| {
            let peer = Peer {
                replica: Replica::new(limits),
                requested: Parts::NONE,
                digest_requested: false,
                serves: TokenBucket::new(PARTS_A_SECOND, PARTS_AT_ONCE),
                octets: TokenBucket::new(octets, 2 * octets),
            };
            (name.clone(), peer)
        };
        Self {
            own: Own::new(epoch, limits.ends),
            peers: peers
                .iter()
                .filter(|peer| **peer != name)
                .map(peer)
                .collect(),
            name,
            epoch,
            heartbeat_at: Duration::ZERO,
            digest_at: Duration::ZERO,
            random: epoch,
            served: None,
            suggested: None,
        }
    }

    /// Takes a row of the own switch.
    pub fn row(&mut self, row: EndRow) {
        self.own.take(row);
    }

    /// Takes a message that was published under the subject of the box `from`; ignores boxes that are no peers.
    pub fn receive(&mut self, now: Duration, from: &Name, bytes: &[u8]) {
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        if !peer.octets.take(now.into(), bytes.len() as u64) {
            peer.replica.refuse(RejectReason::Rate, 1);
            return;
        }
        match Message::decode(bytes, from) {
            Ok(message) => {
                if let Some(parts) = peer.replica.receive(now, message) {
                    peer.request(now, &parts);
                }
            }
            Err(reason) => peer.replica.refuse(reason, 1),
        }
    }

    /// Notes that the bus is back: peers learn at once how far this box is.
    pub fn reconnected(&mut self, now: Duration) {
        self.heartbeat_at = now;
    }

    /// Returns the next message to publish at this time; `None` if there is none left.
    pub fn publish(&mut self, now: Duration) -> Option<Outgoing> {
        if let Some(delta) = self.own.delta() {
            return Some(self.outgoing(Topic::Delta, None, delta));
        }
        if now >= self.digest_at {
            self.digest_at = now + DIGEST;
            self.heartbeat_at = now + HEARTBEAT;
            let digest = self.own.digest();
            return Some(self.outgoing(Topic::Digest, None, digest));
        }
        if now >= self.heartbeat_at {
            self.heartbeat_at = now + HEARTBEAT;
            let heartbeat = self.own.heartbeat();
            return Some(self.outgoing(Topic::Digest, None, heartbeat));
        }
        let (topic, to, body) = self.next_of_a_peer(now)?;
        Some(self.outgoing(topic, Some(to), body))
    }

    fn next_of_a_peer(&mut self, now: Duration) -> Option<(Topic, Name, Body)> {
        for name in round_robin(&self.peers, self.served.as_ref()) {
            let Some(peer) = self.peers.get_mut(&name) else {
                continue;
            };
            let jitter = (mix(self.random) >> 11) as f64 / (1u64 << 53) as f64;
            if let Some(request) = peer.replica.request(now, jitter) {
                self.random = self.random.wrapping_add(1);
                return Some((Topic::Request, name, request));
            }
            if std::mem::take(&mut peer.digest_requested) {
                return Some((Topic::Snapshot, name, self.own.digest()));
            }
            if !peer.requested.is_empty() {
                let parts = self.own.parts(&mut peer.requested);
                self.served = Some(name.clone());
                return Some((Topic::Snapshot, name, parts));
            }
        }
        None
    }

    fn outgoing(&self, topic: Topic, to: Option<Name>, body: Body) -> Outgoing {
        let message = Message::new(self.name.clone(), self.epoch, body);
        Outgoing {
            topic,
            to,
            bytes: message.encode(),
        }
    }

    /// Takes at most `most` rows to suggest to the switch, all of one peer; `None` if there is none.
    pub fn suggestions(&mut self, most: usize) -> Option<(Name, Vec<EndRow>)> {
        for name in round_robin(&self.peers, self.suggested.as_ref()) {
            let peer = self.peers.get_mut(&name);
            let rows = peer.map(|peer| peer.replica.suggestions(most));
            if let Some(rows) = rows.filter(|rows| !rows.is_empty()) {
                self.suggested = Some(name.clone());
                return Some((name, rows));
            }
        }
        None
    }

    /// Has the ends of all peers be suggested again, to a switch that started anew: those of peers and ends that were heard of within 60 s.
    pub fn repeat_suggestions(&mut self, now: Duration) {
        for peer in self.peers.values_mut() {
            peer.replica.repeat(now);
        }
    }

    /// Has the next of these ends of one peer be suggested again, of at most `most` ends. Does nothing after the last one, unless the
    /// switch refused some `again`.
    pub fn repeat_refused(&mut self, now: Duration, peer: &Name, most: usize, again: bool) {
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.replica.repeat_some(now, most, again);
        }
    }

    /// Returns true if the own switch's rows are all published.
    #[must_use]
    pub fn is_published(&self) -> bool {
        !self.own.has_delta()
    }

    /// Returns the number of own ends.
    #[must_use]
    pub fn own_ends(&self) -> usize {
        self.own.ends().len()
    }

    /// Returns the number of own rows that were not published: more than the limits, or out of range.
    #[must_use]
    pub const fn own_lost(&self) -> u64 {
        self.own.lost
    }

    /// Returns the ends of a peer as this box holds them.
    pub fn ends_of(&self, peer: &Name) -> impl Iterator<Item = &End> {
        let peer = self.peers.get(peer).into_iter();
        peer.flat_map(|peer| peer.replica.ends().iter())
    }

    /// Returns the state of each peer.
    pub fn peers(&self) -> impl Iterator<Item = (&Name, PeerState)> {
        self.peers.iter().map(|(name, peer)| {
            let replica = &peer.replica;
            let state = PeerState {
                ends: replica.ends().len(),
                heard: replica.heard(),
                equal: replica.is_equal(),
                counts: replica.counts,
            };
            (name, state)
        })
    }

    /// Returns the number of refusals of a peer for a reason.
    #[cfg(test)]
    pub(super) fn refused(&self, peer: &Name, reason: RejectReason) -> u64 {
        let peer = self.peers.get(peer);
        peer.map_or(0, |peer| peer.replica.counts.refused[reason.index()])
    }

    #[cfg(test)]
    pub(super) fn own(&self) -> &Own {
        &self.own
    }

    #[cfg(test)]
    pub(super) fn waiting(&self, peer: &Name) -> usize {
        self.peers[peer].replica.waiting()
    }
}

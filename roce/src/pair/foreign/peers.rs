//! Peers: the share of the table that each holds, its rate, and its trust.
//!
//! Laws: a peer holds half of the table at most. While the table is full, the oldest end of the peer that holds most makes room for the
//! newcomer, so a peer that floods displaces its own. What a peer said before it was distrusted never counts again, also if it is trusted soon
//! after: until the last end is removed, its ends do not count and its reports are refused.

use npcc_pipeline::units::Nanos;

use super::{ForeignEnd, PEERS, PeerId, RefusedEnd};
use crate::fixed_map::{FixedMap, NONE};
use crate::key::FlowKey;
use crate::links::List;
use npcc_pipeline::token_bucket::TokenBucket;

/// Maximum number of ends forgotten per tick.
pub(super) const FORGOTTEN_PER_TICK: usize = 32;
/// Number of peers examined per tick for ends to forget.
const EXAMINED: usize = 16;
/// Reports that a peer may send a second: more than a box with 65,536 connections that all move.
const RATE: u64 = 200_000;
/// Reports that it may send at once: a whole table.
const BURST: u64 = 131_072;

type Ends = FixedMap<FlowKey, ForeignEnd>;

#[derive(Debug, Clone, Copy)]
struct Peer {
    /// Its ends, the one longest not reported first.
    ends: List,
    budget: TokenBucket,
    distrusted: bool,
    /// True from distrust on until the last of its ends is removed.
    forgetting: bool,
}

impl Peer {
    const fn is_believed(&self) -> bool {
        !self.distrusted && !self.forgetting
    }
}

#[derive(Debug)]
pub(super) struct Peers {
    all: Box<[Peer; PEERS]>,
    /// Maximum number of ends of one peer.
    share: usize,
    /// Peer at which the search for ends to forget goes on.
    next: usize,
}

impl Peers {
    pub(super) fn new(capacity: usize) -> Peers {
        let nobody = Peer {
            ends: List::EMPTY,
            budget: TokenBucket::new(RATE, BURST),
            distrusted: false,
            forgetting: false,
        };
        Peers {
            all: Box::new([nobody; PEERS]),
            share: (capacity / 2).max(1),
            next: 0,
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "every number of a peer is below PEERS"
    )]
    const fn of(&self, peer: PeerId) -> &Peer {
        &self.all[peer.0 as usize]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "every number of a peer is below PEERS"
    )]
    const fn of_mut(&mut self, peer: PeerId) -> &mut Peer {
        &mut self.all[peer.0 as usize]
    }

    pub(super) fn held_by(&self, peer: PeerId) -> usize {
        self.of(peer).ends.len as usize
    }

    pub(super) const fn is_believed(&self, peer: PeerId) -> bool {
        self.of(peer).is_believed()
    }

    pub(super) const fn distrust(&mut self, peer: PeerId, distrusted: bool) {
        let peer = self.of_mut(peer);
        peer.distrusted = distrusted;
        peer.forgetting |= distrusted && peer.ends.len > 0;
    }

    pub(super) fn refuses(&mut self, peer: PeerId, now: Nanos) -> Option<RefusedEnd> {
        let peer = self.of_mut(peer);
        if !peer.is_believed() {
            return Some(RefusedEnd::Distrusted);
        }
        (!peer.budget.take(now, 1)).then_some(RefusedEnd::Rate)
    }

    pub(super) fn hold(&mut self, ends: &mut Ends, peer: PeerId, index: u32) {
        let held = &mut self.of_mut(peer).ends;
        held.push_back(ends, |end| &mut end.held, index);
    }

    pub(super) fn release(&mut self, ends: &mut Ends, peer: PeerId, index: u32) {
        let peer = self.of_mut(peer);
        peer.ends.remove(ends, |end| &mut end.held, index);
        peer.forgetting &= peer.ends.len > 0;
    }

    /// Makes an end the one reported last.
    pub(super) fn touch(&mut self, ends: &mut Ends, peer: PeerId, index: u32) {
        self.release(ends, peer, index);
        self.hold(ends, peer, index);
    }

    /// End that must go before another of this peer is entered.
    pub(super) fn must_go(&self, ends: &Ends, newcomer: PeerId) -> Option<u32> {
        let own = self.of(newcomer).ends;
        let from = if own.len as usize >= self.share {
            own
        } else if ends.is_full() {
            self.all
                .iter()
                .map(|peer| peer.ends)
                .max_by_key(|held| held.len)?
        } else {
            return None;
        };
        (from.head != NONE).then_some(from.head)
    }

    /// Finds an end that is believed no longer, among the oldest of the next peers.
    pub(super) fn overdue(&mut self, ends: &Ends, now: Nanos) -> Option<u32> {
        for _ in 0..EXAMINED {
            let peer = self.all.get(self.next)?;
            let oldest = ends.get(peer.ends.head);
            if oldest.is_some_and(|end| peer.forgetting || end.until <= now) {
                return Some(peer.ends.head);
            }
            self.next = (self.next + 1) % PEERS;
        }
        None
    }
}

//! Endpoints seen between all addresses, by key, by UDP source port, and by address pair.
//!
//! Fixed capacity. When full, the endpoint longest unseen goes first, those not paired before those that are, and none seen within [`LIVE`], so
//! made-up packets cannot push out connections in use; nor, where a quarter is not paired, connections that pause. One exception: an endpoint
//! between addresses of which one never answers makes room for the newcomer of a port or source that [holds less](crate::holdings).

mod doubt;
mod endpoint;
mod group;
mod groups;
pub(super) mod numbers;
pub(super) mod psn_state;

use npcc_pipeline::units::{Nanos, PortId};

use super::pair_state::{PairKey, PairState};
use crate::fixed_map::{FixedMap, Hints, NONE, TOGETHER};
use crate::holdings::{Holder, Holdings, LOOKED_AT};
use crate::key::{FlowKey, low32};
use crate::links::List;
pub(crate) use endpoint::{Endpoint, Life, Transport};
pub(crate) use group::Group;
use group::PortKey;
use numbers::{Like, NumberIndex};

/// Time since its last packet within which an endpoint is in use. One that is not paired is forgotten after this time unseen: an endpoint once
/// seen beside others keeps them in doubt no longer.
pub(crate) const LIVE: Nanos = Nanos::from_millis(3_000);
/// Share of endpoints (1/4) that may be unpaired before no paired one gives way to a newcomer.
const LOOSE_SHARE: usize = 4;
/// Time before a REP within which a packet of the new connection may be processed: they come by different workers.
const JUST: Nanos = Nanos::from_micros(100);
/// Time after its end for which packets of a connection may still arrive.
const CLOSING: Nanos = Nanos::from_millis(100);
/// Time without packets after which an endpoint whose packets were of several kinds may be named again.
const MIXED: Nanos = Nanos::from_millis(60_000);

/// Error: packets of an endpoint are not of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mixed;

/// List of endpoints that may go first.
const LOOSE: u8 = 0;
/// List of endpoints that are paired.
const PAIRED: u8 = 1;

#[derive(Debug)]
pub(crate) struct Endpoints {
    pub(super) entries: FixedMap<FlowKey, Endpoint>,
    groups: FixedMap<PortKey, Group>,
    pairs: FixedMap<PairKey, PairState>,
    pub(super) numbers: NumberIndex,
    /// Holdings of endpoints that are not paired.
    loose: Holdings,
    pub(crate) refused: u64,
    pub(crate) displaced: u64,
    pub(crate) entered: u64,
}

impl Endpoints {
    pub(crate) fn new(capacity: usize, seed: u64) -> Endpoints {
        Endpoints {
            entries: FixedMap::new(capacity, seed),
            groups: FixedMap::new(capacity, seed),
            pairs: FixedMap::new(capacity, seed),
            numbers: NumberIndex::new(capacity, seed),
            loose: Holdings::new(seed),
            refused: 0,
            displaced: 0,
            entered: 0,
        }
    }

    /// Prefetches the endpoints with these keys into the cache; returns their places.
    pub(crate) fn prefetch(&self, keys: impl Iterator<Item = FlowKey>) -> Hints {
        self.entries.prefetch(keys, Endpoint::look)
    }

    /// Prefetches the partners last found for these endpoints into the cache; returns their places.
    pub(crate) fn prefetch_partners(&self, endpoints: &[u32]) -> Hints {
        let partner = |endpoint: &u32| {
            self.entries
                .get(*endpoint)
                .map_or(NONE, |state| state.partner)
        };
        let partners: Hints = endpoints.iter().map(partner).take(TOGETHER).collect();
        let look = |endpoint: &Endpoint| endpoint.look() ^ u64::from(endpoint.sent.first);
        self.entries.prefetch_values(&partners, look);
        partners
    }

    /// Prefetches the groups of these endpoints' ports, and their opposites, into the cache.
    pub(crate) fn prefetch_opposite(&self, endpoints: &[u32]) {
        let group = |endpoint: &u32| {
            self.entries
                .get(*endpoint)
                .map_or(NONE, |state| state.group)
        };
        let groups: Hints = endpoints.iter().map(group).take(TOGETHER).collect();
        let opposite = |group: &u32| self.opposite_index(*group).unwrap_or(NONE);
        let opposite: Hints = groups.iter().map(opposite).collect();
        self.groups
            .prefetch_values(&opposite, |group| u64::from(group.endpoints.len));
    }

    /// Prefetches endpoints known by their index into the cache.
    pub(crate) fn prefetch_found(&self, endpoints: &[u32]) {
        self.entries.prefetch_values(endpoints, Endpoint::look);
    }

    /// Touches all memory there will ever be.
    pub(crate) fn touch_memory(&mut self, any: FlowKey) {
        let (pair, blank) = (
            PairKey::of(&any).0,
            Endpoint::new(Transport::Rc, NONE, 0, Nanos::ZERO),
        );
        self.entries.touch_memory(any, blank);
        self.groups
            .touch_memory(PortKey::of(&any, 0, false), Group::EMPTY);
        self.pairs.touch_memory(pair, PairState::default());
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<u32> {
        self.entries.find(key)
    }

    /// Finds the endpoint with this key, looked for first at the place that [`Endpoints::prefetch`] returned.
    pub(crate) fn find_at(&self, hint: u32, key: &FlowKey) -> Option<u32> {
        self.entries.find_at(hint, key)
    }

    pub(crate) fn endpoint(&self, endpoint: u32) -> Option<&Endpoint> {
        self.entries.get(endpoint)
    }

    pub(crate) fn endpoint_mut(&mut self, endpoint: u32) -> Option<&mut Endpoint> {
        self.entries.get_mut(endpoint)
    }

    pub(crate) fn key(&self, endpoint: u32) -> Option<FlowKey> {
        self.entries.key(endpoint)
    }

    pub(crate) fn pair(&self, pair: u32) -> Option<&PairState> {
        self.pairs.get(pair)
    }

    pub(super) fn pair_mut(&mut self, pair: u32) -> Option<&mut PairState> {
        self.pairs.get_mut(pair)
    }

    /// Returns the endpoint with this key, made if need be.
    pub(crate) fn enter(&mut self, key: &FlowKey, transport: Transport, now: Nanos) -> Option<u32> {
        match self.entries.find(key) {
            Some(endpoint) => self.see_as(endpoint, transport, now),
            None => self.make(key, transport, Holder::NOBODY, now),
        }
    }

    /// Holder of an endpoint whose packets came in by `ingress`.
    pub(super) fn holder(&self, key: &FlowKey, ingress: PortId) -> Holder {
        self.loose.holder(key, ingress)
    }

    /// Records that an endpoint was seen with this transport; with another transport than before it is made anew. If it was in use with the other
    /// until now, one of both is made up, or its number has just changed hands: no sender to it is believed for a while.
    pub(super) fn see_as(
        &mut self,
        endpoint: u32,
        transport: Transport,
        now: Nanos,
    ) -> Option<u32> {
        let state = self.entries.get(endpoint)?;
        if state.transport == transport {
            return self.see(endpoint, now);
        }
        let in_use = now.since(state.last_seen) < LIVE;
        let (began, holder, key) = (state.began, state.holder, self.key(endpoint)?);
        self.remove(endpoint, now);
        let endpoint = self.make(&key, transport, holder, now)?;
        let state = self.entries.get_mut(endpoint)?;
        state.port_changes = 1;
        if in_use {
            (state.doubted_until, state.began) = (now + LIVE, began);
        }
        Some(endpoint)
    }

    /// Records that an endpoint was seen.
    pub(super) fn see(&mut self, endpoint: u32, now: Nanos) -> Option<u32> {
        self.entries.touch(endpoint);
        let state = self.entries.get_mut(endpoint)?;
        if state.port.is_none() && now.since(state.last_seen) >= LIVE {
            // Its port may be evidence again.
            state.port_changes = state.port_changes.min(1);
        }
        state.last_seen = now;
        Some(endpoint)
    }

    /// Makes an endpoint for a key that has none.
    pub(super) fn make(
        &mut self,
        key: &FlowKey,
        transport: Transport,
        holder: Holder,
        now: Nanos,
    ) -> Option<u32> {
        if self.entries.is_full() && !self.make_room(holder, now) {
            self.refused += 1;
            return None;
        }
        let (mut pair_key, direction) = PairKey::of(key);
        if transport.is_ud() {
            pair_key = pair_key.of_datagrams();
        }
        let pair = match self.pairs.find(&pair_key) {
            Some(pair) => pair,
            None => self.pairs.insert(pair_key, PairState::default())?,
        };
        let mut state = Endpoint::new(transport, pair, low32(self.entered), now);
        state.holder = holder;
        let endpoint = self.entries.insert(*key, state)?;
        self.loose.count(holder, true);
        let common = self.is_common(key, pair);
        self.entered += 1;
        let state = self.pairs.get_mut(pair)?;
        state.common += u32::from(common);
        let side = state.side_mut(direction);
        side.push_front(&mut self.entries, |endpoint| &mut endpoint.side, endpoint);
        Some(endpoint)
    }

    /// Returns true if the number of a queue pair occurs in the other direction too, among endpoints of the same kind (connections or datagrams).
    fn is_common(&self, key: &FlowKey, pair: u32) -> bool {
        let other = self.entries.find(&key.reversed(key.dest_qp()));
        let other = other.and_then(|other| self.entries.get(other));
        other.is_some_and(|other| other.pair == pair)
    }

    /// Removes an endpoint. The caller must renew its group's verdicts ([`Endpoints::set_port`] first).
    fn remove(&mut self, endpoint: u32, now: Nanos) {
        self.set_port(endpoint, None, now);
        self.forget_psn(endpoint);
        let (Some(key), Some(of)) = (
            self.key(endpoint),
            self.endpoint(endpoint).map(|state| state.pair),
        ) else {
            return;
        };
        let (_, direction) = PairKey::of(&key);
        if let Some(pair) = self.pairs.get_mut(of) {
            let side = pair.side_mut(direction);
            side.remove(&mut self.entries, |endpoint| &mut endpoint.side, endpoint);
        }
        self.set_list(endpoint, PAIRED);
        self.entries.remove(endpoint);
        let common = self.is_common(&key, of);
        if let Some(pair) = self.pairs.get_mut(of) {
            pair.common = pair.common.saturating_sub(u32::from(common));
            if pair.is_empty() {
                self.pairs.remove(of);
            }
        }
    }

    /// Begins a new connection on an endpoint: evidence from its earlier packets is void.
    pub(super) fn renew(&mut self, endpoint: u32, labelled: bool, now: Nanos) {
        self.set_port(endpoint, None, now);
        self.forget_psn(endpoint);
        if let Some(state) = self.entries.get_mut(endpoint) {
            state.sent.first = NONE;
            state.port_changes = 0;
            state.labelled = labelled;
            state.began = now;
        }
    }

    /// Makes an endpoint the newest of a list.
    fn set_list(&mut self, endpoint: u32, list: u8) {
        let (Some(before), Some(state)) =
            (self.entries.list_of(endpoint), self.entries.get(endpoint))
        else {
            return;
        };
        if before != list {
            self.loose.count(state.holder, list == LOOSE);
        }
        self.entries.set_list(endpoint, list);
    }

    fn make_room(&mut self, newcomer: Holder, now: Nanos) -> bool {
        let is_idle = |endpoint: &u32| {
            let state = self.entries.get(*endpoint);
            state.is_some_and(|state| now.since(state.last_seen) >= LIVE)
        };
        let loose = self.entries.by_age(LOOSE).take(LOOKED_AT).find(|endpoint| {
            let state = self.entries.get(*endpoint);
            let holds_more =
                state.is_some_and(|state| self.loose.makes_room(state.holder, newcomer));
            is_idle(endpoint)
                || holds_more
                    && self
                        .opposite_side(*endpoint)
                        .is_none_or(|side| side.len == 0)
        });
        // Paired endpoints outlive their traffic, however many newcomers there are: beyond a share of the table newcomers push out each other.
        let few_loose = self.entries.len_of(LOOSE) < self.entries.len() / LOOSE_SHARE;
        let paired = || {
            let oldest = self.entries.oldest(PAIRED).filter(is_idle);
            oldest.filter(|_| few_loose)
        };
        match loose.or_else(paired) {
            Some(endpoint) => {
                self.displaced += 1;
                self.remove(endpoint, now);
                true
            }
            None => {
                // Moved back, so that the next newcomer looks at others.
                self.entries.rotate(LOOSE, LOOKED_AT);
                false
            }
        }
    }

    /// Activity of the endpoint with this key.
    pub(super) fn life(&self, key: &FlowKey, now: Nanos) -> Life {
        let state = self
            .find(key)
            .and_then(|endpoint| self.entries.get(endpoint));
        match state {
            Some(state) if now.since(state.last_seen) < LIVE => {
                let ended = state.last_seen < state.began;
                if ended || now.since(state.began) < JUST {
                    Life::New
                } else {
                    Life::Living
                }
            }
            _ => Life::Silent,
        }
    }

    /// Properties of the packets of an endpoint that was seen before just now; `Err` if they were of several kinds, not long ago.
    pub(super) fn like(&self, endpoint: u32, now: Nanos) -> Result<Option<Like>, Mixed> {
        let Some(state) = self.entries.get(endpoint) else {
            return Ok(None);
        };
        // After a connection's end its last packets are still on their way: their properties until then count.
        if state.began <= now && now.since(state.began) < JUST {
            return Ok(None);
        }
        if state.port_changes > 0 {
            let forgotten = now.since(state.last_seen) >= MIXED;
            return if forgotten { Ok(None) } else { Err(Mixed) };
        }
        Ok(state.port.map(|port| Like {
            port,
            last: state.sent.last,
            packets: state.sent.packets,
        }))
    }

    /// Ends the connection of an endpoint: its packets until now are no sign of life.
    pub(super) fn bury(&mut self, endpoint: u32, now: Nanos) {
        self.renew(endpoint, false, now);
        if let Some(state) = self.entries.get_mut(endpoint) {
            // Nor are its last packets, still on their way.
            (state.last_seen, state.began) = (Nanos::ZERO, now + CLOSING);
        }
    }

    /// Forgets up to `budget` endpoints that are not paired and long unseen.
    pub(crate) fn forget(&mut self, now: Nanos, budget: usize) {
        for _ in 0..budget {
            let Some(endpoint) = self.entries.oldest(LOOSE) else {
                return;
            };
            if self
                .entries
                .get(endpoint)
                .is_some_and(|state| now.since(state.last_seen) < LIVE)
            {
                return;
            }
            self.remove(endpoint, now);
        }
    }

    /// Stores an endpoint's partner, and moves both to the list of those to be kept.
    pub(super) fn settle(&mut self, endpoint: u32, partner: Option<u32>) {
        let Some(state) = self.entries.get_mut(endpoint) else {
            return;
        };
        let before = std::mem::replace(&mut state.partner, partner.unwrap_or(NONE));
        if partner == Some(before) || (partner.is_none() && before == NONE) {
            return;
        }
        if self
            .entries
            .get(before)
            .is_some_and(|other| other.partner == endpoint || other.partner == NONE)
        {
            self.set_list(before, LOOSE);
        }
        self.set_list(endpoint, if partner.is_some() { PAIRED } else { LOOSE });
        if let Some(partner) = partner {
            self.set_list(partner, PAIRED);
        }
    }

    /// Endpoints of the other direction between the same addresses.
    pub(super) fn opposite_side(&self, endpoint: u32) -> Option<&List> {
        let pair = self.pairs.get(self.entries.get(endpoint)?.pair)?;
        let (_, direction) = PairKey::of(&self.entries.key(endpoint)?);
        Some(pair.side(direction.back()))
    }

    /// Returns true if packets of this endpoint's direction have no answer at all.
    pub(crate) fn is_cold(&self, endpoint: u32) -> bool {
        let (Some(state), Some(key)) = (self.entries.get(endpoint), self.entries.key(endpoint))
        else {
            return true;
        };
        let Some(pair) = self.pairs.get(state.pair) else {
            return true;
        };
        let (_, direction) = PairKey::of(&key);
        pair.side(direction.back()).len == 0
            || (pair.hash_holds() && self.opposite(endpoint).is_none())
    }
}

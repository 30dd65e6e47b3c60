//! Endpoints seen between all addresses, by key, by UDP source port, and by address pair.
//!
//! Fixed capacity. When full, the endpoint longest unseen goes first, those not paired before those that are, and none seen within [`LIVE`], so
//! made-up packets cannot push out connections in use; nor, where a quarter is not paired, connections that pause. One exception: an endpoint
//! between addresses of which one never answers makes room for the newcomer of a port or source that [holds less](crate::holdings).

mod endpoint;
mod group;
mod groups;
mod port_majority;
pub(super) mod psn_state;
pub(super) mod psns;
mod replacement;

use npcc_pipeline::units::{Nanos, PortId};

use super::export::Export;
use super::foreign::ForeignEnds;
use super::pair_state::{PairKey, PairState};
use super::port_key::PortKey;
use super::transport::Transport;
use crate::fixed_map::{FixedMap, Hints, NONE, TOGETHER};
use crate::holdings::{Holder, Holdings};
use crate::key::{FlowKey, low32};
pub(crate) use endpoint::{Activity, Endpoint};
pub(crate) use group::Group;
use psns::{Fingerprint, PsnIndex};

/// Time since its last packet within which an endpoint is in use. One that is not paired is forgotten after this time unseen: an endpoint once
/// seen beside others keeps them in doubt no longer.
pub const LIVE: Nanos = Nanos::from_millis(3_000);
/// Time before a REP within which a packet of the new connection may be processed: they come by different workers.
const WORKER_SKEW: Nanos = Nanos::from_micros(100);
/// Time after its end for which packets of a connection may still arrive.
const TIME_WAIT: Nanos = Nanos::from_millis(100);
/// Time without packets after which an endpoint whose packets were of several kinds may be bound again.
const MIXED: Nanos = Nanos::from_millis(60_000);

/// Error: packets of an endpoint are not of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mixed;

#[derive(Debug)]
pub(crate) struct Endpoints {
    pub(super) entries: FixedMap<FlowKey, Endpoint>,
    groups: FixedMap<PortKey, Group>,
    pairs: FixedMap<PairKey, PairState>,
    pub(super) psn_index: PsnIndex,
    /// Holdings of endpoints that are not paired.
    unpaired: Holdings,
    pub(super) foreign: ForeignEnds,
    pub(super) export: Export,
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
            psn_index: PsnIndex::new(capacity, seed),
            unpaired: Holdings::new(seed),
            foreign: ForeignEnds::new(capacity / 2, seed),
            export: Export::default(),
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

    /// Returns true if peers reported ends.
    pub(super) fn has_foreign(&self) -> bool {
        !self.foreign.is_empty()
    }

    /// Returns one more than the largest index of an endpoint there ever was.
    pub(super) fn places(&self) -> u32 {
        self.entries.places()
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
    pub(crate) fn get_or_insert(
        &mut self,
        key: &FlowKey,
        transport: Transport,
        now: Nanos,
    ) -> Option<u32> {
        match self.entries.find(key) {
            Some(endpoint) => self.observe_as(endpoint, transport, now),
            None => self.insert(key, transport, Holder::NOBODY, now),
        }
    }

    /// Holder of an endpoint whose packets came in by `ingress`.
    pub(super) fn holder(&self, key: &FlowKey, ingress: PortId) -> Holder {
        self.unpaired.holder(key, ingress)
    }

    /// Records that an endpoint was seen with this transport; with another transport than before it is made anew. If it was in use with the other
    /// until now, one of both is made up, or its number has just changed hands: no sender to it is believed for a while.
    pub(super) fn observe_as(
        &mut self,
        endpoint: u32,
        transport: Transport,
        now: Nanos,
    ) -> Option<u32> {
        let state = self.entries.get(endpoint)?;
        if state.transport == transport {
            return self.observe(endpoint, now);
        }
        let in_use = now.since(state.last_seen) < LIVE;
        let (began, holder, key) = (state.began, state.holder, self.key(endpoint)?);
        self.remove(endpoint, now);
        let endpoint = self.insert(&key, transport, holder, now)?;
        let state = self.entries.get_mut(endpoint)?;
        state.port_changes = 1;
        if in_use {
            (state.suspect_until, state.began) = (now + LIVE, began);
        }
        Some(endpoint)
    }

    /// Records that an endpoint was seen.
    pub(super) fn observe(&mut self, endpoint: u32, now: Nanos) -> Option<u32> {
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
    pub(super) fn insert(
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
        self.unpaired.count(holder, true);
        let common = self.is_common(key, pair);
        self.entered += 1;
        let state = self.pairs.get_mut(pair)?;
        state.common += u32::from(common);
        state.count(direction, true);
        self.update_shared_with(key, now);
        Some(endpoint)
    }

    /// Returns true if the number of a queue pair occurs in the other direction too, among endpoints of the same kind (connections or datagrams).
    fn is_common(&self, key: &FlowKey, pair: u32) -> bool {
        let other = self.entries.find(&key.reversed(key.dest_qp()));
        let other = other.and_then(|other| self.entries.get(other));
        other.is_some_and(|other| other.pair == pair)
    }

    /// Removes an endpoint. The caller must update its group's verdicts ([`Endpoints::set_port`] first).
    fn remove(&mut self, endpoint: u32, now: Nanos) {
        self.export_gone(endpoint);
        self.set_port(endpoint, None, now);
        self.reset_psn(endpoint);
        let (Some(key), Some(of)) = (
            self.key(endpoint),
            self.endpoint(endpoint).map(|state| state.pair),
        ) else {
            return;
        };
        let (_, direction) = PairKey::of(&key);
        if let Some(pair) = self.pairs.get_mut(of) {
            pair.count(direction, false);
        }
        self.set_list(endpoint, replacement::PAIRED);
        self.entries.remove(endpoint);
        self.update_shared_with(&key, now);
        let common = self.is_common(&key, of);
        if let Some(pair) = self.pairs.get_mut(of) {
            pair.common = pair.common.saturating_sub(u32::from(common));
            if pair.is_empty() {
                self.pairs.remove(of);
            }
        }
    }

    /// Begins a new connection on an endpoint: evidence from its earlier packets is void.
    pub(super) fn reset(&mut self, endpoint: u32, labelled: bool, now: Nanos) {
        self.set_port(endpoint, None, now);
        self.reset_psn(endpoint);
        if let Some(state) = self.entries.get_mut(endpoint) {
            state.sent.first = NONE;
            state.port_changes = 0;
            state.labelled = labelled;
            state.began = now;
        }
    }

    /// Activity of the endpoint with this key.
    pub(super) fn activity(&self, key: &FlowKey, now: Nanos) -> Activity {
        let state = self
            .find(key)
            .and_then(|endpoint| self.entries.get(endpoint));
        match state {
            Some(state) if now.since(state.last_seen) < LIVE => {
                let ended = state.last_seen < state.began;
                if ended || now.since(state.began) < WORKER_SKEW {
                    Activity::New
                } else {
                    Activity::Active
                }
            }
            _ => Activity::Silent,
        }
    }

    /// Properties of the packets of an endpoint that was seen before just now; `Err` if they were of several kinds, not long ago.
    pub(super) fn fingerprint(
        &self,
        endpoint: u32,
        now: Nanos,
    ) -> Result<Option<Fingerprint>, Mixed> {
        let Some(state) = self.entries.get(endpoint) else {
            return Ok(None);
        };
        // An endpoint that began less than `WORKER_SKEW` ago has no earlier packets. After a close `began` lies ahead, so the last packets still count.
        if state.began <= now && now.since(state.began) < WORKER_SKEW {
            return Ok(None);
        }
        if state.port_changes > 0 {
            let forgotten = now.since(state.last_seen) >= MIXED;
            return if forgotten { Ok(None) } else { Err(Mixed) };
        }
        Ok(state.port.map(|port| Fingerprint {
            port,
            last: state.sent.last,
            packets: state.sent.packets,
        }))
    }

    /// Closes the connection of an endpoint: its packets until now are no activity.
    pub(super) fn close(&mut self, endpoint: u32, now: Nanos) {
        self.export_gone(endpoint);
        self.reset(endpoint, false, now);
        if let Some(state) = self.entries.get_mut(endpoint) {
            // Packets of the closed connection may still arrive during `TIME_WAIT`; they are no activity either.
            (state.last_seen, state.began) = (Nanos::ZERO, now + TIME_WAIT);
        }
    }

    /// Number of endpoints of the other direction between the same addresses.
    pub(super) fn opposite_endpoints(&self, endpoint: u32) -> Option<u32> {
        let pair = self.pairs.get(self.entries.get(endpoint)?.pair)?;
        let (_, direction) = PairKey::of(&self.entries.key(endpoint)?);
        Some(pair.endpoints(direction.back()))
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
        pair.endpoints(direction.back()) == 0
            || (pair.own.holds() && self.opposite(endpoint).is_none())
    }
}

//! Table of connections' endpoints: learns from records which queue pair sends a flow.

use arrayvec::ArrayVec;
use npcc_pipeline::units::{Nanos, PortId};
use npcc_pipeline::wire::bth::RoceClass;

use super::bindings::BindingSource;
use super::cm::{Change, CmTable};
use super::endpoints::{Endpoint, Endpoints};
use super::foreign::{PeerId, RefusedEnd, ReportedEnd};
use super::transport::Transport;
use super::{port_hash, psn};
use crate::cm::message::Message;
use crate::fixed_map::{Hints, NONE, TOGETHER};
use crate::key::{FlowKey, Qpn};
use crate::sample::{PacketSample, SlotRef};

/// Place of an endpoint in the table, valid while its key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointId(pub u32);

/// All endpoints of one switch. The control core is its only user.
#[derive(Debug)]
pub struct ConnectionTable {
    pub(super) endpoints: Endpoints,
    pub(super) cm: CmTable,
}

impl ConnectionTable {
    /// Makes a table of at most `capacity` endpoints (two a connection; about 400 bytes each).
    #[must_use]
    pub fn new(capacity: usize, seed: u64) -> ConnectionTable {
        ConnectionTable {
            endpoints: Endpoints::new(capacity, seed),
            cm: CmTable::new(capacity, seed),
        }
    }

    /// Number of endpoints known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns true if no endpoint is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.endpoints.len() == 0
    }

    /// Number of endpoints refused because every other was in use.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.endpoints.refused
    }

    /// Number of endpoints entered since the start.
    #[must_use]
    pub fn entered(&self) -> u64 {
        self.endpoints.entered
    }

    /// Prefetches the endpoints with these keys into the cache; returns their places.
    pub fn prefetch(&self, keys: impl Iterator<Item = FlowKey>) -> Hints {
        self.endpoints.prefetch(keys)
    }

    /// Prefetches the likely partners of these endpoints into the cache; returns their places.
    pub fn prefetch_partners(&self, endpoints: &[u32]) -> Hints {
        self.endpoints.prefetch_partners(endpoints)
    }

    /// Prefetches the groups opposite to these endpoints' ports into the cache.
    pub fn prefetch_opposite(&self, endpoints: &[u32]) {
        self.endpoints.prefetch_opposite(endpoints);
    }

    /// Entry of the flow table that may be this endpoint's.
    pub fn flow_hint(&self, endpoint: u32) -> u32 {
        self.endpoints
            .endpoint(endpoint)
            .map_or(NONE, |state| state.flow)
    }

    /// Reader and slot in which a worker keeps the present sequence number of requests to this endpoint.
    pub fn request_slot(&self, endpoint: u32) -> Option<(usize, SlotRef)> {
        self.endpoints.request_slot(endpoint)
    }

    /// Prefetches endpoints whose place is known into the cache.
    pub fn prefetch_found(&self, endpoints: &[EndpointId]) {
        let endpoints: ArrayVec<u32, TOGETHER> = endpoints
            .iter()
            .map(|endpoint| endpoint.0)
            .take(TOGETHER)
            .collect();
        self.endpoints.prefetch_found(&endpoints);
    }

    /// Touches all memory there will ever be.
    pub fn touch_memory(&mut self, any: FlowKey) {
        self.endpoints.touch_memory(any);
    }

    /// Number of idle endpoints that made room for others.
    #[must_use]
    pub fn displaced(&self) -> u64 {
        self.endpoints.displaced
    }

    /// Returns true if a record names a queue pair of a connection, or the sender of datagrams.
    #[must_use]
    pub fn teaches(record: &PacketSample) -> bool {
        match record.class {
            RoceClass::Data
            | RoceClass::ReadRequest
            | RoceClass::Ack
            | RoceClass::Atomic
            | RoceClass::Datagram
            | RoceClass::Cnp => true,
            RoceClass::Management | RoceClass::Unsupported => false,
        }
    }

    /// Returns true if a READ RESPONSE to an endpoint answers no request, where the requests of its connection pass here; `read_psn` returns the present
    /// sequence number of requests in a worker's slot.
    pub fn is_unrequested(
        &self,
        endpoint: EndpointId,
        record: &PacketSample,
        read_psn: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> bool {
        self.endpoints.is_unrequested(endpoint.0, record, read_psn)
    }

    /// Learns from a record of the worker with this number. `None` if the table is full.
    pub fn observe(&mut self, record: &PacketSample, reader: usize) -> Option<EndpointId> {
        self.observe_with(record, reader, |_, _| None)
    }

    /// Learns from a record; `read_psn` returns the present sequence number of requests in a worker's slot.
    pub fn observe_with(
        &mut self,
        record: &PacketSample,
        reader: usize,
        read_psn: impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> Option<EndpointId> {
        let known = self.find(&record.key);
        self.observe_known(record, reader, known, read_psn)
    }

    /// Learns from a record whose endpoint has been looked for: `known`, or none.
    pub fn observe_known(
        &mut self,
        record: &PacketSample,
        reader: usize,
        known: Option<EndpointId>,
        read_psn: impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> Option<EndpointId> {
        let (transport, time) = (Transport::of(record), record.time);
        let endpoint = match (known, transport) {
            (Some(EndpointId(endpoint)), Some(transport)) => {
                self.endpoints.observe_as(endpoint, transport, time)
            }
            (Some(EndpointId(endpoint)), None) => self.endpoints.observe(endpoint, time),
            (None, _) => {
                let transport = transport.unwrap_or(Transport::Rc);
                let holder = self.endpoints.holder(&record.key, record.ingress);
                self.endpoints.insert(&record.key, transport, holder, time)
            }
        }?;
        let state = self.endpoints.endpoint_mut(endpoint)?;
        let first = state.packets == 0;
        state.count(reader, record.slot, record.packets);
        if record.class == RoceClass::Cnp {
            // A CNP's UDP source port is not the connection's.
            state.cnp_passed = Some(record.time);
        } else if state.transport.is_ud() {
            if let Some(sender) = record.source_qp {
                state.observe_sender(sender, first, time);
            }
        } else {
            self.endpoints
                .observe_port(endpoint, record.udp_port, record.time);
            let request = self
                .endpoints
                .observe_psn(endpoint, record, reader, &read_psn);
            self.cm.check(&record.key, record.udp_port, request, time);
        }
        self.endpoints.export_seen(endpoint, record);
        Some(EndpointId(endpoint))
    }

    /// Learns from a message of the connection manager between these addresses, which came in by this port.
    pub fn observe_message(&mut self, path: (&FlowKey, PortId), message: &Message, now: Nanos) {
        let endpoints = &self.endpoints;
        let activity = |key: &FlowKey| endpoints.activity(key, now);
        self.export_message(path.0, message, now);
        match self.cm.observe(path, message, now, &activity) {
            Change::Paired(one, other, _) if self.is_refuted(&one, &other, now) => {
                self.cm.refute(&one);
            }
            Change::Paired(one, other, transport) => self.begin((one, other), transport, now),
            Change::Closed(one, other) => {
                for key in [one, other] {
                    if let Some(endpoint) = self.endpoints.find(&key) {
                        self.endpoints.close(endpoint, now);
                    }
                }
            }
            Change::Nothing => {}
        }
    }

    /// Returns true if packets show that these endpoints belong to others than to each other, or to several.
    fn is_refuted(&self, one: &FlowKey, other: &FlowKey, now: Nanos) -> bool {
        let seen = |key: &FlowKey| {
            let endpoint = self.endpoints.find(key)?;
            port_hash::partner(&self.endpoints, endpoint)
                .or_else(|| psn::partner(&self.endpoints, endpoint))
        };
        let is_mixed = |key: &FlowKey| {
            let endpoint = self.endpoints.find(key);
            endpoint.is_some_and(|endpoint| self.endpoints.fingerprint(endpoint, now).is_err())
        };
        [(one, other), (other, one)]
            .into_iter()
            .any(|(key, binding)| {
                let another = seen(key)
                    .is_some_and(|endpoint| self.endpoints.find(binding) != Some(endpoint));
                another || is_mixed(key)
            })
    }

    /// Pairs two queue pairs by the operator's word; returns `false` if there is no room.
    pub fn add_pair(&mut self, to_receiver: &FlowKey, sender: Qpn, now: Nanos) -> bool {
        self.add(to_receiver, sender, BindingSource::Operator, now)
    }

    /// Pairs two queue pairs from a list, which counts only where packets agree: the UDP source port is the hash of
    /// both, or packets to both have the same port. The connection manager's and the operator's word take precedence. Returns `false` if there is no
    /// room.
    pub fn suggest_pair(&mut self, to_receiver: &FlowKey, sender: Qpn, now: Nanos) -> bool {
        self.add(to_receiver, sender, BindingSource::List, now)
    }

    fn add(
        &mut self,
        to_receiver: &FlowKey,
        sender: Qpn,
        source: BindingSource,
        now: Nanos,
    ) -> bool {
        let endpoints = &self.endpoints;
        let activity = |key: &FlowKey| endpoints.activity(key, now);
        let given = self
            .cm
            .add_pair(to_receiver, sender, source, now, &activity);
        for key in [*to_receiver, to_receiver.reversed(sender)] {
            if let Some(endpoint) = self.find(&key).filter(|_| given) {
                self.update_partner(endpoint, now);
            }
        }
        given
    }

    /// Deletes a pair that the connection manager, the operator or a list named; returns `false` if there is none.
    pub fn delete_pair(&mut self, key: &FlowKey) -> bool {
        self.cm.delete_pair(key)
    }

    /// Begins a connection between two endpoints.
    fn begin(&mut self, (one, other): (FlowKey, FlowKey), transport: Transport, now: Nanos) {
        // Both are known now, though neither may have sent yet.
        let labelled = self
            .cm
            .binding(&one, now)
            .is_some_and(|binding| binding.flow_label != 0);
        for key in [one, other] {
            let was = self.endpoints.find(&key);
            let was = was.and_then(|endpoint| self.endpoints.fingerprint(endpoint, now).ok()?);
            self.cm.remember(&key, was);
            if let Some(endpoint) = self.endpoints.get_or_insert(&key, transport, now) {
                // Earlier packets may be of a connection that only paused: their properties are kept to compare with.
                if was.is_none() {
                    self.endpoints.reset(endpoint, labelled, now);
                }
                self.update_partner(EndpointId(endpoint), now);
            }
        }
    }

    /// Number of pairs of the connection manager taken back because something spoke against them.
    #[must_use]
    pub const fn contradicted(&self) -> u64 {
        self.cm.contradicted
    }

    /// Number of the connection manager's connections that made room for others.
    pub const fn cm_displaced(&self) -> u64 {
        self.cm.displaced
    }

    /// Finds the endpoint with this key.
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> Option<EndpointId> {
        self.endpoints.find(key).map(EndpointId)
    }

    /// Finds the endpoint with this key, looked for first at the place that [`ConnectionTable::prefetch`] returned.
    pub fn find_at(&self, hint: u32, key: &FlowKey) -> Option<EndpointId> {
        self.endpoints.find_at(hint, key).map(EndpointId)
    }

    /// Key of an endpoint.
    #[must_use]
    pub fn key(&self, endpoint: EndpointId) -> Option<FlowKey> {
        self.endpoints.key(endpoint.0)
    }

    /// Returns an endpoint that is in the table.
    pub fn endpoint(&self, endpoint: EndpointId) -> Option<&Endpoint> {
        self.endpoints.endpoint(endpoint.0)
    }

    /// Returns an endpoint that is in the table, for changes.
    pub fn endpoint_mut(&mut self, endpoint: EndpointId) -> Option<&mut Endpoint> {
        self.endpoints.endpoint_mut(endpoint.0)
    }

    /// Begins another tick, in which this many endpoints may be compared by sequence number.
    pub fn refill_psn_budget(&mut self, steps: usize) {
        self.endpoints.psn_index.steps = steps;
    }

    /// Forgets a few endpoints that are not paired and long unseen. Bounded work.
    pub fn age(&mut self, now: Nanos) {
        self.endpoints.forget(now, 8);
        self.endpoints.age_foreign(now);
    }

    /// Takes a peer's report of an end whose addresses were checked. Returns the number of ends that made room for it.
    ///
    /// # Errors
    /// [`RefusedEnd::Disputed`].
    pub fn take_end(
        &mut self,
        peer: PeerId,
        end: &ReportedEnd,
        now: Nanos,
    ) -> Result<u64, RefusedEnd> {
        self.endpoints.take_end(peer, end, now)
    }

    /// Forgets an end with this UDP source port that its own peer says is gone.
    pub fn forget_end(&mut self, peer: PeerId, end: (&FlowKey, u16), now: Nanos) {
        self.endpoints.forget_end(peer, end, now);
    }

    /// Believes nothing of a peer from now on; or believes it again, as soon as all is forgotten that it said before.
    pub fn distrust(&mut self, peer: PeerId, distrusted: bool) {
        self.endpoints.distrust(peer, distrusted);
    }

    /// Returns why a peer's next report is refused, whatever it says: it is distrusted, or reports too many.
    pub fn refuses(&mut self, peer: PeerId, now: Nanos) -> Option<RefusedEnd> {
        self.endpoints.refuses(peer, now)
    }

    /// Number of ends that a peer holds.
    #[must_use]
    pub fn held_by(&self, peer: PeerId) -> usize {
        self.endpoints.foreign.held_by(peer)
    }

    /// Peer that reported that this queue pair sends to the receiver of `flow`.
    pub fn reporter(&self, flow: &FlowKey, sender: Qpn) -> Option<PeerId> {
        self.endpoints.foreign.reporter(flow, sender)
    }
}

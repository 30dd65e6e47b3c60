//! Bindings of endpoints to senders, given by the connection manager, the operator or an import, while they are believed.
//!
//! Law: a binding counts only while the packets of its endpoint are like those it was first seen with: the same UDP source port, and
//! sequence numbers that go on from there. A packet that differs may be made up, or of another connection, which has taken
//! the number over without a message. So the binding is doubted, not lost: it counts again once packets like the first ones came back
//! and none of another kind was seen for [`LIVE`], more than the longest time between two of a flow's records.

use npcc_pipeline::units::Nanos;

use super::endpoints::LIVE;
use super::endpoints::psns::Fingerprint;
use super::transport::Transport;
use crate::fixed_map::{FixedMap, MapKey};
use crate::key::{FlowKey, Qpn};
use crate::links::NONE;

/// Key of a connection: its addresses, in the requester's direction (`path`, with queue pair 0), and the communication id that the requester chose.
/// For a pair given by hand `path` has the sender's queue pair, and `comm_id` is the receiver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConnectionId {
    pub(super) path: FlowKey,
    comm_id: u32,
}

impl ConnectionId {
    /// Key of the connection with this communication id; the queue pair of `path` is dropped.
    pub(super) fn new(path: FlowKey, comm_id: u32) -> ConnectionId {
        ConnectionId {
            path: path.with_qp(Qpn::default()),
            comm_id,
        }
    }

    /// Key of a pair given by hand: connections of the connection manager have no queue pair there.
    pub(super) fn given(to_receiver: &FlowKey, sender: Qpn) -> ConnectionId {
        ConnectionId {
            path: to_receiver.with_qp(sender),
            comm_id: to_receiver.dest_qp().get(),
        }
    }
}

/// Queue pair of one address, as packets to it name it. An RC or UC queue pair has one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    address: [u64; 2],
    v6: bool,
    qpn: Qpn,
}

impl MapKey for ConnectionId {}
impl MapKey for Owner {}

impl Owner {
    pub(super) fn destination(key: &FlowKey) -> Owner {
        Owner {
            address: key.dst,
            v6: key.is_ipv6(),
            qpn: key.dest_qp(),
        }
    }

    pub(super) fn source(path: &FlowKey, qpn: Qpn) -> Owner {
        Owner {
            address: path.src,
            v6: path.is_ipv6(),
            qpn,
        }
    }
}

/// Source of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindingSource {
    /// The connection manager, of queue pairs of this transport.
    Cm(Transport),
    /// The operator, for this pair.
    Operator,
    /// A list that was read in: it counts only where packets agree.
    List,
}

/// Binding of an endpoint: its sender's queue pair, and the source of that knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Binding {
    /// Queue pair that sends to this endpoint.
    pub(crate) sender: Qpn,
    pub(crate) source: BindingSource,
    /// Flow label from which the UDP source port follows, instead of from the queue pairs; 0 for none.
    pub(crate) flow_label: u32,
    pub(super) id: ConnectionId,
    /// Properties of its packets, once seen.
    fingerprint: Option<Fingerprint>,
    /// Properties of the endpoint's packets before it was bound: of a connection that paused, if the packets continue them.
    before: Option<Fingerprint>,
    /// Time of the last packet like the first ones (`own_at`), and of the last one unlike them (`other_at`).
    own_at: Nanos,
    other_at: Nanos,
}

impl Binding {
    pub(super) const fn new(
        sender: Qpn,
        source: BindingSource,
        flow_label: u32,
        id: ConnectionId,
    ) -> Binding {
        Binding {
            sender,
            source,
            flow_label,
            id,
            fingerprint: None,
            before: None,
            own_at: Nanos::ZERO,
            other_at: Nanos::ZERO,
        }
    }

    /// Returns true if the binding is of queue pairs of this transport.
    pub(crate) fn is_of(&self, transport: Transport) -> bool {
        match self.source {
            BindingSource::Cm(of) => of == transport,
            BindingSource::Operator | BindingSource::List => !transport.is_ud(),
        }
    }

    /// Returns true if the binding counts only where packets agree: it is from a list, or the endpoint had packets before.
    pub(crate) const fn needs_proof(&self) -> bool {
        matches!(self.source, BindingSource::List) || self.before.is_some()
    }

    /// Returns true if the endpoint's packets are those it was first seen with.
    pub(crate) fn is_believed(&self, now: Nanos) -> bool {
        self.other_at == Nanos::ZERO
            || self.own_at > self.other_at && now.since(self.other_at) >= LIVE
    }
}

#[derive(Debug)]
pub(super) struct Bindings {
    bindings: FixedMap<FlowKey, Binding>,
    owners: FixedMap<Owner, FlowKey>,
}

impl Bindings {
    pub(super) fn new(endpoints: usize, seed: u64) -> Bindings {
        Bindings {
            bindings: FixedMap::new(endpoints, seed),
            owners: FixedMap::new(endpoints, seed),
        }
    }

    /// Binding of this endpoint, believed or not.
    pub(super) fn of(&self, key: &FlowKey) -> Option<Binding> {
        self.bindings
            .find(key)
            .and_then(|index| self.bindings.get(index).copied())
    }

    /// Endpoint to which a queue pair is bound, whoever its peer is.
    pub(super) fn owner(&self, owner: &Owner) -> Option<(FlowKey, Binding)> {
        let index = self.owners.find(owner)?;
        let key = *self.owners.get(index)?;
        Some((key, self.of(&key)?))
    }

    /// Inserts a binding; returns `false` if there is no room.
    pub(super) fn insert(&mut self, key: FlowKey, binding: Binding) -> bool {
        self.owners.insert(Owner::destination(&key), key).is_some()
            && self.bindings.insert(key, binding).is_some()
    }

    /// Removes a binding, if it belongs to this connection.
    pub(super) fn remove_of(&mut self, key: &FlowKey, id: &ConnectionId) {
        if self.of(key).is_none_or(|binding| binding.id != *id) {
            return;
        }
        if let Some(index) = self.bindings.find(key) {
            self.bindings.remove(index);
        }
        if let Some(index) = self.owners.find(&Owner::destination(key)) {
            self.owners.remove(index);
        }
    }

    /// Stores the properties that the packets of an endpoint had until it was bound.
    pub(super) fn remember(&mut self, key: &FlowKey, before: Option<Fingerprint>) {
        let index = self.bindings.find(key);
        if let Some(binding) = index.and_then(|index| self.bindings.get_mut(index)) {
            binding.before = before;
        }
    }

    /// Compares a packet of an endpoint with its binding; `request`: its sequence number, if it is one, and the endpoint's packet count. Returns `true` if
    /// this is the first packet that speaks against the binding.
    pub(super) fn check(
        &mut self,
        key: &FlowKey,
        port: u16,
        request: Option<(u32, u32)>,
        now: Nanos,
    ) -> bool {
        let index = self.bindings.find(key);
        let Some(binding) = index.and_then(|index| self.bindings.get_mut(index)) else {
            return false;
        };
        let is_continued = |fingerprint: Fingerprint| fingerprint.is_continued(port, request);
        if !binding.before.is_some_and(is_continued) && binding.fingerprint.is_none_or(is_continued)
        {
            let known = binding.fingerprint.map_or((NONE, 0), |fingerprint| {
                (fingerprint.last, fingerprint.packets)
            });
            let (last, packets) = request.unwrap_or(known);
            binding.fingerprint = Some(Fingerprint {
                port,
                last,
                packets,
            });
            binding.own_at = now;
            return false;
        }
        let believed = binding.is_believed(now);
        binding.other_at = now;
        believed
    }
}

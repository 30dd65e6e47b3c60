//! Names: pairs given by the connection manager, the operator or an import, and whether they are believed.
//!
//! Law: a name counts only while the packets of its endpoint are like those it was first seen with: the same UDP source port, and
//! sequence numbers that go on from there. A packet that differs may be made up, or of another connection, which has taken
//! the number over without a message. So the name is doubted, not lost: it counts again once packets like the first ones came back
//! and none of another kind was seen for [`LIVE`], more than the longest time between two of a flow's records.

use npcc_pipeline::units::Nanos;

use super::endpoints::numbers::Like;
use super::endpoints::{LIVE, Transport};
use crate::fixed_map::{FixedMap, MapKey};
use crate::key::{FlowKey, Qpn};
use crate::links::NONE;

/// Key of a connection: its addresses, in the requester's direction (`way`, with queue pair 0), and the communication id that the requester chose.
/// For a pair given by hand `way` has the sender's queue pair, and `id` is the receiver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id {
    pub(super) way: FlowKey,
    pub(super) id: u32,
}

/// Queue pair of one address, as packets to it name it. An RC or UC queue pair has one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    address: [u64; 2],
    v6: bool,
    qpn: Qpn,
}

impl MapKey for Id {}
impl MapKey for Owner {}

impl Owner {
    pub(super) fn destination(key: &FlowKey) -> Owner {
        Owner {
            address: key.dst,
            v6: key.is_ipv6(),
            qpn: key.dest_qp(),
        }
    }

    pub(super) fn source(way: &FlowKey, qpn: Qpn) -> Owner {
        Owner {
            address: way.src,
            v6: way.is_ipv6(),
            qpn,
        }
    }
}

/// Source of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The connection manager, of queue pairs of this transport.
    Manager(Transport),
    /// The operator, for this pair.
    Operator,
    /// A list that was read in: it counts only where packets agree.
    List,
}

/// Name of an endpoint: its sender's queue pair, and the source of that knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    /// Queue pair that sends to this endpoint.
    pub(crate) sender: Qpn,
    pub(crate) said: Said,
    /// Flow label from which the UDP source port follows, instead of from the queue pairs; 0 for none.
    pub(crate) flow_label: u32,
    pub(super) id: Id,
    /// Properties of its packets, once seen.
    like: Option<Like>,
    /// Properties of the endpoint's packets before it was named: of a connection that paused, if the packets continue them.
    before: Option<Like>,
    /// Time of the last packet like the first ones (`own_at`), and of the last one unlike them (`other_at`).
    own_at: Nanos,
    other_at: Nanos,
}

impl Named {
    pub(super) const fn new(sender: Qpn, said: Said, flow_label: u32, id: Id) -> Named {
        Named {
            sender,
            said,
            flow_label,
            id,
            like: None,
            before: None,
            own_at: Nanos::ZERO,
            other_at: Nanos::ZERO,
        }
    }

    /// Returns true if the name is of queue pairs of this transport.
    pub(crate) fn is_of(&self, transport: Transport) -> bool {
        match self.said {
            Said::Manager(said) => said == transport,
            Said::Operator | Said::List => !transport.is_ud(),
        }
    }

    /// Returns true if the name counts only where packets agree: it is from a list, or the endpoint had packets before.
    pub(crate) const fn wants_proof(&self) -> bool {
        matches!(self.said, Said::List) || self.before.is_some()
    }

    /// Returns true if the endpoint's packets are those it was first seen with.
    pub(crate) fn is_believed(&self, now: Nanos) -> bool {
        self.other_at == Nanos::ZERO
            || self.own_at > self.other_at && now.since(self.other_at) >= LIVE
    }
}

#[derive(Debug)]
pub(super) struct Names {
    named: FixedMap<FlowKey, Named>,
    owners: FixedMap<Owner, FlowKey>,
}

impl Names {
    pub(super) fn new(endpoints: usize, seed: u64) -> Names {
        Names {
            named: FixedMap::new(endpoints, seed),
            owners: FixedMap::new(endpoints, seed),
        }
    }

    /// Name of this endpoint, believed or not.
    pub(super) fn of(&self, key: &FlowKey) -> Option<Named> {
        self.named
            .find(key)
            .and_then(|index| self.named.get(index).copied())
    }

    /// Endpoint by which a queue pair is named, whoever its peer is.
    pub(super) fn owner(&self, owner: &Owner) -> Option<(FlowKey, Named)> {
        let index = self.owners.find(owner)?;
        let key = *self.owners.get(index)?;
        Some((key, self.of(&key)?))
    }

    /// Inserts a name; returns `false` if there is no room.
    pub(super) fn insert(&mut self, key: FlowKey, named: Named) -> bool {
        self.owners.insert(Owner::destination(&key), key).is_some()
            && self.named.insert(key, named).is_some()
    }

    /// Forgets a name, if it belongs to this connection.
    pub(super) fn forget_of(&mut self, key: &FlowKey, id: &Id) {
        if self.of(key).is_none_or(|named| named.id != *id) {
            return;
        }
        if let Some(index) = self.named.find(key) {
            self.named.remove(index);
        }
        if let Some(index) = self.owners.find(&Owner::destination(key)) {
            self.owners.remove(index);
        }
    }

    /// Stores the properties that the packets of an endpoint had until it was named.
    pub(super) fn remember(&mut self, key: &FlowKey, before: Option<Like>) {
        let index = self.named.find(key);
        if let Some(named) = index.and_then(|index| self.named.get_mut(index)) {
            named.before = before;
        }
    }

    /// Compares a packet of an endpoint with its name; `request`: its sequence number, if it is one, and the endpoint's packet count. Returns `true` if
    /// this is the first packet that speaks against the name.
    pub(super) fn see(
        &mut self,
        key: &FlowKey,
        port: u16,
        request: Option<(u32, u32)>,
        now: Nanos,
    ) -> bool {
        let index = self.named.find(key);
        let Some(named) = index.and_then(|index| self.named.get_mut(index)) else {
            return false;
        };
        let goes_on = |like: Like| like.goes_on(port, request);
        if !named.before.is_some_and(goes_on) && named.like.is_none_or(goes_on) {
            let known = named
                .like
                .map_or((NONE, 0), |like| (like.last, like.packets));
            let (last, packets) = request.unwrap_or(known);
            named.like = Some(Like {
                port,
                last,
                packets,
            });
            named.own_at = now;
            return false;
        }
        let believed = named.is_believed(now);
        named.other_at = now;
        believed
    }
}

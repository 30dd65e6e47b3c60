//! What the connection manager, the operator or an import says of ends, and how far it is believed.
//!
//! Law: a name counts only while the packets of its end are like those it was first seen with: the same UDP source port, and
//! sequence numbers that go on from there. One that is not like them may be made up, or another connection's, which has taken
//! the number over without a word. So the name is doubted, not lost: it counts again once packets like the first ones came back
//! and none of another kind was seen for [`LIVE`], more than the longest time between two of a flow's records.

use npcc_pipeline::units::Nanos;

use super::ends::numbers::Like;
use super::ends::{LIVE, Transport};
use crate::fixed_map::{FixedMap, MapKey};
use crate::key::{FlowKey, Qpn};
use crate::links::NONE;

/// The asking side's name of a connection between two addresses. `way` has no queue pair (0) but for pairs given by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id {
    pub(super) way: FlowKey,
    pub(super) id: u32,
}

/// A queue pair of one address, as packets to it name it. An RC or UC queue pair has one peer.
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

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The connection manager, of queue pairs of this transport.
    Manager(Transport),
    /// The operator, of this pair.
    Operator,
    /// A list that was read in: it counts only where packets say the same.
    List,
}

/// What is said of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    /// The queue pair that sends to this end.
    pub(crate) sender: Qpn,
    pub(crate) said: Said,
    /// The UDP source port follows from this flow label, not from the queue pairs; 0 for none.
    pub(crate) flow_label: u32,
    pub(super) id: Id,
    /// What its packets are like, once seen.
    like: Option<Like>,
    /// What the packets of its end were like before it was named: of a connection that paused, if they go on so.
    before: Option<Like>,
    /// When a packet like the first ones was last seen, and one unlike them.
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

    /// Whether it is said of queue pairs of this transport.
    pub(crate) fn is_of(&self, transport: Transport) -> bool {
        match self.said {
            Said::Manager(said) => said == transport,
            Said::Operator | Said::List => !transport.is_ud(),
        }
    }

    /// Whether the packets of its end are those it was first seen with.
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
    pub(super) fn new(ends: usize, seed: u64) -> Names {
        Names {
            named: FixedMap::new(ends, seed),
            owners: FixedMap::new(ends, seed),
        }
    }

    /// What is said of packets to this end, believed or not.
    pub(super) fn of(&self, key: &FlowKey) -> Option<Named> {
        self.named
            .find(key)
            .and_then(|index| self.named.get(index).copied())
    }

    /// The end by which a queue pair is named, whoever its peer.
    pub(super) fn owner(&self, owner: &Owner) -> Option<(FlowKey, Named)> {
        let index = self.owners.find(owner)?;
        let key = *self.owners.get(index)?;
        Some((key, self.of(&key)?))
    }

    /// `false` when there is no room.
    pub(super) fn insert(&mut self, key: FlowKey, named: Named) -> bool {
        self.owners.insert(Owner::destination(&key), key).is_some()
            && self.named.insert(key, named).is_some()
    }

    /// Forgets a name, if it is of this connection.
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

    /// Notes what the packets of an end were like until it was named.
    pub(super) fn remember(&mut self, key: &FlowKey, before: Option<Like>) {
        let index = self.named.find(key);
        if let Some(named) = index.and_then(|index| self.named.get_mut(index)) {
            named.before = before;
        }
    }

    /// Takes in a packet of an end; `request`: its number, when it is one, and how many packets the end has had. `true` when this is
    /// the first that speaks against the name.
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

//! Evidence `cm`: the connection manager named both queue pairs.
//!
//! ```text
//!   REQ  A -> B   (id a, queue pair qa)      remembered by (A, B, a)
//!   REP  B -> A   (id b for a, queue pair qb)    pairs (A -> B, qb) with qa and (B -> A, qa) with qb
//! ```
//! A LAP that an APR accepts names the same queue pairs between the other path's addresses. RTU is not waited for: it may be lost, and data imply
//! it. Law: a name is taken back as soon as anything speaks against it. A REP that grants something else than the one before, a REQ that uses an id
//! or a queue pair anew, REJ, DREQ and DREP end the pair; a contradicted connection stays unpaired until the next REQ. A connection over a queue
//! pair that is in use, of another connection or of packets seen before the REP, is a dispute: neither is believed, and no other until the queue
//! pair has been silent for [`LIVE`](super::endpoints::LIVE) or its connection was ended by name. So forged messages can take evidence away, and pair
//! what both sides of a made-up connection claim, but not turn an existing pair into another.

mod room;

use npcc_pipeline::units::{Nanos, PortId};

use super::endpoints::numbers::Like;
use super::endpoints::{Life, Transport};
use super::names::{Id, Named, Names, Owner, Said};
use crate::cm::message::{Message, Service};
use crate::fixed_map::FixedMap;
use crate::holdings::{Holder, Holdings};
use crate::key::{FlowKey, Qpn};

/// List of connections requested and not granted.
const REQUESTED: u8 = 0;
/// List of connections granted.
const GRANTED: u8 = 1;
/// Share of the table (1/8) that connections requested and not granted may take: a flood of requests pushes out requests only.
const REQUESTED_SHARE: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Connection {
    asker: Qpn,
    granter: Option<(Qpn, u32)>,
    said: Said,
    flow_label: u32,
    at: Nanos,
    /// True if granted twice, differently, or over a queue pair in use: it pairs nobody.
    disputed: bool,
    /// Holder of the entry while it is not granted.
    holder: Holder,
    /// Alternate path, if one was proposed.
    other: Option<OtherPath>,
}

impl Connection {
    const fn requested(asker: Qpn, said: Said, flow_label: u32, now: Nanos) -> Connection {
        Connection {
            holder: Holder::NOBODY,
            asker,
            granter: None,
            said,
            flow_label,
            at: now,
            disputed: false,
            other: None,
        }
    }
}

/// Alternate path of a connection (LAP), in the direction of [`Id`].
#[derive(Debug, Clone, Copy)]
struct OtherPath {
    way: FlowKey,
    flow_label: u32,
    /// True if the requesting side proposed it.
    by_asker: bool,
    accepted: bool,
}

/// Change that a message made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// Two endpoints of this transport belong together.
    Paired(FlowKey, FlowKey, Transport),
    /// The connection of these two endpoints has ended.
    Over(FlowKey, FlowKey),
}

#[derive(Debug)]
pub(crate) struct CmTable {
    connections: FixedMap<Id, Connection>,
    names: Names,
    /// Holdings of connections requested and not granted, and their maximum number.
    requested: Holdings,
    most_requested: usize,
    /// Number of pairs doubted or taken back because something spoke against them.
    pub(crate) contradicted: u64,
    /// Number of messages refused because every entry was in use.
    pub(crate) refused: u64,
}

impl CmTable {
    pub(crate) fn new(endpoints: usize, seed: u64) -> CmTable {
        let connections = endpoints.div_ceil(2);
        CmTable {
            connections: FixedMap::new(connections, seed),
            names: Names::new(endpoints, seed),
            requested: Holdings::new(seed),
            most_requested: (connections / REQUESTED_SHARE).max(1),
            contradicted: 0,
            refused: 0,
        }
    }

    /// Processes a message that came in by `ingress`; `way` holds its addresses, `life` says if packets of an endpoint are seen.
    pub(crate) fn observe(
        &mut self,
        (way, ingress): (&FlowKey, PortId),
        message: &Message,
        now: Nanos,
        life: &impl Fn(&FlowKey) -> Life,
    ) -> Change {
        let there = |id| Id {
            way: way.with_qp(Qpn::default()),
            id,
        };
        let back = |id| Id {
            way: way.reversed(Qpn::default()),
            id,
        };
        match *message {
            Message::Req {
                local,
                qpn,
                service,
                flow_label,
                ..
            } => {
                let transport = match service {
                    Service::Rc => Transport::Rc,
                    Service::Uc => Transport::Uc,
                    Service::Other => return Change::Nothing,
                };
                let requested = Connection {
                    holder: self.requested.holder(way, ingress),
                    ..Connection::requested(qpn, Said::Manager(transport), flow_label, now)
                };
                self.ask(there(local), requested, now, life);
            }
            Message::Rep {
                local, remote, qpn, ..
            } => return self.grant(back(remote), qpn, local, life),
            Message::Rej { local, remote }
            | Message::Drep { local, remote }
            | Message::Dreq { local, remote, .. } => {
                let one = self.close(there(local), Some(remote));
                let other = self.close(back(remote), Some(local));
                if let Some((one, other)) = one.or(other) {
                    return Change::Over(one, other);
                }
            }
            Message::Lap {
                local,
                remote,
                way,
                flow_label,
            } => {
                let path = OtherPath {
                    way,
                    flow_label,
                    by_asker: true,
                    accepted: false,
                };
                let turned = OtherPath {
                    way: way.reversed(Qpn::default()),
                    by_asker: false,
                    ..path
                };
                self.propose(there(local), remote, path);
                self.propose(back(remote), local, turned);
            }
            Message::Apr {
                local,
                remote,
                accepted,
            } => {
                return match self.accept(back(remote), local, (true, accepted), life) {
                    Change::Nothing => self.accept(there(local), remote, (false, accepted), life),
                    change => change,
                };
            }
            Message::Other => {}
        }
        Change::Nothing
    }

    /// Pairs two queue pairs known by other means, from the operator or a list; returns `false` if there is no room. The operator's
    /// word overrides what was known before, a list's does not.
    pub(crate) fn give(
        &mut self,
        to_receiver: &FlowKey,
        sender: Qpn,
        said: Said,
        now: Nanos,
        life: &impl Fn(&FlowKey) -> Life,
    ) -> bool {
        let both = [*to_receiver, to_receiver.reversed(sender)];
        let known = |key: &FlowKey| self.names.owner(&Owner::destination(key));
        let is_same = |(key, named): (FlowKey, Named)| {
            key == *to_receiver
                && named.sender == sender
                && (named.said != Said::List || said == Said::List)
        };
        let others = both
            .iter()
            .filter_map(known)
            .any(|(_, named)| named.said != Said::List);
        if known(to_receiver).is_some_and(is_same) || said == Said::List && others {
            return true;
        }
        // Ids of the connection manager have no queue pair.
        let id = Id {
            way: to_receiver.with_qp(sender),
            id: to_receiver.dest_qp().get(),
        };
        self.close(id, None);
        self.ask(id, Connection::requested(sender, said, 0, now), now, life);
        let silent = |_: &FlowKey| Life::Silent;
        matches!(
            self.grant(id, to_receiver.dest_qp(), 0, &silent),
            Change::Paired(..)
        )
    }

    /// Disputes the connection of this endpoint, because its packets speak against it.
    pub(crate) fn refute(&mut self, key: &FlowKey) {
        if let Some(named) = self.names.of(key) {
            self.dispute(named.id);
        }
    }

    /// Deletes the pair of this endpoint; returns `false` if there is none.
    pub(crate) fn take_back(&mut self, key: &FlowKey) -> bool {
        let Some(named) = self.names.of(key) else {
            return false;
        };
        self.close(named.id, None);
        true
    }

    fn ask(&mut self, id: Id, requested: Connection, now: Nanos, life: &impl Fn(&FlowKey) -> Life) {
        if let Some(index) = self.connections.find(&id) {
            let same = self.connections.get(index).is_some_and(|known| {
                (known.asker, known.said, known.flow_label)
                    == (requested.asker, requested.said, requested.flow_label)
            });
            if same {
                self.connections.touch(index);
                return;
            }
            self.close(id, None);
        }
        // The requesting side's queue pair begins anew: its connection before is over.
        self.disown(&Owner::source(&id.way, requested.asker));
        if !self.make_room(requested.holder, now, life) {
            self.refused += 1;
            return;
        }
        if self.connections.insert(id, requested).is_some() {
            self.requested.count(requested.holder, true);
        }
    }

    fn grant(
        &mut self,
        id: Id,
        qpn: Qpn,
        granter: u32,
        life: &impl Fn(&FlowKey) -> Life,
    ) -> Change {
        let Some(index) = self.connections.find(&id) else {
            return Change::Nothing;
        };
        let Some(known) = self.connections.get_mut(index) else {
            return Change::Nothing;
        };
        match known.granter {
            _ if known.disputed => return Change::Nothing,
            Some(before) if before == (qpn, granter) => return Change::Nothing,
            Some(_) => {
                self.dispute(id);
                return Change::Nothing;
            }
            None => known.granter = Some((qpn, granter)),
        }
        let connection = *known;
        self.connections.set_list(index, GRANTED);
        self.requested.count(connection.holder, false);
        let both = [id.way.with_qp(qpn), id.way.reversed(connection.asker)];
        if both.iter().any(|key| self.is_in_use(key, life)) {
            for key in &both {
                if let Some((_, named)) = self.names.owner(&Owner::destination(key)) {
                    self.dispute(named.id);
                }
            }
            self.dispute(id);
            return Change::Nothing;
        }
        // Both queue pairs may have had another peer.
        for key in &both {
            self.disown(&Owner::destination(key));
        }
        self.pair(id, id.way.with_qp(qpn), connection.flow_label)
    }

    /// Returns true if a queue pair belongs to another connection that is in use, or had packets before it was granted.
    fn is_in_use(&self, key: &FlowKey, life: &impl Fn(&FlowKey) -> Life) -> bool {
        let owner = self.names.owner(&Owner::destination(key));
        let owned = owner
            .filter(|(_, named)| named.said != Said::List)
            .is_some_and(|(key, named)| {
                [key, key.reversed(named.sender)]
                    .iter()
                    .any(|key| life(key) != Life::Silent)
            });
        owned || life(key) == Life::Living
    }

    /// Names both endpoints of a granted connection on one of its paths.
    fn pair(&mut self, id: Id, to_granter: FlowKey, flow_label: u32) -> Change {
        let known = self.connections.find(&id);
        let Some(known) = known.and_then(|index| self.connections.get(index).copied()) else {
            return Change::Nothing;
        };
        let to_asker = to_granter.reversed(known.asker);
        let named = |sender| Named::new(sender, known.said, flow_label, id);
        if self.names.insert(to_granter, named(known.asker))
            && self.names.insert(to_asker, named(to_granter.dest_qp()))
        {
            let transport = match known.said {
                Said::Manager(transport) => transport,
                Said::Operator | Said::List => Transport::Rc,
            };
            return Change::Paired(to_granter, to_asker, transport);
        }
        self.refused += 1;
        self.close(id, None);
        Change::Nothing
    }

    /// Marks a connection as disputed: it pairs nobody any more. Its entry stays, so that a repeated message
    /// does not begin it anew.
    fn dispute(&mut self, id: Id) {
        let index = self.connections.find(&id);
        let Some(known) = index.and_then(|index| self.connections.get_mut(index)) else {
            return;
        };
        if std::mem::replace(&mut known.disputed, true) {
            return;
        }
        let known = Connection {
            other: known.other.take(),
            ..*known
        };
        self.contradicted += 1;
        self.forget_names(&id, &known);
    }

    /// Connection between these ids, if it was granted and nothing speaks against it.
    fn granted(&mut self, id: Id, granter: u32) -> Option<&mut Connection> {
        let index = self.connections.find(&id)?;
        let known = self.connections.get_mut(index)?;
        let fits = known.granter.is_some_and(|(_, granted)| granted == granter);
        (fits && !known.disputed).then_some(known)
    }

    /// Records a proposed alternate path; one in use stays until the new one is accepted.
    fn propose(&mut self, id: Id, granter: u32, path: OtherPath) {
        if let Some(known) = self.granted(id, granter)
            && known.other.is_none_or(|other| !other.accepted)
        {
            known.other = Some(path);
        }
    }

    /// Applies the answer to an alternate path, of the side that did not propose it.
    fn accept(
        &mut self,
        id: Id,
        granter: u32,
        (by_asker, accepted): (bool, bool),
        life: &impl Fn(&FlowKey) -> Life,
    ) -> Change {
        let Some(known) = self.granted(id, granter) else {
            return Change::Nothing;
        };
        let Some(other) = known.other.as_mut() else {
            return Change::Nothing;
        };
        if other.by_asker != by_asker || other.accepted {
            return Change::Nothing;
        }
        if !accepted {
            known.other = None;
            return Change::Nothing;
        }
        other.accepted = true;
        let (other, connection) = (*other, *known);
        let Some((qpn, _)) = connection.granter else {
            return Change::Nothing;
        };
        let to_granter = other.way.with_qp(qpn);
        // Whatever connection has these queue pairs at these addresses keeps them: a made-up path takes nothing from anybody.
        let taken = |key: &FlowKey| {
            self.names.owner(&Owner::destination(key)).is_some() || life(key) == Life::Living
        };
        if taken(&to_granter) || taken(&to_granter.reversed(connection.asker)) {
            self.contradicted += 1;
            return Change::Nothing;
        }
        self.pair(id, to_granter, other.flow_label)
    }

    /// Ends a connection, if its granting side's id is this one (or none was given). Returns its endpoints, if they were named
    /// until now.
    fn close(&mut self, id: Id, granter: Option<u32>) -> Option<(FlowKey, FlowKey)> {
        let index = self.connections.find(&id)?;
        let known = self.connections.get(index).copied()?;
        let fits = match (granter, known.granter) {
            (Some(said), Some((_, granted))) => said == granted,
            // A REJ before any grant names only the requesting side.
            _ => true,
        };
        if !fits {
            return None;
        }
        if self.connections.list_of(index) == Some(REQUESTED) {
            self.requested.count(known.holder, false);
        }
        self.connections.remove(index);
        self.forget_names(&id, &known);
        let (qpn, _) = known.granter.filter(|_| !known.disputed)?;
        Some((id.way.with_qp(qpn), id.way.reversed(known.asker)))
    }

    fn forget_names(&mut self, id: &Id, known: &Connection) {
        let ways = [Some(id.way), known.other.map(|other| other.way)];
        for way in ways.into_iter().flatten() {
            if let Some((qpn, _)) = known.granter {
                self.names.forget_of(&way.with_qp(qpn), id);
            }
            self.names.forget_of(&way.reversed(known.asker), id);
        }
    }

    /// Ends the connection of a queue pair that is used anew.
    fn disown(&mut self, owner: &Owner) {
        if let Some((_, named)) = self.names.owner(owner) {
            self.close(named.id, None);
        }
    }

    /// Name of this endpoint, while it is believed.
    pub(crate) fn named(&self, key: &FlowKey, now: Nanos) -> Option<Named> {
        self.names.of(key).filter(|named| named.is_believed(now))
    }

    /// Records the packets that an endpoint had until it was named: they may be of a connection that only paused.
    pub(crate) fn remember(&mut self, key: &FlowKey, before: Option<Like>) {
        self.names.remember(key, before);
    }

    /// Checks a packet of an endpoint against its name; `request`: its sequence number, if it is one, and the endpoint's number of packets.
    pub(crate) fn see(
        &mut self,
        key: &FlowKey,
        port: u16,
        request: Option<(u32, u32)>,
        now: Nanos,
    ) {
        self.contradicted += u64::from(self.names.see(key, port, request, now));
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "cm_tests.rs"]
mod tests;

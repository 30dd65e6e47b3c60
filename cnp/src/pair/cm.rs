//! Evidence `cm`: the connection manager named both queue pairs.
//!
//! ```text
//!   REQ  A -> B   (id a, queue pair qa)      remembered by (A, B, a)
//!   REP  B -> A   (id b for a, queue pair qb)    pairs (A -> B, qb) with qa and (B -> A, qa) with qb
//! ```
//! A LAP that an APR accepts names the same queue pairs between the other path's addresses. RTU is not waited for: it may be lost, and data imply it. Law: a name is taken back as soon as anything speaks against
//! it. A REP that grants something else than the one before, a REQ that uses an id or a queue pair anew, REJ, DREQ and DREP
//! end the pair; what was contradicted stays unpaired until the next REQ. So forged messages can take evidence away, and
//! pair what both sides of a made-up connection claim, but not turn an existing pair into another: neither one the connection
//! manager named, nor one that the packets of a living flow show.

use npcc_pipeline::units::Nanos;

use crate::cm::message::{Message, Service};
use crate::fixed_map::{FixedMap, MapKey};
use crate::key::{FlowKey, Qpn};

/// A REQ not granted within this time may make room for others.
const UNANSWERED: Nanos = Nanos::from_millis(10_000);
/// List of connections not granted.
const ASKED: u8 = 0;
/// List of connections granted.
const GRANTED: u8 = 1;

/// The asking side's name of a connection between two addresses. `way` has no queue pair (0) but for pairs given by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Id {
    way: FlowKey,
    id: u32,
}

/// A queue pair of one address, as packets to it name it. An RC or UC queue pair has one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Owner {
    address: [u64; 2],
    v6: bool,
    qpn: Qpn,
}

impl MapKey for Id {}
impl MapKey for Owner {}

#[derive(Debug, Clone, Copy)]
struct Connection {
    asker: Qpn,
    granter: Option<(Qpn, u32)>,
    service: Service,
    flow_label: u32,
    at: Nanos,
    /// Granted twice, differently.
    disputed: bool,
    /// The other path: from the asker's other address to the granter's, who proposed it, and whether it was accepted.
    other: Option<OtherPath>,
}

/// A path a connection may change over to (LAP), in the direction of [`Id`].
#[derive(Debug, Clone, Copy)]
struct OtherPath {
    way: FlowKey,
    flow_label: u32,
    /// Proposed by the asker.
    by_asker: bool,
    accepted: bool,
}

/// What the connection manager says of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    /// The queue pair that sends to this end.
    pub(crate) sender: Qpn,
    /// Unreliable.
    pub(crate) uc: bool,
    /// The UDP source port follows from this flow label, not from the queue pairs; 0 for none.
    pub(crate) flow_label: u32,
    id: Id,
    /// UDP source port of its packets, once seen.
    port: Option<u16>,
}

/// What a message changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// These two ends belong together.
    Paired(FlowKey, FlowKey, bool),
}

#[derive(Debug)]
pub(crate) struct CmTable {
    connections: FixedMap<Id, Connection>,
    named: FixedMap<FlowKey, Named>,
    owners: FixedMap<Owner, FlowKey>,
    /// Pairs taken back because something spoke against them.
    pub(crate) contradicted: u64,
    /// Messages refused because every entry was in use.
    pub(crate) refused: u64,
}

impl CmTable {
    pub(crate) fn new(ends: usize, seed: u64) -> CmTable {
        CmTable {
            connections: FixedMap::new(ends.div_ceil(2), seed),
            named: FixedMap::new(ends, seed),
            owners: FixedMap::new(ends, seed),
            contradicted: 0,
            refused: 0,
        }
    }

    /// Takes in a message; `way` holds its addresses.
    pub(crate) fn observe(&mut self, way: &FlowKey, message: &Message, now: Nanos) -> Change {
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
            } => self.ask(there(local), qpn, service, flow_label, now),
            Message::Rep {
                local, remote, qpn, ..
            } => return self.grant(back(remote), qpn, local),
            Message::Rej { local, remote } | Message::Drep { local, remote } => {
                self.end(there(local), Some(remote));
                self.end(back(remote), Some(local));
            }
            Message::Dreq { local, remote, .. } => {
                self.end(there(local), Some(remote));
                self.end(back(remote), Some(local));
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
                return match self.accept(back(remote), local, true, accepted) {
                    Change::Nothing => self.accept(there(local), remote, false, accepted),
                    change @ Change::Paired(..) => change,
                };
            }
            Message::Other => {}
        }
        Change::Nothing
    }

    /// Pairs two queue pairs known by other means; `false` when there is no room.
    pub(crate) fn give(&mut self, to_receiver: &FlowKey, sender: Qpn, now: Nanos) -> bool {
        if self
            .named(to_receiver)
            .is_some_and(|named| named.sender == sender)
        {
            return true;
        }
        // No id of the connection manager's has a queue pair.
        let id = Id {
            way: to_receiver.with_qp(sender),
            id: to_receiver.dest_qp().get(),
        };
        self.ask(id, sender, Service::Rc, 0, now);
        matches!(self.grant(id, to_receiver.dest_qp(), 0), Change::Paired(..))
    }

    /// Takes a pair back because what passes speaks against it.
    pub(crate) fn refute(&mut self, key: &FlowKey) {
        self.contradicted += 1;
        self.take_back(key);
    }

    /// Forgets what is known of packets to this end; `false` when nothing is.
    pub(crate) fn take_back(&mut self, key: &FlowKey) -> bool {
        let Some(named) = self.named(key) else {
            return false;
        };
        self.end(named.id, None);
        true
    }

    fn ask(&mut self, id: Id, qpn: Qpn, service: Service, flow_label: u32, now: Nanos) {
        if service == Service::Other {
            return;
        }
        if let Some(index) = self.connections.find(&id) {
            let same = self.connections.get(index).is_some_and(|known| {
                (known.asker, known.service, known.flow_label) == (qpn, service, flow_label)
            });
            if same {
                self.connections.touch(index);
                return;
            }
            self.end(id, None);
        }
        // The asker's queue pair begins anew: what it was before is over.
        self.disown(Owner::source(&id.way, qpn));
        if self.connections.is_full() && !self.make_room(now) {
            self.refused += 1;
            return;
        }
        let asked = Connection {
            asker: qpn,
            granter: None,
            service,
            flow_label,
            at: now,
            disputed: false,
            other: None,
        };
        let _ = self.connections.insert(id, asked);
    }

    fn make_room(&mut self, now: Nanos) -> bool {
        let stale = self.connections.oldest(ASKED).filter(|index| {
            let asked = self.connections.get(*index);
            asked.is_some_and(|asked| now.since(asked.at) >= UNANSWERED)
        });
        let Some(id) = stale
            .or_else(|| self.connections.oldest(GRANTED))
            .and_then(|index| self.connections.key(index))
        else {
            return false;
        };
        self.end(id, None);
        true
    }

    fn grant(&mut self, id: Id, qpn: Qpn, granter: u32) -> Change {
        let Some(index) = self.connections.find(&id) else {
            return Change::Nothing;
        };
        let Some(known) = self.connections.get_mut(index) else {
            return Change::Nothing;
        };
        match known.granter {
            _ if known.disputed => return Change::Nothing,
            Some(before) if before == (qpn, granter) => return Change::Nothing,
            Some((before, _)) => {
                known.disputed = true;
                let (asker, other) = (known.asker, known.other.take());
                self.contradicted += 1;
                let ways = [Some(id.way), other.map(|other| other.way)];
                for way in ways.into_iter().flatten() {
                    self.forget_of(&way.with_qp(before), &id);
                    self.forget_of(&way.reversed(asker), &id);
                }
                return Change::Nothing;
            }
            None => known.granter = Some((qpn, granter)),
        }
        let connection = *known;
        self.connections.set_list(index, GRANTED);
        let (to_granter, to_asker) = (id.way.with_qp(qpn), id.way.reversed(connection.asker));
        // Both queue pairs may have had another peer.
        self.disown(Owner::destination(&to_granter));
        self.disown(Owner::destination(&to_asker));
        let uc = connection.service == Service::Uc;
        let named = |sender| Named {
            sender,
            uc,
            flow_label: connection.flow_label,
            id,
            port: None,
        };
        let both =
            self.name(to_granter, named(connection.asker)) && self.name(to_asker, named(qpn));
        if !both {
            self.refused += 1;
            self.end(id, None);
            return Change::Nothing;
        }
        Change::Paired(to_granter, to_asker, uc)
    }

    /// The connection between these ids, if it was granted and nothing speaks against it.
    fn granted(&mut self, id: Id, granter: u32) -> Option<&mut Connection> {
        let index = self.connections.find(&id)?;
        let known = self.connections.get_mut(index)?;
        let fits = known.granter.is_some_and(|(_, granted)| granted == granter);
        (fits && !known.disputed).then_some(known)
    }

    /// Notes another path; one in use stays until the new one is accepted.
    fn propose(&mut self, id: Id, granter: u32, path: OtherPath) {
        if let Some(known) = self.granted(id, granter)
            && known.other.is_none_or(|other| !other.accepted)
        {
            known.other = Some(path);
        }
    }

    /// The side that did not propose the other path answers.
    fn accept(&mut self, id: Id, granter: u32, by_asker: bool, accepted: bool) -> Change {
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
        let (to_granter, to_asker) = (other.way.with_qp(qpn), other.way.reversed(connection.asker));
        // Whoever else has these queue pairs at these addresses keeps them: a made-up path takes nothing from anybody.
        let taken = |key: &FlowKey| self.owners.find(&Owner::destination(key)).is_some();
        if taken(&to_granter) || taken(&to_asker) {
            self.contradicted += 1;
            return Change::Nothing;
        }
        let uc = connection.service == Service::Uc;
        let named = |sender| Named {
            sender,
            uc,
            flow_label: other.flow_label,
            id,
            port: None,
        };
        if self.name(to_granter, named(connection.asker)) && self.name(to_asker, named(qpn)) {
            return Change::Paired(to_granter, to_asker, uc);
        }
        self.refused += 1;
        self.end(id, None);
        Change::Nothing
    }

    fn name(&mut self, key: FlowKey, named: Named) -> bool {
        if self.owners.insert(Owner::destination(&key), key).is_none() {
            return false;
        }
        self.named.insert(key, named).is_some()
    }

    /// Ends a connection, if its granting side's name is this one (or none was given).
    fn end(&mut self, id: Id, granter: Option<u32>) {
        let Some(index) = self.connections.find(&id) else {
            return;
        };
        let Some(known) = self.connections.get(index).copied() else {
            return;
        };
        let fits = match (granter, known.granter) {
            (Some(said), Some((_, granted))) => said == granted,
            // A refusal before any grant names only the asker.
            _ => true,
        };
        if !fits {
            return;
        }
        self.connections.remove(index);
        if let Some((qpn, _)) = known.granter {
            self.forget_of(&id.way.with_qp(qpn), &id);
            if let Some(other) = known.other {
                self.forget_of(&other.way.with_qp(qpn), &id);
                self.forget_of(&other.way.reversed(known.asker), &id);
            }
        }
        self.forget_of(&id.way.reversed(known.asker), &id);
    }

    fn forget_of(&mut self, key: &FlowKey, id: &Id) {
        if self.named(key).is_some_and(|named| named.id == *id) {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: &FlowKey) {
        if let Some(index) = self.named.find(key) {
            self.named.remove(index);
        }
        if let Some(index) = self.owners.find(&Owner::destination(key)) {
            self.owners.remove(index);
        }
    }

    /// A queue pair is used anew: the connection it was part of is over.
    fn disown(&mut self, owner: Owner) {
        let key = self
            .owners
            .find(&owner)
            .and_then(|index| self.owners.get(index).copied());
        let Some(named) = key.and_then(|key| self.named(&key)) else {
            return;
        };
        self.end(named.id, None);
    }

    /// What is known of packets to this end.
    pub(crate) fn named(&self, key: &FlowKey) -> Option<Named> {
        self.named
            .find(key)
            .and_then(|index| self.named.get(index).copied())
    }

    /// Notes the UDP source port of packets of this end. Another one than before is another connection's. `true` when
    /// the end is still named.
    pub(crate) fn see_port(&mut self, key: &FlowKey, port: u16) -> bool {
        let index = self.named.find(key);
        let Some(named) = index.and_then(|index| self.named.get_mut(index)) else {
            return false;
        };
        match named.port {
            None => named.port = Some(port),
            Some(before) if before == port => {}
            Some(_) => {
                let id = named.id;
                self.contradicted += 1;
                self.end(id, None);
                return self.named(key).is_some();
            }
        }
        true
    }
}

impl Owner {
    fn destination(key: &FlowKey) -> Owner {
        Owner {
            address: key.dst,
            v6: key.is_ipv6(),
            qpn: key.dest_qp(),
        }
    }

    fn source(way: &FlowKey, qpn: Qpn) -> Owner {
        Owner {
            address: way.src,
            v6: way.is_ipv6(),
            qpn,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "cm_tests.rs"]
mod tests;

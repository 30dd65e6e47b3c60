//! Evidence `cm`: the connection manager named both queue pairs.
//!
//! ```text
//!   REQ  A -> B   (id a, queue pair qa)      remembered by (A, B, a)
//!   REP  B -> A   (id b for a, queue pair qb)    pairs (A -> B, qb) with qa and (B -> A, qa) with qb
//! ```
//! A LAP that an APR accepts names the same queue pairs between the other path's addresses. RTU is not waited for: it may be lost, and data imply
//! it. Law: a pair is taken back as soon as anything speaks against it. A REP that grants something else than the one before, a REQ that uses an id
//! or a queue pair anew, REJ, DREQ and DREP end the pair; a contradicted connection stays unpaired until the next REQ. A connection over a queue
//! pair that is in use, of another connection or of packets seen before the REP, is a dispute: neither is believed, and no other until the queue
//! pair has been silent for [`LIVE`](super::endpoints::LIVE) or its connection was closed by a message. So forged messages can take evidence away, and pair
//! what both sides of a made-up connection claim, but not turn an existing pair into another.

mod alternate_path;
mod connection;
mod eviction;
mod given;

use npcc_pipeline::units::{Nanos, PortId};

use connection::{AlternatePath, Connection};

use super::bindings::{Binding, BindingSource, Bindings, ConnectionId, Owner};
use super::endpoints::Activity;
use super::endpoints::psns::Fingerprint;
use super::transport::Transport;
use crate::cm::message::Message;
use crate::fixed_map::FixedMap;
use crate::holdings::Holdings;
use crate::key::{FlowKey, Qpn};

/// List of connections requested and not granted.
const REQUESTED: u8 = 0;
/// List of connections granted.
const GRANTED: u8 = 1;
/// Share of the table (1/8) that connections requested and not granted may take: a flood of requests pushes out requests only.
const REQUESTED_SHARE: usize = 8;

/// Change that a message made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// Two endpoints of this transport belong together.
    Paired(FlowKey, FlowKey, Transport),
    /// The connection of these two endpoints has ended.
    Closed(FlowKey, FlowKey),
}

#[derive(Debug)]
pub(crate) struct CmTable {
    connections: FixedMap<ConnectionId, Connection>,
    bindings: Bindings,
    /// Holdings of connections requested and not granted, and their maximum number.
    requested: Holdings,
    most_requested: usize,
    /// Number of pairs doubted or taken back because something spoke against them.
    pub(crate) contradicted: u64,
    /// Number of connections that made room for others.
    pub(crate) displaced: u64,
    /// Number of messages refused because every entry was in use.
    pub(crate) refused: u64,
}

impl CmTable {
    pub(crate) fn new(endpoints: usize, seed: u64) -> CmTable {
        let connections = endpoints.div_ceil(2);
        CmTable {
            connections: FixedMap::new(connections, seed),
            bindings: Bindings::new(endpoints, seed),
            requested: Holdings::new(seed),
            most_requested: (connections / REQUESTED_SHARE).max(1),
            contradicted: 0,
            displaced: 0,
            refused: 0,
        }
    }

    /// Processes a message that came in by `ingress`; `path` holds its addresses, `activity` says if packets of an endpoint are seen.
    pub(crate) fn observe(
        &mut self,
        (path, ingress): (&FlowKey, PortId),
        message: &Message,
        now: Nanos,
        activity: &impl Fn(&FlowKey) -> Activity,
    ) -> Change {
        let from_active = |id| ConnectionId::new(*path, id);
        let from_passive = |id| ConnectionId::new(path.reversed(Qpn::default()), id);
        match *message {
            Message::Req {
                local,
                qpn,
                service,
                flow_label,
                ..
            } => {
                if let Some(transport) = Transport::of_service(service) {
                    let source = BindingSource::Cm(transport);
                    let mut requested = Connection::requested(qpn, source, flow_label, now);
                    requested.holder = self.requested.holder(path, ingress);
                    self.request(from_active(local), requested, now, activity);
                }
                Change::Nothing
            }
            Message::Rep {
                local, remote, qpn, ..
            } => self.grant(from_passive(remote), qpn, local, activity),
            Message::Rej { local, remote }
            | Message::Drep { local, remote }
            | Message::Dreq { local, remote, .. } => {
                let one = self.close(from_active(local), Some(remote));
                let other = self.close(from_passive(remote), Some(local));
                one.or(other)
                    .map_or(Change::Nothing, |(one, other)| Change::Closed(one, other))
            }
            Message::Lap {
                local,
                remote,
                path,
                flow_label,
            } => {
                let proposed = AlternatePath::proposed(path, flow_label);
                self.propose(from_active(local), remote, proposed);
                self.propose(from_passive(remote), local, proposed.reversed());
                Change::Nothing
            }
            Message::Apr {
                local,
                remote,
                accepted,
            } => match self.apply_apr(from_passive(remote), local, (true, accepted), activity) {
                Change::Nothing => {
                    self.apply_apr(from_active(local), remote, (false, accepted), activity)
                }
                change => change,
            },
            Message::Other => Change::Nothing,
        }
    }

    /// Disputes the connection of this endpoint, because its packets speak against it.
    pub(crate) fn refute(&mut self, key: &FlowKey) {
        if let Some(binding) = self.bindings.of(key) {
            self.dispute(binding.id);
        }
    }

    fn request(
        &mut self,
        id: ConnectionId,
        requested: Connection,
        now: Nanos,
        activity: &impl Fn(&FlowKey) -> Activity,
    ) {
        if let Some(index) = self.connections.find(&id) {
            let same = self.connections.get(index).is_some_and(|known| {
                (known.active_qpn, known.source, known.flow_label)
                    == (requested.active_qpn, requested.source, requested.flow_label)
            });
            if same {
                self.connections.touch(index);
                return;
            }
            self.close(id, None);
        }
        // The active side's queue pair begins anew: its connection before is over.
        self.close_owner(&Owner::source(&id.path, requested.active_qpn));
        if !self.make_room(requested.holder, now, activity) {
            self.refused += 1;
            return;
        }
        if self.connections.insert(id, requested).is_some() {
            self.requested.count(requested.holder, true);
        }
    }

    fn grant(
        &mut self,
        id: ConnectionId,
        qpn: Qpn,
        passive: u32,
        activity: &impl Fn(&FlowKey) -> Activity,
    ) -> Change {
        let Some(index) = self.connections.find(&id) else {
            return Change::Nothing;
        };
        let Some(known) = self.connections.get_mut(index) else {
            return Change::Nothing;
        };
        match known.passive {
            _ if known.disputed => return Change::Nothing,
            Some(before) if before == (qpn, passive) => return Change::Nothing,
            Some(_) => {
                self.dispute(id);
                return Change::Nothing;
            }
            None => known.passive = Some((qpn, passive)),
        }
        let connection = *known;
        self.connections.set_list(index, GRANTED);
        self.requested.count(connection.holder, false);
        let both = [
            id.path.with_qp(qpn),
            id.path.reversed(connection.active_qpn),
        ];
        if both.iter().any(|key| self.is_in_use(key, activity)) {
            for key in &both {
                if let Some((_, binding)) = self.bindings.owner(&Owner::destination(key)) {
                    self.dispute(binding.id);
                }
            }
            self.dispute(id);
            return Change::Nothing;
        }
        // Both queue pairs may have had another peer.
        for key in &both {
            self.close_owner(&Owner::destination(key));
        }
        self.pair(id, id.path.with_qp(qpn), connection.flow_label)
    }

    /// Returns true if a queue pair belongs to another connection that is in use, or had packets before it was granted.
    fn is_in_use(&self, key: &FlowKey, activity: &impl Fn(&FlowKey) -> Activity) -> bool {
        let owner = self.bindings.owner(&Owner::destination(key));
        let owned = owner
            .filter(|(_, binding)| binding.source != BindingSource::List)
            .is_some_and(|(key, binding)| {
                [key, key.reversed(binding.sender)]
                    .iter()
                    .any(|key| activity(key) != Activity::Silent)
            });
        owned || activity(key) == Activity::Active
    }

    /// Binds both endpoints of a granted connection on one of its paths.
    fn pair(&mut self, id: ConnectionId, to_passive: FlowKey, flow_label: u32) -> Change {
        let known = self.connections.find(&id);
        let Some(known) = known.and_then(|index| self.connections.get(index).copied()) else {
            return Change::Nothing;
        };
        let to_active = to_passive.reversed(known.active_qpn);
        let binding = |sender| Binding::new(sender, known.source, flow_label, id);
        if self.bindings.insert(to_passive, binding(known.active_qpn))
            && self
                .bindings
                .insert(to_active, binding(to_passive.dest_qp()))
        {
            let transport = match known.source {
                BindingSource::Cm(transport) => transport,
                BindingSource::Operator | BindingSource::List => Transport::Rc,
            };
            return Change::Paired(to_passive, to_active, transport);
        }
        self.refused += 1;
        self.close(id, None);
        Change::Nothing
    }

    /// Marks a connection as disputed: it pairs nobody any more. Its entry stays, so that a repeated message
    /// does not begin it anew.
    fn dispute(&mut self, id: ConnectionId) {
        let index = self.connections.find(&id);
        let Some(known) = index.and_then(|index| self.connections.get_mut(index)) else {
            return;
        };
        if std::mem::replace(&mut known.disputed, true) {
            return;
        }
        let known = Connection {
            alternate: known.alternate.take(),
            ..*known
        };
        self.contradicted += 1;
        self.remove_bindings(&id, &known);
    }

    /// Closes a connection, if its passive side's id is this one (or none was given). Returns its endpoints, if they were bound
    /// until now.
    fn close(&mut self, id: ConnectionId, passive: Option<u32>) -> Option<(FlowKey, FlowKey)> {
        let index = self.connections.find(&id)?;
        let known = self.connections.get(index).copied()?;
        let fits = match (passive, known.passive) {
            (Some(source), Some((_, granted))) => source == granted,
            // A REJ before any grant has the id of the active side only.
            _ => true,
        };
        if !fits {
            return None;
        }
        if self.connections.list_of(index) == Some(REQUESTED) {
            self.requested.count(known.holder, false);
        }
        self.connections.remove(index);
        self.remove_bindings(&id, &known);
        let (qpn, _) = known.passive.filter(|_| !known.disputed)?;
        Some((id.path.with_qp(qpn), id.path.reversed(known.active_qpn)))
    }

    fn remove_bindings(&mut self, id: &ConnectionId, known: &Connection) {
        for key in known.endpoints(id) {
            self.bindings.remove_of(&key, id);
        }
    }

    /// Closes the connection of a queue pair that is used anew.
    fn close_owner(&mut self, owner: &Owner) {
        if let Some((_, binding)) = self.bindings.owner(owner) {
            self.close(binding.id, None);
        }
    }

    /// Binding of this endpoint, while it is believed.
    pub(crate) fn binding(&self, key: &FlowKey, now: Nanos) -> Option<Binding> {
        self.bindings
            .of(key)
            .filter(|binding| binding.is_believed(now))
    }

    /// Records the packets that an endpoint had until it was bound: they may be of a connection that only paused.
    pub(crate) fn remember(&mut self, key: &FlowKey, before: Option<Fingerprint>) {
        self.bindings.remember(key, before);
    }

    /// Checks a packet of an endpoint against its binding; `request`: its sequence number, if it is one, and the endpoint's number of packets.
    pub(crate) fn check(
        &mut self,
        key: &FlowKey,
        port: u16,
        request: Option<(u32, u32)>,
        now: Nanos,
    ) {
        self.contradicted += u64::from(self.bindings.check(key, port, request, now));
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "cm_tests.rs"]
mod tests;

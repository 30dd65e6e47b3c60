//! Groups of endpoints by UDP source port: the endpoints of one direction with one port are a group.
//!
//! Senders that hash both queue pairs into the port put both directions of a connection on the same one: the group with the
//! port in the other direction holds an endpoint's candidates.

use npcc_pipeline::units::Nanos;

use super::group::Group;
use super::port_majority::PortMajority;
use super::{Endpoints, LIVE};
use crate::key::FlowKey;
use crate::links::NONE;
use crate::pair::pair_state::Verdict;
use crate::pair::port_key::PortKey;

/// Number of port changes from which an endpoint's port proves nothing, until the [`PortMajority`] is over.
const MOST_PORT_CHANGES: u8 = 4;

impl Endpoints {
    pub(crate) fn group(&self, group: u32) -> Option<&Group> {
        self.groups.get(group)
    }

    /// Finds the group of endpoints of one direction with one UDP source port.
    pub(in crate::pair) fn find_group(&self, port: &PortKey) -> Option<u32> {
        self.groups.find(port)
    }

    /// Group with this endpoint's port in the other direction.
    pub(crate) fn opposite(&self, endpoint: u32) -> Option<&Group> {
        self.opposite_index(self.entries.get(endpoint)?.group)
            .and_then(|group| self.groups.get(group))
    }

    pub(in crate::pair) fn opposite_index(&self, group: u32) -> Option<u32> {
        let opposite = self.groups.get(group)?.opposite;
        (opposite != NONE).then_some(opposite)
    }

    /// Endpoints of a group.
    pub(in crate::pair) fn members(&self, group: u32) -> impl Iterator<Item = (u32, FlowKey)> + '_ {
        let head = self
            .groups
            .get(group)
            .map_or(NONE, |group| group.endpoints.head);
        let mut at = head;
        std::iter::from_fn(move || {
            let index = at;
            at = self.entries.get(index)?.grouped.next;
            Some((index, self.entries.key(index)?))
        })
    }

    /// Endpoint after this one in its group ([`NONE`] after the last); `None` if there is no such endpoint.
    pub(in crate::pair) fn next_in_group(&self, endpoint: u32) -> Option<u32> {
        self.entries.get(endpoint).map(|state| state.grouped.next)
    }

    /// Sets or clears the flag that replies to an endpoint fit nobody, and counts it in the endpoint's group.
    pub(in crate::pair) fn set_orphan(&mut self, endpoint: u32, orphan: bool) {
        let Some(state) = self.entries.get_mut(endpoint) else {
            return;
        };
        let Some(group) = self.groups.get_mut(state.group) else {
            return;
        };
        let before = std::mem::replace(&mut state.psn.orphan, orphan);
        let step = i32::from(orphan) - i32::from(before);
        group.orphans = group.orphans.saturating_add_signed(step);
    }

    /// Odds that a reply to an endpoint of this port fits a request by chance, as a product: endpoints whose replies fit nobody, times endpoints
    /// compared with.
    pub(in crate::pair) fn chance(&self, endpoint: u32) -> u64 {
        let own = self
            .entries
            .get(endpoint)
            .and_then(|endpoint| self.group(endpoint.group));
        let of = |group: Option<&Group>| {
            group.map_or((0, 0), |group| (group.orphans, group.endpoints.len))
        };
        let ((one, endpoints), (other, opposite)) = (of(own), of(self.opposite(endpoint)));
        u64::from(one.saturating_add(other)) * u64::from(endpoints.max(opposite))
    }

    /// Returns true if this endpoint is the only one of its direction on its port, and the other direction has at most one on it.
    pub(in crate::pair) fn is_alone(&self, endpoint: u32) -> bool {
        let own = self
            .entries
            .get(endpoint)
            .and_then(|endpoint| self.group(endpoint.group));
        let sizes = [own, self.opposite(endpoint)];
        sizes.iter().flatten().all(|group| group.endpoints.len == 1)
    }

    /// Restarts the steady time and packet count of an endpoint's port, because something new began on it.
    pub(in crate::pair) fn restart_steadiness(&mut self, endpoint: u32, now: Nanos) {
        let Some(state) = self.entries.get_mut(endpoint) else {
            return;
        };
        state.packets_at_change = state.packets;
        if let Some(group) = self.groups.get_mut(state.group) {
            group.changed = now;
        }
    }

    pub(in crate::pair) fn port(&self, endpoint: u32) -> Option<u16> {
        self.entries.get(endpoint)?.port
    }

    /// Records that packets of an endpoint became like another connection's. Returns `false` if they do so all the time: its port proves nothing.
    pub(in crate::pair) fn count_port_change(&mut self, endpoint: u32, now: Nanos) -> bool {
        let Some(state) = self.entries.get_mut(endpoint) else {
            return false;
        };
        // A queue pair number reused now and then is not one whose port changes with every packet.
        let before = self.groups.get(state.group).map(|group| group.changed);
        let seldom = before.is_some_and(|before| now.since(before) >= LIVE);
        if state.port_changes >= MOST_PORT_CHANGES {
            state.majority.restart(now);
            return false;
        }
        state.port_changes = if seldom { 1 } else { state.port_changes + 1 };
        state.majority = PortMajority::of(now);
        state.port_changes < MOST_PORT_CHANGES
    }

    /// Records the UDP source port of an endpoint's packets.
    pub(crate) fn observe_port(&mut self, endpoint: u32, port: u16, now: Nanos) {
        let Some(state) = self.entries.get_mut(endpoint) else {
            return;
        };
        if state.port == Some(port) {
            return;
        }
        if state.port_changes >= MOST_PORT_CHANGES {
            if state.majority.accepts(port, now) {
                state.port_changes = 1;
                self.set_port(endpoint, Some(port), now);
            }
            return;
        }
        let mut signalled = true;
        if state.port.is_some() {
            // The flow label was that of the connection that had the other port.
            state.labelled = false;
            self.reset_psn(endpoint);
            signalled = self.count_port_change(endpoint, now);
        }
        self.set_port(endpoint, signalled.then_some(port), now);
    }

    pub(in crate::pair) fn set_port(&mut self, endpoint: u32, port: Option<u16>, now: Nanos) {
        self.leave_group(endpoint, now);
        let (Some(port), Some(key)) = (port, self.entries.key(endpoint)) else {
            return;
        };
        let Some(uc) = self
            .entries
            .get(endpoint)
            .map(|state| state.transport.is_uc())
        else {
            return;
        };
        let port_key = PortKey::of(&key, port, uc);
        let known = self.groups.find(&port_key);
        let Some(group) = known.or_else(|| self.make_group(port_key, now)) else {
            return;
        };
        let Some(members) = self.groups.get_mut(group) else {
            return;
        };
        let list = &mut members.endpoints;
        list.push_front(&mut self.entries, |it| &mut it.grouped, endpoint);
        members.changed = now;
        let first = members.endpoints.len == 1;
        if let Some(state) = self.entries.get_mut(endpoint) {
            (state.port, state.group) = (Some(port), group);
        }
        if first {
            self.count_port(endpoint, port_key.uc, group, 1);
        }
        self.update_verdicts(group, now);
    }

    fn make_group(&mut self, port_key: PortKey, now: Nanos) -> Option<u32> {
        let empty = Group {
            changed: now,
            ..Group::EMPTY
        };
        let group = self.groups.insert(port_key, empty)?;
        // For a host that talks to itself it is the group itself.
        if let Some(opposite) = self.groups.find(&port_key.reversed()) {
            self.set_opposite(group, opposite);
            self.set_opposite(opposite, group);
        }
        Some(group)
    }

    fn set_opposite(&mut self, group: u32, opposite: u32) {
        if let Some(group) = self.groups.get_mut(group) {
            group.opposite = opposite;
        }
    }

    fn leave_group(&mut self, endpoint: u32, now: Nanos) {
        self.set_verdict(endpoint, Verdict::Silent);
        self.set_shared(endpoint, Verdict::Silent);
        let Some(state) = self.entries.get_mut(endpoint) else {
            return;
        };
        let group = std::mem::replace(&mut state.group, NONE);
        state.port = None;
        let orphan = std::mem::replace(&mut state.psn.orphan, false);
        let Some(port_key) = self.groups.key(group) else {
            return;
        };
        let Some(members) = self.groups.get_mut(group) else {
            return;
        };
        let list = &mut members.endpoints;
        list.remove(&mut self.entries, |it| &mut it.grouped, endpoint);
        members.changed = now;
        members.orphans = members.orphans.saturating_sub(u32::from(orphan));
        if members.endpoints.len == 0 {
            self.count_port(endpoint, port_key.uc, group, -1);
        }
        self.update_verdicts(group, now);
        if self
            .groups
            .get(group)
            .is_some_and(|members| members.endpoints.len == 0)
        {
            if let Some(opposite) = self.opposite_index(group) {
                self.set_opposite(opposite, NONE);
            }
            self.groups.remove(group);
        }
    }

    /// Counts a port of a direction, whose first endpoint came (1), or whose last one left (-1).
    fn count_port(&mut self, endpoint: u32, uc: bool, group: u32, step: i32) {
        if uc {
            return;
        }
        let answered = self.opposite_index(group).is_some();
        let pair = self.entries.get(endpoint).map_or(NONE, |state| state.pair);
        if let Some(pair) = self.pairs.get_mut(pair) {
            let lonely = if answered { -step } else { step };
            pair.lonely = pair.lonely.saturating_add_signed(lonely);
            pair.ports = pair
                .ports
                .saturating_add_signed(if answered { 0 } else { step });
        }
    }
}

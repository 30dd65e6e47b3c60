//! Next-hop groups in use, and the neighbours that each depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use npcc_pipeline::route::nexthop::NextHopGroupId;

use super::members::{GroupKey, Members};

/// Next-hop group in use.
#[derive(Debug)]
pub struct Group {
    /// Key that identifies the group.
    pub key: GroupKey,
    /// Number of routes that use it.
    pub routes: usize,
    /// Members installed in the switch.
    pub members: Members,
}

/// Groups by the switch's number, by key, and by the neighbours they depend on.
#[derive(Debug, Default)]
pub struct Groups {
    numbered: BTreeMap<NextHopGroupId, Group>,
    numbers: BTreeMap<GroupKey, NextHopGroupId>,
    hanging: BTreeMap<(u32, IpAddr), BTreeSet<NextHopGroupId>>,
}

impl Groups {
    /// Returns the group of a number.
    #[must_use]
    pub fn get(&self, id: NextHopGroupId) -> Option<&Group> {
        self.numbered.get(&id)
    }

    /// Returns the number of a group.
    #[must_use]
    pub fn find(&self, key: GroupKey) -> Option<NextHopGroupId> {
        self.numbers.get(&key).copied()
    }

    /// Iterates over the numbers of a next-hop object's groups, one for each MTU that routes over it allow.
    pub fn of_object(&self, id: u32) -> impl Iterator<Item = NextHopGroupId> {
        let keys = GroupKey::Object(id, 0)..=GroupKey::Object(id, u16::MAX);
        self.numbers.range(keys).map(|(_, number)| *number)
    }

    /// Iterates over all groups.
    pub fn iter(&self) -> impl Iterator<Item = (NextHopGroupId, &Group)> {
        self.numbered.iter().map(|(id, group)| (*id, group))
    }

    /// Number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns true if there are no groups.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Iterates over the groups that depend on a neighbour.
    pub fn hanging_on(&self, neighbor: (u32, IpAddr)) -> impl Iterator<Item = NextHopGroupId> {
        let groups = self.hanging.get(&neighbor);
        groups.into_iter().flatten().copied()
    }

    /// Returns true if a group depends on the neighbour as a gateway, not as the destination itself.
    #[must_use]
    pub fn is_gateway(&self, neighbor: (u32, IpAddr)) -> bool {
        let mut keys = self.hanging_on(neighbor).filter_map(|id| self.get(id));
        keys.any(|group| !matches!(group.key, GroupKey::Host(..)))
    }

    /// Iterates over all neighbours that a group depends on.
    pub fn neighbors(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        self.hanging.keys().copied()
    }

    /// Adds a group that the switch has made, without routes as yet.
    pub(super) fn add(&mut self, id: NextHopGroupId, key: GroupKey, members: Members) {
        self.hang(id, &members.hangs_on);
        self.numbers.insert(key, id);
        let group = Group {
            key,
            routes: 0,
            members,
        };
        self.numbered.insert(id, group);
    }

    /// Removes a group.
    pub(super) fn remove(&mut self, id: NextHopGroupId) {
        if let Some(group) = self.numbered.remove(&id) {
            self.unhang(id, &group.members.hangs_on);
            self.numbers.remove(&group.key);
        }
    }

    /// Records the members that the switch has now.
    pub(super) fn set(&mut self, id: NextHopGroupId, members: Members) {
        let Some(group) = self.numbered.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut group.members, members.clone());
        if before.hangs_on != members.hangs_on {
            self.unhang(id, &before.hangs_on);
            self.hang(id, &members.hangs_on);
        }
    }

    /// Adds a route's reference to a group.
    pub(super) fn hold(&mut self, id: NextHopGroupId) {
        if let Some(group) = self.numbered.get_mut(&id) {
            group.routes += 1;
        }
    }

    /// Drops a route's reference to a group; returns true if it was the last.
    pub(super) fn release(&mut self, id: NextHopGroupId) -> bool {
        let Some(group) = self.numbered.get_mut(&id) else {
            return false;
        };
        group.routes = group.routes.saturating_sub(1);
        group.routes == 0
    }

    fn hang(&mut self, id: NextHopGroupId, neighbors: &[(u32, IpAddr)]) {
        for neighbor in neighbors {
            self.hanging.entry(*neighbor).or_default().insert(id);
        }
    }

    fn unhang(&mut self, id: NextHopGroupId, neighbors: &[(u32, IpAddr)]) {
        for neighbor in neighbors {
            if let Some(groups) = self.hanging.get_mut(neighbor) {
                groups.remove(&id);
                if groups.is_empty() {
                    self.hanging.remove(neighbor);
                }
            }
        }
    }
}

//! The groups in use, and whom each hangs on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use npcc_pipeline::route::nexthop::NextHopGroupId;

use super::members::{GroupKey, Members};

/// A group in use.
#[derive(Debug)]
pub struct Group {
    /// What makes it one.
    pub key: GroupKey,
    /// Routes that lead by it.
    pub routes: usize,
    /// What the switch has.
    pub members: Members,
}

/// Groups by the switch's number, by what makes them one, and by the neighbours they hang on.
#[derive(Debug, Default)]
pub struct Groups {
    numbered: BTreeMap<NextHopGroupId, Group>,
    numbers: BTreeMap<GroupKey, NextHopGroupId>,
    hanging: BTreeMap<(u32, IpAddr), BTreeSet<NextHopGroupId>>,
}

impl Groups {
    /// The group of a number.
    #[must_use]
    pub fn get(&self, id: NextHopGroupId) -> Option<&Group> {
        self.numbered.get(&id)
    }

    /// The number of a group.
    #[must_use]
    pub fn find(&self, key: GroupKey) -> Option<NextHopGroupId> {
        self.numbers.get(&key).copied()
    }

    /// Every group.
    pub fn iter(&self) -> impl Iterator<Item = (NextHopGroupId, &Group)> {
        self.numbered.iter().map(|(id, group)| (*id, group))
    }

    /// Groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// No group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The groups that hang on a neighbour.
    pub fn hanging_on(&self, neighbor: (u32, IpAddr)) -> impl Iterator<Item = NextHopGroupId> {
        let groups = self.hanging.get(&neighbor);
        groups.into_iter().flatten().copied()
    }

    /// Whether a group other than to the neighbour itself hangs on it.
    #[must_use]
    pub fn is_gateway(&self, neighbor: (u32, IpAddr)) -> bool {
        let mut keys = self.hanging_on(neighbor).filter_map(|id| self.get(id));
        keys.any(|group| !matches!(group.key, GroupKey::Host(..)))
    }

    /// Every neighbour that a group hangs on.
    pub fn neighbors(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        self.hanging.keys().copied()
    }

    /// A group that the switch has made, without routes as yet.
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

    /// Takes a group away.
    pub(super) fn remove(&mut self, id: NextHopGroupId) {
        if let Some(group) = self.numbered.remove(&id) {
            self.unhang(id, &group.members.hangs_on);
            self.numbers.remove(&group.key);
        }
    }

    /// Notes what the switch has of a group now.
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

    /// One more route leads by a group.
    pub(super) fn hold(&mut self, id: NextHopGroupId) {
        if let Some(group) = self.numbered.get_mut(&id) {
            group.routes += 1;
        }
    }

    /// One route leads by a group no more; whether it was the last.
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

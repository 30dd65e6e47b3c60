//! The groups in use, and whom each hangs on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::members::{GroupKey, Members};
use crate::fib::GroupId;

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

/// Groups by number, by what makes them one, and by the neighbours they hang on.
#[derive(Debug, Default)]
pub struct Groups {
    slots: Vec<Option<Group>>,
    free: Vec<GroupId>,
    numbers: BTreeMap<GroupKey, GroupId>,
    hanging: BTreeMap<(u32, IpAddr), BTreeSet<GroupId>>,
}

impl Groups {
    /// The group of a number.
    #[must_use]
    pub fn get(&self, id: GroupId) -> Option<&Group> {
        self.slots.get(index(id))?.as_ref()
    }

    /// The number of a group.
    #[must_use]
    pub fn find(&self, key: GroupKey) -> Option<GroupId> {
        self.numbers.get(&key).copied()
    }

    /// Every group.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        let numbered = (0u32..).zip(&self.slots);
        numbered.filter_map(|(number, slot)| Some((GroupId(number), slot.as_ref()?)))
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
    pub fn hanging_on(&self, neighbor: (u32, IpAddr)) -> impl Iterator<Item = GroupId> {
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

    /// A number for a group that has none, without routes as yet.
    pub(super) fn add(&mut self, key: GroupKey, members: Members) -> GroupId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            GroupId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        });
        self.hang(id, &members.hangs_on);
        self.numbers.insert(key, id);
        if let Some(slot) = self.slots.get_mut(index(id)) {
            *slot = Some(Group {
                key,
                routes: 0,
                members,
            });
        }
        id
    }

    /// Takes a group away.
    pub(super) fn remove(&mut self, id: GroupId) {
        let slot = self.slots.get_mut(index(id));
        if let Some(group) = slot.and_then(Option::take) {
            self.unhang(id, &group.members.hangs_on);
            self.numbers.remove(&group.key);
            self.free.push(id);
        }
    }

    /// Notes what the switch has of a group now.
    pub(super) fn set(&mut self, id: GroupId, members: Members) {
        let Some(Some(group)) = self.slots.get_mut(index(id)) else {
            return;
        };
        let before = std::mem::replace(&mut group.members, members.clone());
        if before.hangs_on != members.hangs_on {
            self.unhang(id, &before.hangs_on);
            self.hang(id, &members.hangs_on);
        }
    }

    /// One more route leads by a group.
    pub(super) fn hold(&mut self, id: GroupId) {
        if let Some(Some(group)) = self.slots.get_mut(index(id)) {
            group.routes += 1;
        }
    }

    /// One route leads by a group no more; whether it was the last.
    pub(super) fn release(&mut self, id: GroupId) -> bool {
        let Some(Some(group)) = self.slots.get_mut(index(id)) else {
            return false;
        };
        group.routes = group.routes.saturating_sub(1);
        group.routes == 0
    }

    fn hang(&mut self, id: GroupId, neighbors: &[(u32, IpAddr)]) {
        for neighbor in neighbors {
            self.hanging.entry(*neighbor).or_default().insert(id);
        }
    }

    fn unhang(&mut self, id: GroupId, neighbors: &[(u32, IpAddr)]) {
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

const fn index(id: GroupId) -> usize {
    id.0 as usize
}

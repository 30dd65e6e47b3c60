//! Next-hop objects and groups of them.

use std::collections::{BTreeMap, BTreeSet};

use super::sweep::Epoch;
use crate::wire::nexthop::{NextHop, NextHopKind};

/// Next-hop objects by id.
#[derive(Debug, Default)]
pub struct NextHops {
    all: BTreeMap<u32, (NextHopKind, Epoch)>,
    /// Groups of which an object is a member.
    groups_of: BTreeMap<u32, BTreeSet<u32>>,
}

impl NextHops {
    /// Returns the kind of an object.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<&NextHopKind> {
        self.all.get(&id).map(|(kind, _)| kind)
    }

    /// Iterates over all objects.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &NextHopKind)> {
        self.all.iter().map(|(id, (kind, _))| (*id, kind))
    }

    /// Iterates over the groups of which an object is a member.
    pub fn groups_of(&self, id: u32) -> impl Iterator<Item = u32> {
        let groups = self.groups_of.get(&id);
        groups.into_iter().flatten().copied()
    }

    /// Adds or updates an object; returns true if it changed.
    pub(super) fn set(&mut self, hop: NextHop, epoch: Epoch) -> bool {
        let NextHop { id, kind } = hop;
        if let Some((before, seen)) = self.all.get_mut(&id)
            && *before == kind
        {
            *seen = epoch;
            return false;
        }
        self.leave(id);
        if let NextHopKind::Group(members) = &kind {
            for (member, _) in members {
                self.groups_of.entry(*member).or_default().insert(id);
            }
        }
        self.all.insert(id, (kind, epoch));
        true
    }

    /// Removes an object, also from its groups, and the groups that are empty then; returns the ids that are gone, and those of the
    /// groups that have become smaller.
    pub(super) fn remove(&mut self, id: u32) -> (Vec<u32>, Vec<u32>) {
        if !self.all.contains_key(&id) {
            return (vec![], vec![]);
        }
        let (mut gone, mut smaller) = (vec![id], vec![]);
        for group in self.groups_of(id).collect::<Vec<_>>() {
            let Some((NextHopKind::Group(members), _)) = self.all.get_mut(&group) else {
                continue;
            };
            members.retain(|(member, _)| *member != id);
            if members.is_empty() {
                gone.push(group);
            } else {
                smaller.push(group);
            }
        }
        for id in &gone {
            self.leave(*id);
            self.all.remove(id);
            self.groups_of.remove(id);
        }
        (gone, smaller)
    }

    /// Returns the objects over a link.
    pub(super) fn by_link(&self, link: u32) -> Vec<u32> {
        let by =
            |kind: &NextHopKind| matches!(kind, NextHopKind::By { link: by, .. } if *by == link);
        let found = self.all.iter().filter(|(_, (kind, _))| by(kind));
        found.map(|(id, _)| *id).collect()
    }

    /// Returns the objects that the dump of this epoch did not contain.
    pub(super) fn stale(&self, epoch: Epoch) -> Vec<u32> {
        let stale = self.all.iter().filter(|(_, (_, seen))| *seen != epoch);
        stale.map(|(id, _)| *id).collect()
    }

    /// Removes a group from the lists of its members.
    fn leave(&mut self, id: u32) {
        if let Some((NextHopKind::Group(members), _)) = self.all.get(&id) {
            for (member, _) in members {
                if let Some(groups) = self.groups_of.get_mut(member) {
                    groups.remove(&id);
                }
            }
        }
    }
}

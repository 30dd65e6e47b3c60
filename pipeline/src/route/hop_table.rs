//! The writer's half of the next hops: the ids in use, their values, and their reference counts.
//!
//! Law: an adjacency is referenced by the next-hop groups it is in, a group by the prefixes that lead to it; an id without
//! references is reused. That needs no waiting: an id is rewritten on the spare pair only, where no prefix leads to it any
//! more, and readers of the live pair find its old value until the swap. Before that the writer has waited until no worker
//! reads the spare pair.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::hops::NextHops;
use super::nexthop::{Adjacency, AdjacencyId, NextHopGroupId, Path, default_group};
use super::op_log::OpLog;
use super::prefix::Family;

/// Error: every id is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoNumber {
    /// Number of ids there are.
    pub(super) limit: usize,
}

/// Next hops of the spare pair, and the log of changes to them.
pub(super) struct Spare<'a> {
    pub(super) hops: &'a NextHops,
    /// Next hops of the live pair, which flows take until the next commit.
    pub(super) live: &'a NextHops,
    pub(super) log: &'a mut OpLog,
}

impl Spare<'_> {
    /// Writes a group; `was` is the live group from whose buckets its own are assigned.
    fn set_group(
        &mut self,
        id: NextHopGroupId,
        members: &[AdjacencyId],
        was: Option<NextHopGroupId>,
    ) {
        let was = was.map(|was| (self.live, was));
        self.hops.set_group(id, members, was);
        self.log.wrote_group(id);
    }
}

/// Adjacencies and next-hop groups in use.
#[derive(Debug)]
pub(super) struct HopTable {
    adjacencies: Numbers<Path>,
    groups: Numbers<Box<[AdjacencyId]>>,
    /// Members of the default routes' groups, which have fixed ids.
    defaults: [Box<[AdjacencyId]>; 2],
}

impl HopTable {
    /// Returns an empty table for next hops of that capacity: adjacency 0 is "no route", groups 0 and 1 are the default
    /// routes'.
    pub(super) fn new((groups, adjacencies): (usize, usize)) -> HopTable {
        HopTable {
            adjacencies: Numbers::new(1, adjacencies),
            groups: Numbers::new(2, groups),
            defaults: Default::default(),
        }
    }

    /// Adds a reference to the group with exactly these paths; if there is none it is made, with buckets assigned from the
    /// live group `was`.
    pub(super) fn hold(
        &mut self,
        paths: &[Adjacency],
        was: Option<NextHopGroupId>,
        spare: &mut Spare<'_>,
    ) -> Result<NextHopGroupId, NoNumber> {
        if let [path] = paths {
            let member = [self.hold_adjacency(*path, spare)?];
            return self.hold_group(&member, was, spare);
        }
        let members = self.hold_members(paths, spare)?;
        self.hold_group(&members, was, spare)
    }

    /// Makes a group of its own, even if another has the same paths, with one reference. Its buckets are assigned from the
    /// live group `was`.
    pub(super) fn make(
        &mut self,
        paths: &[Adjacency],
        was: Option<NextHopGroupId>,
        spare: &mut Spare<'_>,
    ) -> Result<NextHopGroupId, NoNumber> {
        let members = self.hold_members(paths, spare)?;
        match self.groups.make(members.clone().into_boxed_slice()) {
            Ok(number) => {
                spare.set_group(NextHopGroupId(number), &members, was);
                Ok(NextHopGroupId(number))
            }
            Err(full) => {
                self.release_members(&members);
                Err(full)
            }
        }
    }

    /// Gives a group of [`HopTable::make`] other paths, with buckets assigned from the live group `was`.
    pub(super) fn change(
        &mut self,
        group: NextHopGroupId,
        paths: &[Adjacency],
        was: NextHopGroupId,
        spare: &mut Spare<'_>,
    ) -> Result<(), NoNumber> {
        let members = self.hold_members(paths, spare)?;
        spare.set_group(group, &members, Some(was));
        let old = self.groups.replace(group.0, members.into_boxed_slice());
        self.release_members(&old.unwrap_or_default());
        Ok(())
    }

    /// Adds a reference to a group.
    pub(super) fn hold_again(&mut self, group: NextHopGroupId) {
        self.groups.hold_again(group.0);
    }

    /// Returns the paths of a group, repeated as often as they have shares.
    pub(super) fn shares(&self, group: NextHopGroupId) -> Vec<Adjacency> {
        let members = self.groups.value(group.0).into_iter().flatten();
        members
            .filter_map(|member| self.adjacencies.value(member.0))
            .map(|path| path.unpacked())
            .collect()
    }

    /// Drops a reference to a group.
    pub(super) fn release(&mut self, group: NextHopGroupId) {
        if let Some(members) = self.groups.release(group.0) {
            self.release_members(&members);
        }
    }

    /// Gives a family's default route these paths; none for "no route".
    pub(super) fn set_default(
        &mut self,
        family: Family,
        paths: &[Adjacency],
        spare: &mut Spare<'_>,
    ) -> Result<NextHopGroupId, NoNumber> {
        let members = self.hold_members(paths, spare)?;
        let id = default_group(family);
        spare.set_group(id, &members, Some(id));
        if let Some(place) = self.defaults.get_mut(usize::from(id.0)) {
            let old = std::mem::replace(place, members.into_boxed_slice());
            self.release_members(&old);
        }
        Ok(id)
    }

    /// Returns the paths of a group, each once.
    pub(super) fn paths(&self, group: NextHopGroupId) -> Vec<Adjacency> {
        let default = self.defaults.get(usize::from(group.0));
        let members = default.or_else(|| self.groups.value(group.0));
        let paths = members.into_iter().flatten();
        let mut paths: Vec<Adjacency> = paths
            .filter_map(|member| self.adjacencies.value(member.0))
            .map(|path| path.unpacked())
            .collect();
        paths.sort_unstable_by_key(|path| (path.port, path.dst.to_u64()));
        paths.dedup();
        paths
    }

    /// Returns true if flows choose among several members of a group that prefixes reference.
    pub(super) fn has_choice(&self, group: NextHopGroupId) -> bool {
        let members = self.groups.value(group.0);
        members.is_some_and(|members| members.len() > 1)
    }

    /// Adds a reference to the group of `members`, whose references it takes over.
    fn hold_group(
        &mut self,
        members: &[AdjacencyId],
        was: Option<NextHopGroupId>,
        spare: &mut Spare<'_>,
    ) -> Result<NextHopGroupId, NoNumber> {
        let held = self.groups.hold(members, || Box::from(members));
        if !matches!(held, Ok((_, true))) {
            // A group that existed references them already.
            self.release_members(members);
        }
        let (number, new) = held?;
        let id = NextHopGroupId(number);
        if new {
            spare.set_group(id, members, was);
        }
        Ok(id)
    }

    fn hold_members(
        &mut self,
        paths: &[Adjacency],
        spare: &mut Spare<'_>,
    ) -> Result<Vec<AdjacencyId>, NoNumber> {
        let mut members = Vec::with_capacity(paths.len());
        for path in paths {
            match self.hold_adjacency(*path, spare) {
                Ok(id) => members.push(id),
                Err(full) => {
                    self.release_members(&members);
                    return Err(full);
                }
            }
        }
        Ok(members)
    }

    fn hold_adjacency(
        &mut self,
        path: Adjacency,
        spare: &mut Spare<'_>,
    ) -> Result<AdjacencyId, NoNumber> {
        let packed = path.packed();
        let (number, new) = self.adjacencies.hold(&packed, || packed)?;
        let id = AdjacencyId(number);
        if new {
            spare.hops.set_adjacency(id, path);
            spare.log.wrote_adjacency(id);
        }
        Ok(id)
    }

    fn release_members(&mut self, members: &[AdjacencyId]) {
        for member in members {
            self.adjacencies.release(member.0);
        }
    }
}

/// Distinct values, each with an id and a reference count.
#[derive(Debug)]
struct Numbers<V> {
    /// Id of each value that is referenced.
    by_value: HashTable<u16>,
    hasher: RandomState,
    /// Current or last value, and reference count, of each id from `first` on.
    slots: Vec<(V, u32)>,
    /// Ids that were freed.
    free: Vec<u16>,
    first: u16,
    limit: usize,
}

impl<V: Hash + Eq> Numbers<V> {
    /// Returns an empty table with ids from `first` to below `limit`.
    fn new(first: u16, limit: usize) -> Numbers<V> {
        Numbers {
            by_value: HashTable::new(),
            hasher: RandomState::default(),
            slots: Vec::new(),
            free: Vec::new(),
            first,
            limit: limit.min(1 << 16),
        }
    }

    /// Returns the value of an id that is referenced.
    fn value(&self, number: u16) -> Option<&V> {
        let slot = self.slots.get(usize::from(number.checked_sub(self.first)?));
        slot.filter(|(_, holds)| *holds > 0).map(|(value, _)| value)
    }

    /// Adds a reference to the id of a value; the flag is true if the id is new.
    fn hold<Q: Hash + Eq + ?Sized>(
        &mut self,
        value: &Q,
        own: impl FnOnce() -> V,
    ) -> Result<(u16, bool), NoNumber>
    where
        V: Borrow<Q>,
    {
        let hash = self.hasher.hash_one(value);
        let (slots, first) = (&mut self.slots, self.first);
        let at = |number: u16| usize::from(number.saturating_sub(first));
        let is_value = |number: &u16| {
            let slot = slots.get(at(*number));
            slot.is_some_and(|(held, _)| held.borrow() == value)
        };
        if let Some(number) = self.by_value.find(hash, is_value).copied() {
            if let Some((_, holds)) = slots.get_mut(at(number)) {
                *holds += 1;
            }
            return Ok((number, false));
        }
        let number = self.make(own())?;
        let (slots, first) = (&self.slots, self.first);
        let at = |number: u16| usize::from(number.saturating_sub(first));
        let hash_of = |number: &u16| {
            let slot = slots.get(at(*number));
            slot.map_or(0, |(value, _)| self.hasher.hash_one(value.borrow()))
        };
        self.by_value.insert_unique(hash, number, hash_of);
        Ok((number, true))
    }

    /// Gives a value an id of its own with one reference, which [`Numbers::hold`] does not find.
    fn make(&mut self, value: V) -> Result<u16, NoNumber> {
        let number = match self.free.pop() {
            Some(number) => number,
            None => u16::try_from(self.slots.len() + usize::from(self.first))
                .ok()
                .filter(|number| usize::from(*number) < self.limit)
                .ok_or(NoNumber { limit: self.limit })?,
        };
        match self.slot(number) {
            Some(slot) => *slot = (value, 1),
            None => self.slots.push((value, 1)),
        }
        Ok(number)
    }

    fn slot(&mut self, number: u16) -> Option<&mut (V, u32)> {
        let index = usize::from(number.checked_sub(self.first)?);
        self.slots.get_mut(index)
    }

    /// Adds a reference to an id that has one.
    fn hold_again(&mut self, number: u16) {
        if let Some((_, holds)) = self.slot(number) {
            *holds += 1;
        }
    }

    /// Gives an id of [`Numbers::make`] another value; returns the old one.
    fn replace(&mut self, number: u16, value: V) -> Option<V> {
        let (held, _) = self.slot(number)?;
        Some(std::mem::replace(held, value))
    }

    /// Drops a reference; returns the value if it was the last.
    fn release(&mut self, number: u16) -> Option<V>
    where
        V: Clone,
    {
        let index = usize::from(number.checked_sub(self.first)?);
        let (value, holds) = self.slots.get_mut(index)?;
        *holds = holds.checked_sub(1)?;
        if *holds > 0 {
            return None;
        }
        let hash = self.hasher.hash_one(&*value);
        let entry = self.by_value.find_entry(hash, |other| *other == number);
        if let Ok(entry) = entry {
            entry.remove();
        }
        self.free.push(number);
        Some(value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::nexthop::Kind;
    use crate::units::PortId;
    use proptest::prelude::*;

    fn path(id: u8) -> Adjacency {
        Adjacency {
            port: PortId(id),
            ..Adjacency::unusable(Kind::Forward)
        }
    }

    proptest! {
        /// Every referenced group has its own id that leads to its paths, and ids without references are free.
        #[test]
        fn numbers_are_held_exactly_as_long_as_somebody_counts_on_them(
            steps in prop::collection::vec((any::<bool>(), prop::collection::vec(0u8..6, 1..4)), 1..200),
        ) {
            let hops = NextHops::new(5, 6);
            let mut log = OpLog::default();
            let mut table = HopTable::new(hops.capacity());
            let mut held: Vec<(Vec<u8>, NextHopGroupId)> = Vec::new();
            for (hold, ports) in steps {
                let mut spare = Spare { hops: &hops, live: &hops, log: &mut log };
                if hold {
                    let paths: Vec<_> = ports.iter().map(|port| path(*port)).collect();
                    if let Ok(id) = table.hold(&paths, None, &mut spare) {
                        held.push((ports, id));
                    }
                } else if !held.is_empty() {
                    let (_, id) = held.remove(usize::from(ports[0]) % held.len());
                    table.release(id);
                }
                let mut groups: Vec<_> = held.iter().map(|(ports, id)| (ports.clone(), id.0)).collect();
                groups.sort_unstable();
                groups.dedup();
                let mut numbers: Vec<_> = groups.iter().map(|(_, id)| *id).collect();
                numbers.sort_unstable();
                numbers.dedup();
                prop_assert_eq!(numbers.len(), groups.len(), "a number a group");
                prop_assert_eq!(table.groups.by_value.len(), groups.len());
                let mut ports: Vec<u8> = groups.iter().flat_map(|(ports, _)| ports.clone()).collect();
                ports.sort_unstable();
                ports.dedup();
                prop_assert_eq!(table.adjacencies.by_value.len(), ports.len());
                for (ports, id) in groups {
                    for (place, port) in ports.iter().enumerate() {
                        let leads = hops.resolve(u32::from(id), 0, || u32::try_from(place).unwrap());
                        prop_assert_eq!(leads.port(), PortId(*port));
                    }
                }
            }
        }
    }
}

//! The writer's half of the next hops: the ids in use, their values, and their reference counts.
//!
//! Law: an adjacency is referenced by the next-hop groups it is in, a group by the prefixes that lead to it; an id without
//! references is reused. That needs no waiting: an id is rewritten on the spare pair only, where no prefix leads to it any
//! more, and readers of the live pair find its old value until the swap. Before that the writer has waited until no worker
//! reads the spare pair.

use super::hops::NextHops;
use super::ids::{Ids, NoId};
use super::nexthop::{Adjacency, AdjacencyId, NextHopGroupId, Path, default_group};
use super::op_log::OpLog;
use super::prefix::Family;

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
    /// Paths, each with the MTU that its route allows.
    adjacencies: Ids<(Path, u16)>,
    groups: Ids<Box<[AdjacencyId]>>,
    /// Members of the default routes' groups, which have fixed ids.
    defaults: [Box<[AdjacencyId]>; 2],
}

impl HopTable {
    /// Returns an empty table for next hops of that capacity: adjacency 0 is "no route", groups 0 and 1 are the default
    /// routes'.
    pub(super) fn new((groups, adjacencies): (usize, usize)) -> HopTable {
        HopTable {
            adjacencies: Ids::new(1, adjacencies),
            groups: Ids::new(2, groups),
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
    ) -> Result<NextHopGroupId, NoId> {
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
    ) -> Result<NextHopGroupId, NoId> {
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
    ) -> Result<(), NoId> {
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
            .map(unpacked)
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
    ) -> Result<NextHopGroupId, NoId> {
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
            .map(unpacked)
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
    ) -> Result<NextHopGroupId, NoId> {
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
    ) -> Result<Vec<AdjacencyId>, NoId> {
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
    ) -> Result<AdjacencyId, NoId> {
        let packed = (path.packed(), path.mtu);
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

/// Returns a path field by field.
const fn unpacked((path, mtu): &(Path, u16)) -> Adjacency {
    Adjacency {
        mtu: *mtu,
        ..path.unpacked()
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

//! Next hops as readers see them: adjacencies, and groups of them for ECMP.
//!
//! Each pair of images ([`super::fib`]) has its own next hops, written while no worker reads the pair: so a worker never sees
//! half of one, and a changed group, the default route's too, becomes visible with the rest of its batch. A group with a
//! choice has buckets, each the index of an adjacency, and a group that replaces it assigns its own from them
//! ([`super::buckets`]).

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::buckets::{BUCKETS, deal, first_choice, other_choices};
use super::image::zeroed;
use super::nexthop::{Adjacency, AdjacencyId, NextHopGroupId, Path};
use crate::bits::low16;

/// Number of members of a group (high 16 bits), and its first member: all that a group of one needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GroupHead(u32);

impl GroupHead {
    fn of(members: &[AdjacencyId]) -> GroupHead {
        let count = u16::try_from(members.len()).unwrap_or(u16::MAX);
        let first = members.first().map_or(0, |id| id.0);
        GroupHead(u32::from(count) << 16 | u32::from(first))
    }

    /// Returns the member all flows take; `None` if they choose.
    #[inline]
    const fn only(self) -> Option<AdjacencyId> {
        if self.0 >> 17 == 0 {
            Some(AdjacencyId(low16(self.0 as usize)))
        } else {
            None
        }
    }
}

fn copy(to: &[AtomicU64; 2], from: &[AtomicU64; 2]) {
    for (to, from) in to.iter().zip(from) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// All adjacencies and next-hop groups of one pair of images; shared with every worker.
///
/// A group takes 4 bytes, and 256 more of memory that is not touched before it has a choice: at most 4.3 MB a pair with 16,384
/// groups.
#[derive(Debug)]
pub struct NextHops {
    adjacencies: Box<[[AtomicU64; 2]]>,
    /// MTU that the route of each adjacency allows: see [`Adjacency::mtu`]. Read when a burst meets the adjacency first.
    mtus: Box<[AtomicU16]>,
    /// Head of each group: see [`GroupHead`].
    heads: Box<[AtomicU32]>,
    /// Adjacency of each bucket of each group, if the group has a choice.
    buckets: Box<[[AtomicU16; BUCKETS]]>,
}

impl NextHops {
    /// Returns a table for `adjacencies` paths and `groups` groups, at most 65,536 each; all lead to "no route".
    #[must_use]
    pub fn new(adjacencies: usize, groups: usize) -> NextHops {
        NextHops {
            adjacencies: (0..adjacencies.min(1 << 16))
                .map(|_| Default::default())
                .collect(),
            mtus: (0..adjacencies.min(1 << 16))
                .map(|_| AtomicU16::new(0))
                .collect(),
            heads: zeroed(groups.min(1 << 16)),
            buckets: zeroed(groups.min(1 << 16)),
        }
    }

    /// Returns the choice of a group's flows; `None` if it has one member. A flow whose path leads to one of the ports that are
    /// `down`, one bit each, takes that of another member, if one is left.
    #[inline]
    pub(super) fn choice(&self, group: u32, down: u32) -> Option<Choice<'_>> {
        if self.head(group).only().is_some() {
            return None;
        }
        let buckets = self.buckets.get(group as usize)?;
        Some(Choice {
            hops: self,
            buckets,
            down,
        })
    }

    /// Returns the path that a flow with this hash takes in a group. `hash` is called only if there is a [`Choice`].
    #[inline]
    pub(super) fn resolve(&self, group: u32, down: u32, hash: impl FnOnce() -> u32) -> Path {
        match self.choice(group, down) {
            Some(choice) => self.adjacency(choice.of(hash())),
            None => self.only(group).unwrap_or(Path::NONE),
        }
    }

    /// Returns the path of all flows of a group with one member; `None` if the flow decides.
    #[inline]
    pub(super) fn only(&self, group: u32) -> Option<Path> {
        self.head(group).only().map(|id| self.adjacency(id))
    }

    /// Returns the path of all flows of a group with one member and the MTU that its route allows, or 0; `None` if the flow decides.
    #[inline]
    pub(super) fn only_with_mtu(&self, group: u32) -> Option<(Path, u16)> {
        self.head(group).only().map(|id| self.with_mtu(id))
    }

    /// Returns one path, and the MTU that its route allows, or 0.
    #[inline]
    pub(super) fn with_mtu(&self, id: AdjacencyId) -> (Path, u16) {
        let mtu = self.mtus.get(usize::from(id.0));
        let mtu = mtu.map_or(0, |mtu| mtu.load(Ordering::Relaxed));
        (self.adjacency(id), mtu)
    }

    /// Returns the path that a flow with this hash takes, as [`NextHops::resolve`], and the MTU that its route allows, or 0.
    pub(super) fn resolve_with_mtu(
        &self,
        group: u32,
        down: u32,
        hash: impl FnOnce() -> u32,
    ) -> (Path, u16) {
        match self.choice(group, down) {
            Some(choice) => self.with_mtu(choice.of(hash())),
            None => self.only_with_mtu(group).unwrap_or((Path::NONE, 0)),
        }
    }

    /// Returns all paths of a group, repeated as often as they have buckets.
    pub(super) fn paths(&self, group: u32) -> impl Iterator<Item = Path> {
        let only = self.only(group);
        let buckets = if only.is_none() { BUCKETS } else { 0 };
        let chosen = (0..buckets).map(move |bucket| self.in_bucket(group, bucket));
        only.into_iter().chain(chosen)
    }

    #[inline]
    fn head(&self, group: u32) -> GroupHead {
        let head = self.heads.get(group as usize);
        GroupHead(head.map_or(0, |head| head.load(Ordering::Relaxed)))
    }

    /// Returns the path of a bucket of a group with a choice.
    #[inline]
    fn in_bucket(&self, group: u32, bucket: usize) -> Path {
        let buckets = self.buckets.get(group as usize);
        self.adjacency(buckets.map_or(AdjacencyId(0), |buckets| in_bucket(buckets, bucket)))
    }

    /// Returns one path.
    #[inline]
    #[must_use]
    pub fn adjacency(&self, id: AdjacencyId) -> Path {
        match self.adjacencies.get(usize::from(id.0)) {
            Some(words) => {
                Path::of_words(words.each_ref().map(|word| word.load(Ordering::Relaxed)))
            }
            None => Path::NONE,
        }
    }

    /// Writes a path, on a pair that no worker reads.
    pub(super) fn set_adjacency(&self, id: AdjacencyId, adjacency: Adjacency) {
        if let Some(words) = self.adjacencies.get(usize::from(id.0)) {
            for (word, value) in words.iter().zip(adjacency.packed().words()) {
                word.store(value, Ordering::Relaxed);
            }
        }
        if let Some(mtu) = self.mtus.get(usize::from(id.0)) {
            mtu.store(adjacency.mtu, Ordering::Relaxed);
        }
    }

    /// Gives a group these members, on a pair that no worker reads; none means "no route". Its buckets are assigned from those
    /// of `was`, the group it replaces.
    pub(super) fn set_group(
        &self,
        id: NextHopGroupId,
        members: &[AdjacencyId],
        was: Option<(&NextHops, NextHopGroupId)>,
    ) {
        let index = usize::from(id.0);
        let (Some(head), Some(buckets)) = (self.heads.get(index), self.buckets.get(index)) else {
            return;
        };
        let new = GroupHead::of(members);
        head.store(new.0, Ordering::Relaxed);
        if new.only().is_some() {
            return;
        }
        // Compare paths, not ids: an id may have another path on each pair.
        let paths: Vec<Path> = members.iter().map(|id| self.adjacency(*id)).collect();
        let had = |bucket| was.and_then(|(hops, group)| hops.had(group, bucket));
        for (slot, index) in buckets.iter().zip(deal(&paths, had)) {
            let member = index.and_then(|index| members.get(index));
            slot.store(member.map_or(0, |id| id.0), Ordering::Relaxed);
        }
    }

    /// Returns the path of a bucket of a group, if the group has a choice.
    fn had(&self, group: NextHopGroupId, bucket: usize) -> Option<Path> {
        let group = u32::from(group.0);
        self.head(group)
            .only()
            .is_none()
            .then(|| self.in_bucket(group, bucket))
    }

    /// Makes one path equal to that in `other`, on a pair that no worker reads.
    pub(super) fn copy_adjacency(&self, other: &NextHops, id: AdjacencyId) {
        let index = usize::from(id.0);
        if let (Some(to), Some(from)) = (self.adjacencies.get(index), other.adjacencies.get(index))
        {
            copy(to, from);
        }
        if let (Some(to), Some(from)) = (self.mtus.get(index), other.mtus.get(index)) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Makes one group equal to that in `other`, on a pair that no worker reads.
    pub(super) fn copy_group(&self, other: &NextHops, id: NextHopGroupId) {
        self.copy_group_at(other, usize::from(id.0));
    }

    fn copy_group_at(&self, other: &NextHops, index: usize) {
        let (Some(to), Some(from)) = (self.heads.get(index), other.heads.get(index)) else {
            return;
        };
        let head = GroupHead(from.load(Ordering::Relaxed));
        to.store(head.0, Ordering::Relaxed);
        if head.only().is_some() {
            return;
        }
        let (to, from) = (self.buckets.get(index), other.buckets.get(index));
        for (to, from) in to.into_iter().flatten().zip(from.into_iter().flatten()) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Makes all next hops equal to those in `other`, on a pair that no worker reads.
    pub(super) fn copy_of(&self, other: &NextHops) {
        for (to, from) in self.adjacencies.iter().zip(&other.adjacencies) {
            copy(to, from);
        }
        for (to, from) in self.mtus.iter().zip(&other.mtus) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for index in 0..self.heads.len() {
            self.copy_group_at(other, index);
        }
    }

    /// Returns the number of groups and of adjacencies that fit.
    pub(super) fn capacity(&self) -> (usize, usize) {
        (self.heads.len(), self.adjacencies.len())
    }
}

/// Returns the adjacency of a bucket.
#[inline]
fn in_bucket(buckets: &[AtomicU16; BUCKETS], bucket: usize) -> AdjacencyId {
    let id = buckets.get(bucket);
    AdjacencyId(id.map_or(0, |id| id.load(Ordering::Relaxed)))
}

/// Choice of a path by the flows of one group, resolved for many flows in a row.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    hops: &'a NextHops,
    buckets: &'a [AtomicU16; BUCKETS],
    down: u32,
}

impl Choice<'_> {
    /// Returns the adjacency of a flow with this hash.
    #[inline]
    #[must_use]
    pub fn of(&self, hash: u32) -> AdjacencyId {
        let own = in_bucket(self.buckets, first_choice(hash));
        if self.down == 0 {
            return own;
        }
        self.around(own, hash)
    }

    /// Returns the adjacency of a flow with this hash while ports are down; `own` is that of its bucket. Further bits of its
    /// hash choose, so that the flows of one bucket spread over all members that are left.
    #[inline(never)]
    fn around(&self, own: AdjacencyId, hash: u32) -> AdjacencyId {
        let is_behind = |id: AdjacencyId| self.hops.adjacency(id).is_behind(self.down);
        if !is_behind(own) {
            return own;
        }
        other_choices(hash)
            .map(|bucket| in_bucket(self.buckets, bucket))
            .find(|id| self.hops.adjacency(*id).forwards() && !is_behind(*id))
            .unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::nexthop::Kind;
    use crate::units::PortId;
    use proptest::prelude::*;

    fn hops() -> NextHops {
        let hops = NextHops::new(16, 4);
        for id in 1..16u16 {
            hops.set_adjacency(
                AdjacencyId(id),
                Adjacency {
                    port: PortId(id as u8),
                    ..Adjacency::unusable(Kind::Forward)
                },
            );
        }
        hops
    }

    #[test]
    fn one_member_is_never_hashed_and_several_share_the_buckets() {
        let hops = hops();
        hops.set_group(NextHopGroupId(1), &[AdjacencyId(2)], None);
        let only = hops.resolve(1, 1 << 2, || unreachable!());
        assert_eq!(only.port(), PortId(2), "also where it is down");
        let members = [AdjacencyId(1), AdjacencyId(2), AdjacencyId(3)];
        hops.set_group(NextHopGroupId(2), &members, None);
        let mut used = [0; 4];
        for hash in 0..BUCKETS as u32 {
            used[hops.resolve(2, 0, || hash).port().index()] += 1;
        }
        assert_eq!(used, [0, 43, 43, 42]);
        assert_eq!(hops.resolve(0, 0, || 0).kind(), Kind::NoRoute);
        assert_eq!(hops.resolve(99, 0, || 0).kind(), Kind::NoRoute);
    }

    proptest! {
        /// Only flows whose path is down take another, each remaining member gets an even part of them, and without a
        /// remaining member they stay.
        #[test]
        fn flows_of_a_port_that_is_down_spread_over_the_others(
            n in 2u16..9, down in any::<u32>(), start in any::<u32>(),
        ) {
            const FLOWS: u32 = 40_000;
            let hops = hops();
            let members: Vec<_> = (1..=n).map(AdjacencyId).collect();
            hops.set_group(NextHopGroupId(2), &members, None);
            let left = members.iter().filter(|id| down >> id.0 & 1 == 0).count();
            let (mut moved, mut gained) = (0u32, [0u32; 16]);
            for flow in 0..FLOWS {
                let hash = (start ^ flow).wrapping_mul(0x85eb_ca6b).rotate_left(13).wrapping_mul(0xc2b2_ae35);
                let (own, now) = (hops.resolve(2, 0, || hash), hops.resolve(2, down, || hash));
                if left == 0 || !own.is_behind(down) {
                    prop_assert_eq!(own, now);
                    continue;
                }
                prop_assert!(!now.is_behind(down));
                moved += 1;
                gained[now.port().index()] += 1;
            }
            if moved > 0 {
                for id in members.iter().filter(|id| down >> id.0 & 1 == 0) {
                    let (got, even) = (f64::from(gained[usize::from(id.0)]), f64::from(moved) / left as f64);
                    // Shares of buckets differ by one; the rest is five standard deviations of chance.
                    let slack = even * 0.07 + 5.0 * even.sqrt();
                    prop_assert!((got - even).abs() < slack, "{got} of {even}");
                }
            }
        }
    }
}

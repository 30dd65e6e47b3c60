//! What a route leads to: adjacencies, and groups of them for ECMP.
//!
//! Each pair of images ([`super::fib`]) has next hops of its own, written while no worker reads the pair: so a worker never
//! sees half of one, and a changed group, the default route's too, is seen with the rest of its batch. A group is an array of
//! buckets, each the index of an adjacency.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use super::prefix::Family;
use crate::units::{Mac, PortId};

/// Buckets of a group: the flow hash chooses one.
pub const BUCKETS: usize = 16;

/// Untagged, in [`Adjacency::vlan`].
pub const UNTAGGED: u16 = 0;

/// What happens to a frame that takes this path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// No route.
    NoRoute = 0,
    /// Sent to `dst` out of `port`.
    Forward = 1,
    /// On a connected subnet, but the neighbour's MAC address is unknown.
    Unresolved = 2,
    /// An address of the switch itself.
    Local = 3,
    /// Dropped on purpose.
    Blackhole = 4,
}

/// A path: where to, and with which layer 2 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adjacency {
    /// What happens.
    pub kind: Kind,
    /// Egress port (of `Forward`, `Unresolved`, `Local`).
    pub port: PortId,
    /// VLAN id of the frame as sent; [`UNTAGGED`] for none.
    pub vlan: u16,
    /// Next hop's address.
    pub dst: Mac,
    /// Our address on that port.
    pub src: Mac,
}

impl Adjacency {
    /// A path that forwards nothing.
    #[must_use]
    pub const fn unusable(kind: Kind) -> Adjacency {
        Adjacency {
            kind,
            port: PortId(0),
            vlan: UNTAGGED,
            dst: Mac([0; 6]),
            src: Mac([0; 6]),
        }
    }

    /// As the workers read it.
    #[must_use]
    pub const fn packed(self) -> Path {
        let [a, b, c, d, e, f] = self.dst.0;
        let [g, h, i, j, k, l] = self.src.0;
        let [vlan_low, vlan_high] = self.vlan.to_le_bytes();
        Path {
            head: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            rest: u64::from_le_bytes([
                i,
                j,
                k,
                l,
                vlan_low,
                vlan_high,
                self.port.0,
                self.kind as u8,
            ]),
        }
    }
}

/// An adjacency as two words: the addresses as a frame begins, the rest above them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    head: u64,
    rest: u64,
}

impl Path {
    /// No route.
    pub const NONE: Path = Adjacency::unusable(Kind::NoRoute).packed();

    /// What happens to a frame.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self.rest >> 56 {
            1 => Kind::Forward,
            2 => Kind::Unresolved,
            3 => Kind::Local,
            4 => Kind::Blackhole,
            _ => Kind::NoRoute,
        }
    }

    /// Whether frames are forwarded.
    #[inline]
    #[must_use]
    pub const fn forwards(self) -> bool {
        self.rest >> 56 == Kind::Forward as u64
    }

    /// Egress port.
    #[inline]
    #[must_use]
    pub const fn port(self) -> PortId {
        let [.., port, _] = self.rest.to_le_bytes();
        PortId(port)
    }

    /// VLAN id of the frame as sent; [`UNTAGGED`] for none.
    #[inline]
    #[must_use]
    pub const fn vlan(self) -> u16 {
        let [_, _, _, _, low, high, ..] = self.rest.to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// Whether two paths differ in MAC addresses only.
    #[inline]
    #[must_use]
    pub const fn is_beside(self, other: Path) -> bool {
        self.rest >> 32 == other.rest >> 32
    }

    /// Destination and source MAC address as a frame begins: the first eight octets, and the other four.
    #[inline]
    #[must_use]
    pub const fn addresses(self) -> ([u8; 8], [u8; 4]) {
        let [i, j, k, l, ..] = self.rest.to_le_bytes();
        (self.head.to_le_bytes(), [i, j, k, l])
    }

    /// Field by field.
    #[must_use]
    pub const fn unpacked(self) -> Adjacency {
        let ([a, b, c, d, e, f, g, h], [i, j, k, l]) = self.addresses();
        Adjacency {
            kind: self.kind(),
            port: self.port(),
            vlan: self.vlan(),
            dst: Mac([a, b, c, d, e, f]),
            src: Mac([g, h, i, j, k, l]),
        }
    }
}

/// Index of an adjacency. 0 is "no route".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AdjacencyId(pub u16);

/// Index of a next-hop group. 0 is IPv4's default route's, 1 IPv6's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NextHopGroupId(pub u16);

/// The default route's group: its image value is 0 in both families.
#[must_use]
pub const fn default_group(family: Family) -> NextHopGroupId {
    match family {
        Family::V4 => NextHopGroupId(0),
        Family::V6 => NextHopGroupId(1),
    }
}

#[derive(Debug, Default)]
struct Group {
    /// Distinct members; 1 spares the hash.
    members: AtomicU16,
    buckets: [AtomicU16; BUCKETS],
}

impl Group {
    fn copy_of(&self, other: &Group) {
        for (to, from) in self.buckets.iter().zip(&other.buckets) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.members
            .store(other.members.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn copy(to: &[AtomicU64; 2], from: &[AtomicU64; 2]) {
    for (to, from) in to.iter().zip(from) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// All adjacencies and next-hop groups of one pair of images; shared with every worker.
#[derive(Debug)]
pub struct NextHops {
    adjacencies: Box<[[AtomicU64; 2]]>,
    groups: Box<[Group]>,
}

impl NextHops {
    /// Room for `adjacencies` paths and `groups` groups, at most 65,536 each; all lead to "no route".
    #[must_use]
    pub fn new(adjacencies: usize, groups: usize) -> NextHops {
        NextHops {
            adjacencies: (0..adjacencies.min(1 << 16))
                .map(|_| Default::default())
                .collect(),
            groups: (0..groups.min(1 << 16)).map(|_| Group::default()).collect(),
        }
    }

    /// The path a flow with this hash takes in a group. `hash` is called only when there is a choice.
    #[inline]
    pub fn resolve(&self, group: u32, hash: impl FnOnce() -> u32) -> Path {
        let Some(group) = self.groups.get(group as usize) else {
            return Path::NONE;
        };
        let bucket = match group.members.load(Ordering::Relaxed) {
            0 | 1 => 0,
            _ => hash() as usize % BUCKETS,
        };
        let id = group
            .buckets
            .get(bucket)
            .map_or(0, |id| id.load(Ordering::Relaxed));
        self.adjacency(AdjacencyId(id))
    }

    /// The path of all flows of a group with one member; `None` where the flow decides.
    #[inline]
    #[must_use]
    pub fn only(&self, group: u32) -> Option<Path> {
        let group = self.groups.get(group as usize)?;
        let [first, ..] = &group.buckets;
        let id = AdjacencyId(first.load(Ordering::Relaxed));
        (group.members.load(Ordering::Relaxed) <= 1).then(|| self.adjacency(id))
    }

    /// All paths of a group, repeated as often as they have buckets.
    pub fn paths(&self, group: u32) -> impl Iterator<Item = Adjacency> {
        let buckets = self.groups.get(group as usize).map(|group| &group.buckets);
        buckets.into_iter().flatten().map(|id| {
            self.adjacency(AdjacencyId(id.load(Ordering::Relaxed)))
                .unpacked()
        })
    }

    /// One path.
    #[inline]
    #[must_use]
    pub fn adjacency(&self, id: AdjacencyId) -> Path {
        match self.adjacencies.get(usize::from(id.0)) {
            Some([head, rest]) => Path {
                head: head.load(Ordering::Relaxed),
                rest: rest.load(Ordering::Relaxed),
            },
            None => Path::NONE,
        }
    }

    /// Writes a path, on a pair nobody reads.
    pub(super) fn set_adjacency(&self, id: AdjacencyId, adjacency: Adjacency) {
        if let Some(words) = self.adjacencies.get(usize::from(id.0)) {
            let packed = adjacency.packed();
            for (word, value) in words.iter().zip([packed.head, packed.rest]) {
                word.store(value, Ordering::Relaxed);
            }
        }
    }

    /// Spreads a group's buckets over `members`, on a pair nobody reads; none means "no route".
    pub(super) fn set_group(&self, id: NextHopGroupId, members: &[AdjacencyId]) {
        let Some(group) = self.groups.get(usize::from(id.0)) else {
            return;
        };
        for (bucket, slot) in group.buckets.iter().enumerate() {
            let member = bucket
                .checked_rem(members.len())
                .and_then(|index| members.get(index));
            slot.store(member.map_or(0, |id| id.0), Ordering::Relaxed);
        }
        group.members.store(
            u16::try_from(members.len()).unwrap_or(u16::MAX),
            Ordering::Relaxed,
        );
    }

    /// Makes one path what it is in `other`, on a pair nobody reads.
    pub(super) fn copy_adjacency(&self, other: &NextHops, id: AdjacencyId) {
        let index = usize::from(id.0);
        if let (Some(to), Some(from)) = (self.adjacencies.get(index), other.adjacencies.get(index))
        {
            copy(to, from);
        }
    }

    /// Makes one group what it is in `other`, on a pair nobody reads.
    pub(super) fn copy_group(&self, other: &NextHops, id: NextHopGroupId) {
        let index = usize::from(id.0);
        if let (Some(to), Some(from)) = (self.groups.get(index), other.groups.get(index)) {
            to.copy_of(from);
        }
    }

    /// Makes everything what it is in `other`, on a pair nobody reads.
    pub(super) fn copy_of(&self, other: &NextHops) {
        for (to, from) in self.adjacencies.iter().zip(&other.adjacencies) {
            copy(to, from);
        }
        for (to, from) in self.groups.iter().zip(&other.groups) {
            to.copy_of(from);
        }
    }

    /// How many groups and adjacencies fit.
    pub(super) fn capacity(&self) -> (usize, usize) {
        (self.groups.len(), self.adjacencies.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adjacency_survives_its_two_words() {
        let adjacency = Adjacency {
            kind: Kind::Forward,
            port: PortId(31),
            vlan: 4094,
            dst: Mac([0xfe, 1, 2, 3, 4, 0xff]),
            src: Mac([2, 0, 0, 0, 0, 9]),
        };
        assert_eq!(adjacency.packed().unpacked(), adjacency);
    }

    #[test]
    fn one_member_is_never_hashed_and_several_share_the_buckets() {
        let hops = NextHops::new(8, 4);
        for id in 1..4u16 {
            hops.set_adjacency(
                AdjacencyId(id),
                Adjacency {
                    port: PortId(id as u8),
                    ..Adjacency::unusable(Kind::Forward)
                },
            );
        }
        hops.set_group(NextHopGroupId(1), &[AdjacencyId(2)]);
        assert_eq!(hops.resolve(1, || unreachable!()).port(), PortId(2));
        hops.set_group(
            NextHopGroupId(2),
            &[AdjacencyId(1), AdjacencyId(2), AdjacencyId(3)],
        );
        let mut used = [0; 4];
        for hash in 0..BUCKETS as u32 {
            used[hops.resolve(2, || hash).port().index()] += 1;
        }
        assert_eq!(used, [0, 6, 5, 5]);
        assert_eq!(hops.resolve(0, || 0).kind(), Kind::NoRoute);
        assert_eq!(hops.resolve(99, || 0).kind(), Kind::NoRoute);
    }
}

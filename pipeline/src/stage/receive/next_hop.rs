//! Next-hop cache of a burst: each group of paths, or each path of a group with a choice, is looked up once, and kept while the
//! burst is sent on.

use super::{Mtus, l3_off};
use crate::bits::low16;
use crate::burst::QueueKey;
use crate::route::fib::FibReader;
use crate::route::hops::Choice;
use crate::route::nexthop::{AdjacencyId, Path, UNTAGGED};
use crate::units::Priority;

/// Key of a next hop: a group, or a path that a flow chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HopKey(u32);

/// Flag of a path that a flow chose, above its number.
const CHOSEN: u32 = 1 << 16;

impl HopKey {
    /// Key of no next hop.
    const NONE: HopKey = HopKey(u32::MAX);

    /// Returns the key of a group with one path.
    #[inline(always)]
    pub(super) const fn of_group(group: u32) -> HopKey {
        HopKey(group)
    }

    /// Returns the key of a path of a group with a choice.
    #[inline(always)]
    pub(super) const fn of_path(path: AdjacencyId) -> HopKey {
        HopKey(CHOSEN | path.0 as u32)
    }

    /// Returns the path, and the MTU that its route allows, or 0.
    #[inline]
    fn path(self, fib: &FibReader) -> (Path, u16) {
        if self.0 & CHOSEN == 0 {
            return fib.only_with_mtu(self.0).unwrap_or((Path::NONE, 0));
        }
        fib.with_mtu(AdjacencyId(low16((self.0 & !CHOSEN) as usize)))
    }
}

/// Number of next hops cached at a time.
const KNOWN: usize = 16;

/// Next-hop cache, indexed by the low bits of the key.
#[derive(Debug)]
pub(super) struct Known<'a> {
    fib: &'a FibReader,
    mtus: &'a Mtus,
    hops: [NextHop; KNOWN],
}

impl<'a> Known<'a> {
    /// Returns an empty cache.
    pub(super) const fn new(fib: &'a FibReader, mtus: &'a Mtus) -> Known<'a> {
        Known {
            fib,
            mtus,
            hops: [NextHop::NONE; KNOWN],
        }
    }

    /// Returns the next hop with this key, which is looked up if it is not cached.
    #[inline(always)]
    pub(super) fn of(&mut self, key: HopKey) -> &NextHop {
        let place = key.0 as usize % KNOWN;
        if self.hops.get(place).is_none_or(|hop| hop.key != key) {
            self.learn(key);
        }
        self.hops.get(place).unwrap_or(&NextHop::NONE)
    }

    #[inline(never)]
    fn learn(&mut self, key: HopKey) {
        if let Some(hop) = self.hops.get_mut(key.0 as usize % KNOWN) {
            *hop = NextHop::new(key, key.path(self.fib), self.mtus);
        }
    }
}

/// Returns the largest IP packet in bytes that leaves by a path: that of its port, or less if its route allows less.
#[inline]
pub(crate) fn mtu_of((path, of_route): (Path, u16), mtus: &Mtus) -> u16 {
    let mtu = mtus.get(path.port().index()).copied().unwrap_or(0);
    if of_route == 0 {
        mtu
    } else {
        mtu.min(of_route)
    }
}

/// A path, and the limits it puts on a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextHop {
    /// Egress port, MACs and tag, or the kind of path that does not forward.
    pub(super) path: Path,
    pub(super) key: HopKey,
    /// Largest IP packet in bytes.
    pub(super) mtu: u16,
    /// Length of the longest frame whose header keeps its length, of untagged ones and of tagged ones; 0 if there is none.
    longest: [u16; 2],
    /// Queue of priority 0 at the egress port.
    queues: QueueKey,
}

impl NextHop {
    /// Entry of no key.
    const NONE: NextHop = NextHop {
        path: Path::NONE,
        key: HopKey::NONE,
        mtu: 0,
        longest: [0; 2],
        queues: QueueKey(0),
    };

    #[inline]
    fn new(key: HopKey, (path, of_route): (Path, u16), mtus: &Mtus) -> NextHop {
        let mtu = mtu_of((path, of_route), mtus);
        let longest = |header: usize, keeps: bool| match path.forwards() && keeps {
            true => mtu.saturating_add(low16(header)),
            false => 0,
        };
        let untagged = path.vlan() == UNTAGGED;
        NextHop {
            path,
            key,
            mtu,
            longest: [
                longest(l3_off::<false>(), untagged),
                longest(l3_off::<true>(), !untagged),
            ],
            queues: QueueKey::new(path.port(), Priority::new(0)),
        }
    }

    /// Returns the length of the longest frame that keeps the length of its header, which has a tag if `TAGGED`; 0 if there is
    /// none. A frame is no shorter than header and packet, so every packet beyond the MTU is longer. A frame that only padding or
    /// a trailer makes longer is too; it is then forwarded as one of the frames that are left.
    #[inline(always)]
    pub(super) const fn longest<const TAGGED: bool>(&self) -> u16 {
        let [untagged, tagged] = self.longest;
        if TAGGED { tagged } else { untagged }
    }

    /// Returns the queue of a priority at the egress port.
    #[inline(always)]
    pub(super) const fn queue(&self, priority: Priority) -> QueueKey {
        QueueKey(self.queues.0 | priority.get())
    }
}

/// Way to find the next hop of each packet of a stretch.
pub(super) trait FindHop {
    /// True if there is one next hop.
    const IS_ONE: bool = false;

    /// Returns the next hop of a packet by its group and the hash of its flow; `None` if this is not the way to find it.
    fn find<'a>(
        &'a self,
        known: &'a mut Known<'_>,
        group: u32,
        flow: impl FnOnce() -> u32,
    ) -> Option<&'a NextHop>;
}

/// All packets take the one next hop, which stays in registers.
pub(super) struct ByOne(pub(super) NextHop);

impl FindHop for ByOne {
    const IS_ONE: bool = true;

    #[inline(always)]
    fn find<'a>(
        &'a self,
        _: &'a mut Known<'_>,
        group: u32,
        _: impl FnOnce() -> u32,
    ) -> Option<&'a NextHop> {
        (self.0.key == HopKey::of_group(group)).then_some(&self.0)
    }
}

/// Groups with one path each.
pub(super) struct ByGroup;

impl FindHop for ByGroup {
    #[inline(always)]
    fn find<'a>(
        &'a self,
        known: &'a mut Known<'_>,
        group: u32,
        _: impl FnOnce() -> u32,
    ) -> Option<&'a NextHop> {
        Some(known.of(HopKey::of_group(group)))
    }
}

/// One group, of which each flow chooses a path.
pub(super) struct ByFlow<'a> {
    pub(super) group: u32,
    pub(super) choice: Choice<'a>,
}

impl FindHop for ByFlow<'_> {
    #[inline(always)]
    fn find<'a>(
        &'a self,
        known: &'a mut Known<'_>,
        group: u32,
        flow: impl FnOnce() -> u32,
    ) -> Option<&'a NextHop> {
        if group != self.group {
            return None;
        }
        Some(known.of(HopKey::of_path(self.choice.of(flow()))))
    }
}

//! Next-hop cache of a burst: each group of paths is looked up once, and kept while the burst is sent on.

use super::{Mtus, l3_off};
use crate::bits::low16;
use crate::route::nexthop::{Path, UNTAGGED};

/// Number of next hops cached at a time.
const KNOWN: usize = 8;

/// Next-hop cache, indexed by the low bits of the group.
#[derive(Debug)]
pub(super) struct Known([NextHop; KNOWN]);

impl Known {
    /// Returns an empty cache.
    pub(super) const fn new() -> Known {
        Known([NextHop::NONE; KNOWN])
    }

    /// Returns the entry at a group's index, which may be that of another group.
    #[inline(always)]
    pub(super) fn of(&self, group: u32) -> &NextHop {
        self.0.get(group as usize % KNOWN).unwrap_or(&NextHop::NONE)
    }

    #[inline]
    pub(super) fn keep(&mut self, hop: NextHop) {
        if let Some(place) = self.0.get_mut(hop.group as usize % KNOWN) {
            *place = hop;
        }
    }
}

/// A path, and the limits it puts on a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextHop {
    /// Egress port, MACs and tag, or the kind of path that does not forward.
    pub(super) path: Path,
    /// Group that leads to the path.
    pub(super) group: u32,
    /// Largest IP packet in bytes.
    pub(super) mtu: u16,
    /// Length of the longest frame whose header keeps its length, of untagged ones and of tagged ones; 0 if there is none.
    pub(super) longest: [u16; 2],
    /// True for a group of several paths (ECMP): `path` is not set, and the hash of each flow chooses one.
    pub(super) is_chosen: bool,
}

impl NextHop {
    /// Entry of no group.
    const NONE: NextHop = NextHop {
        path: Path::NONE,
        group: u32::MAX,
        mtu: 0,
        longest: [0; 2],
        is_chosen: false,
    };

    /// Returns the entry of a group whose flows choose their paths.
    pub(super) const fn chosen(group: u32) -> NextHop {
        NextHop {
            group,
            is_chosen: true,
            ..NextHop::NONE
        }
    }

    #[inline]
    pub(super) fn new(group: u32, path: Path, mtus: &Mtus) -> NextHop {
        let mtu = mtus.get(path.port().index()).copied().unwrap_or(0);
        let longest = |header: usize, keeps: bool| match path.forwards() && keeps {
            true => mtu.saturating_add(low16(header)),
            false => 0,
        };
        let untagged = path.vlan() == UNTAGGED;
        NextHop {
            path,
            group,
            mtu,
            longest: [
                longest(l3_off::<false>(), untagged),
                longest(l3_off::<true>(), !untagged),
            ],
            is_chosen: false,
        }
    }
}

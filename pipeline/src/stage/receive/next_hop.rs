//! Next hops as a burst needs them: found once for each group of paths, and kept while the burst is sent on.

use super::Mtus;
use crate::bits::low16;
use crate::route::nexthop::{Path, UNTAGGED};
use crate::wire::ethernet;

/// Next hops known at a time.
const KNOWN: usize = 8;

/// Next hops that were found, by the low bits of their groups.
#[derive(Debug)]
pub(super) struct Known([NextHop; KNOWN]);

impl Known {
    /// None is known.
    pub(super) const fn new() -> Known {
        Known([NextHop::NONE; KNOWN])
    }

    /// What stands where a group's next hop does: that of this group or of another.
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

/// A path and what it asks of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextHop {
    /// Egress port, MACs and tag, or why a packet goes no further.
    pub(super) path: Path,
    /// The group that leads to it.
    pub(super) group: u32,
    /// Largest IP packet.
    pub(super) mtu: u16,
    /// Longest untagged frame that is sent as it is but for addresses and TTL; 0 for none.
    pub(super) longest: u16,
    /// Each flow of the group chooses its own, and this is none of them.
    pub(super) is_chosen: bool,
}

impl NextHop {
    /// Of no group.
    const NONE: NextHop = NextHop {
        path: Path::NONE,
        group: u32::MAX,
        mtu: 0,
        longest: 0,
        is_chosen: false,
    };

    /// Stands for a group whose flows choose.
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
        let plain = path.forwards() && path.vlan() == UNTAGGED;
        NextHop {
            path,
            group,
            mtu,
            longest: if plain {
                mtu.saturating_add(low16(ethernet::HEADER_LEN))
                    .min(u16::MAX - 1)
            } else {
                0
            },
            is_chosen: false,
        }
    }
}

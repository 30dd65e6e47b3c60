//! The first half of an IPv6 destination, and the group it leads to: most packets of a burst go to few networks of at most 64
//! bits.

use crate::bits::high64;
use crate::route::fib::FibReader;

/// The first half of the last address that was looked up, if it alone decides, with its group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Half {
    address: u64,
    group: u32,
}

impl Half {
    /// No half: no packet is forwarded to an address that begins so.
    pub(super) const NONE: Half = Half {
        address: u64::MAX,
        group: 0,
    };

    /// Returns the next-hop group of a destination.
    #[inline(always)]
    pub(super) fn group_of(&mut self, fib: &FibReader, dst: u128) -> u32 {
        if high64(dst) == self.address {
            return self.group;
        }
        let (group, alone) = fib.group_v6(dst);
        if alone {
            *self = Half {
                address: high64(dst),
                group,
            };
        }
        group
    }
}

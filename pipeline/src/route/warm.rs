//! Lookups of a burst's addresses, all together and level by level, before each is looked up by itself.
//!
//! A small table stays in the core's own cache and nothing is done here. With a large one nearly every lookup waits for
//! memory, and a mispredicted branch on its result (a group below, another next hop) keeps the next load from being issued. So
//! the loads of one level are issued for the whole burst, without a branch on what they return, before those of the next.

use std::hint::black_box;
use std::sync::atomic::Ordering;

use arrayvec::ArrayVec;

use super::fib::FibReader;
use super::image::{EXTENDED, Image, ROOT_BITS, STRIDE, load, slot};
use crate::units::BURST;

/// Largest number of routes for which the entries are not prefetched.
pub(super) const FEW: usize = 4_096;

/// Number of levels below the root that the first 64 bits of an address reach.
const LEVELS: u8 = (64 - ROOT_BITS) / STRIDE;

impl FibReader {
    /// Returns true if [`FibReader::warm_v4`] and [`FibReader::warm_v6`] are worthwhile.
    #[inline]
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.fib.large.load(Ordering::Relaxed)
    }

    /// Loads the entries of these IPv4 addresses, of which there may be a burst.
    #[inline]
    pub fn warm_v4(&self, addresses: impl Iterator<Item = u32>) {
        let bits = addresses.map(|address| u64::from(address) << 32);
        black_box(entries(&self.images().v4, bits));
    }

    /// Loads the entries of IPv6 addresses with these first 64 bits, of which there may be a burst; those of longer prefixes are
    /// left to the lookup.
    #[inline]
    pub fn warm_v6(&self, networks: impl Iterator<Item = u64>) {
        black_box(entries(&self.images().v6, networks));
    }
}

/// Returns the last entries that the lookups of these left-aligned bits come to.
fn entries(image: &Image, bits: impl Iterator<Item = u64>) -> ArrayVec<u32, BURST> {
    let mut rests: ArrayVec<u64, BURST> = ArrayVec::new();
    let mut entries: ArrayVec<u32, BURST> = ArrayVec::new();
    let mut deeper = 0;
    for bits in bits.take(BURST) {
        let entry = load(&*image.root, (bits >> (64 - ROOT_BITS)) as usize);
        deeper |= entry;
        entries.push(entry);
        rests.push(bits << ROOT_BITS);
    }
    for _ in 0..LEVELS {
        if deeper & EXTENDED == 0 {
            break;
        }
        deeper = 0;
        for (entry, rest) in entries.iter_mut().zip(&mut rests) {
            // All ones if the entry names a group. Any other lookup loads the first entry of all and keeps its own.
            let names_group = (*entry >> EXTENDED.trailing_zeros()).wrapping_neg();
            let below = slot(*entry, (*rest >> (64 - STRIDE)) as usize);
            let next = load(&image.groups, below & names_group as usize);
            *entry = next & names_group | *entry & !names_group;
            *rest <<= STRIDE;
            deeper |= *entry;
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::nexthop::{Adjacency, Kind};
    use crate::route::prefix::Prefix;
    use crate::route::writer::{RouteCapacity, RouteWriter};
    use crate::units::PortId;
    use proptest::prelude::*;
    use std::net::IpAddr;

    proptest! {
        /// Lookups together end where each one ends, at prefixes of up to 64 bits.
        #[test]
        fn equals_lookups_one_by_one(
            routes in prop::collection::vec((any::<bool>(), 0u64..1 << 12, 8u8..=64), 1..60),
            addresses in prop::collection::vec(0u64..1 << 12, 1..BURST),
        ) {
            // Few distinct bits, near both ends, so that prefixes nest and addresses meet them.
            let spread = |n: u64| (n & 0x3f) << 58 | (n >> 6) << 34 | (n & 0xff) << 24 | n;
            let capacity = RouteCapacity { ipv4_routes: 64, ipv6_routes: 64, adjacencies: 64, groups: 64 };
            let (mut writer, mut readers) = RouteWriter::new(capacity, 1);
            for (is_v4, bits, len) in routes {
                let (address, len) = if is_v4 {
                    (IpAddr::V4(((spread(bits) >> 32) as u32).into()), len.min(32))
                } else {
                    (IpAddr::V6((u128::from(spread(bits)) << 64).into()), len)
                };
                let path = Adjacency { port: PortId(len % 32), ..Adjacency::unusable(Kind::Forward) };
                writer.insert(Prefix::new(address, len).unwrap(), &[path]).unwrap();
            }
            writer.commit();
            let fib = &mut readers[0];
            fib.refresh();
            let images = fib.images();
            let all = |image: &Image| entries(image, addresses.iter().copied().map(spread));
            for (bits, entry) in addresses.iter().zip(all(&images.v4)) {
                prop_assert_eq!(entry & 0xffff, images.v4.lookup_v4((spread(*bits) >> 32) as u32));
            }
            for (bits, entry) in addresses.iter().zip(all(&images.v6)) {
                if entry & EXTENDED == 0 {
                    prop_assert_eq!(entry & 0xffff, images.v6.lookup_v6(u128::from(spread(*bits)) << 64).0);
                }
            }
        }
    }
}

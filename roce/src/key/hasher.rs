//! Hash of flows, seeded by its owner.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use npcc_pipeline::units::PortId;

use super::{FlowKey, is_v4, low32};

/// Hasher used throughout the crate: foldhash, seeded by its owner.
#[derive(Debug, Clone)]
pub struct KeyHasher {
    fold: FixedState,
    /// Seeds of the word hash; each is odd.
    seeds: [u64; 3],
}

impl KeyHasher {
    /// Makes a hasher keyed by `seed`.
    pub fn new(seed: u64) -> KeyHasher {
        let fold = FixedState::with_seed(seed);
        let seeds = [1u64, 2, 3].map(|n| fold.hash_one(n) | 1);
        KeyHasher { fold, seeds }
    }

    /// Hashes a value of any type.
    #[inline]
    pub fn hash<T: Hash>(&self, value: &T) -> u64 {
        self.fold.hash_one(value)
    }

    /// Place of a key's source at a port among `of` places; sources that hash to one place share it.
    pub(crate) fn source(&self, key: &FlowKey, ingress: PortId, of: usize) -> usize {
        low32(self.hash(&(key.src, ingress.0))) as usize % of
    }

    /// Hash of a queue flow's words, in two multiplications if the addresses are IPv4 and four if not. The high
    /// bits are the good ones.
    ///
    /// One multiplication is not enough: numbers that follow one another then give an arithmetic progression, which may
    /// meet few sets. The second puts all bits of the first one's halves, combined, into the high ones.
    #[inline]
    pub(crate) fn of_words(&self, words: &[u64; 5]) -> u64 {
        let [tail, first, second, third, fourth] = *words;
        if is_v4(words) {
            return self.of_pair([tail, first]);
        }
        let [a, b, c] = self.seeds;
        let addresses = multiply(first ^ a, third ^ b) ^ multiply(second ^ c, fourth ^ a);
        multiply(addresses ^ tail, b).wrapping_mul(SPREAD)
    }

    /// Hash of a flow's [pair](super::pair_of). An IPv4 flow's words have the same hash.
    #[inline]
    pub fn of_pair(&self, pair: [u64; 2]) -> u64 {
        self.pairs().hash(pair)
    }

    /// Hasher of pairs alone, to be kept in registers.
    #[inline]
    pub const fn pairs(&self) -> PairHasher {
        let [a, b, _] = self.seeds;
        PairHasher { a, b }
    }
}

/// Hasher of [`KeyHasher::of_pair`] alone.
#[derive(Debug, Clone, Copy)]
pub struct PairHasher {
    a: u64,
    b: u64,
}

impl PairHasher {
    /// Hashes the two words of a key.
    #[inline(always)]
    pub fn hash(self, [tail, addresses]: [u64; 2]) -> u64 {
        multiply(addresses ^ self.a, tail ^ self.b).wrapping_mul(SPREAD)
    }
}

/// 2^64 over the golden ratio, odd.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Folds both halves of a product into one word.
#[inline]
fn multiply(a: u64, b: u64) -> u64 {
    let (low, high) = a.carrying_mul(b, 0);
    low ^ high
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use npcc_pipeline::parse::digest::AddressDigest;
    use npcc_pipeline::units::Priority;

    use super::*;
    use crate::key::{Qpn, QueueFlow};

    /// Makes an address of either family with these last 32 bits.
    fn host(v6: bool, last: u32) -> IpAddr {
        if v6 {
            Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(last)).into()
        } else {
            Ipv4Addr::from(0x0a00_0000 | last).into()
        }
    }

    /// Addresses of an IPv6 flow as they stand in a header.
    fn addresses_of(key: &FlowKey) -> Option<[u8; 32]> {
        let (IpAddr::V6(src), IpAddr::V6(dst)) = (key.src(), key.dst()) else {
            return None;
        };
        let all = src.octets().into_iter().chain(dst.octets());
        all.collect::<Vec<_>>().try_into().ok()
    }

    /// Source, destination and queue pair of flow `n`.
    type Fields = fn(u32) -> [u32; 3];

    /// Flow families as they come in practice: numbers follow one another in one field or in two.
    const FAMILIES: [(&str, Fields); 9] = [
        ("consecutive queue pairs", |n| [1, 0x0201, 0x11 + n]),
        ("every fourth queue pair", |n| [1, 0x0201, n << 2]),
        ("every 64th queue pair", |n| [1, 0x0201, n << 6]),
        ("queue pairs counted in the high octet", |n| {
            [1, 0x0201, (n & 0xff) << 16 | n >> 8]
        }),
        ("consecutive senders", |n| [n, 0x80_0000, 0x11]),
        ("consecutive receivers", |n| [0x80_0000, n, 0x11]),
        ("senders a subnet apart", |n| {
            [(n & 0xff) << 16 | n >> 8, 1, 0x11]
        }),
        ("eight by eight hosts", |n| {
            [n & 7, 0x200 | n >> 3 & 7, n >> 6]
        }),
        ("256 senders to 256 receivers, one queue pair each", |n| {
            [n & 0xff, 0x1_0000 | n >> 8, 0x11]
        }),
    ];

    /// Law: no more flows fail to fit their sets of eight than if sets were drawn by lot, give or take 5 sigma.
    #[test]
    fn flows_that_follow_one_another_crowd_no_more_than_by_chance() {
        const FLOWS: u32 = 1 << 15;
        const SETS_LOG2: u32 = 13;
        // Poisson with mean 4: flows beyond eight of a set, and their square.
        let (mut more, mut square, mut chance) = (0.0, 0.0, (-4.0f64).exp());
        for flows in 0..60u32 {
            let beyond = f64::from(flows.saturating_sub(8));
            more += beyond * chance;
            square += beyond * beyond * chance;
            chance *= 4.0 / f64::from(flows + 1);
        }
        let sets = f64::from(1u32 << SETS_LOG2);
        let (mean, sigma) = (more * sets, ((square - more * more) * sets).sqrt());
        for (name, fields) in FAMILIES {
            for (seed, v6) in [1, 7, 0xdead, 1 << 40]
                .into_iter()
                .zip([false, true].into_iter().cycle())
                .chain([(1, true), (7, false)])
            {
                let (hasher, digest) = (KeyHasher::new(seed), AddressDigest::new(seed + 1));
                let mut sets = vec![0u32; 1 << SETS_LOG2];
                for [src, dst, qpn] in (0..FLOWS).map(fields) {
                    let flow = QueueFlow {
                        key: FlowKey::new(host(v6, src), host(v6, dst), Qpn::new(qpn)),
                        egress: PortId(1),
                        priority: Priority::new(3),
                    };
                    // Three bits choose the slot of the set: see the flow cache.
                    let hash = match addresses_of(&flow.key) {
                        Some(addresses) => hasher.of_pair([flow.words()[0], digest.of(&addresses)]),
                        None => hasher.of_words(&flow.words()),
                    };
                    let set = hash >> 35 & ((1 << SETS_LOG2) - 1);
                    sets[set as usize] += 1;
                }
                let beyond: u32 = sets.iter().map(|flows| flows.saturating_sub(8)).sum();
                assert!(
                    f64::from(beyond) < mean + 5.0 * sigma,
                    "{name}, seed {seed}, IPv6 {v6}: {beyond} beyond eight, by chance {mean:.0} +- {sigma:.0}"
                );
            }
        }
    }
}

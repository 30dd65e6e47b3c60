//! Digest of both addresses of an IPv6 packet in one word, by keys of this process.
//!
//! Law: two different pairs of addresses, chosen without knowledge of the keys, have the same digest with a probability of at
//! most 2^-32. It is NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999): four products of 32-bit words, each word plus
//! its key, added up. A reader by vectors computes it for several packets at once. Comparing the addresses is left to those who
//! must be sure.

use crate::bits::{low32, mix};

/// Keys of the digest, which nobody outside should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressDigest([u64; 4]);

impl AddressDigest {
    /// Returns a digest with keys drawn from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> AddressDigest {
        let first = mix(seed);
        let second = mix(first);
        let third = mix(second);
        AddressDigest([first, second, third, mix(third)])
    }

    /// Returns the keys: two of 32 bits in each word, for the words of the addresses as they are loaded in little-endian order.
    #[inline]
    #[must_use]
    pub const fn keys(&self) -> [u64; 4] {
        self.0
    }

    /// Returns the digest of source and destination, as they stand in the header.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, addresses: &[u8; 32]) -> u64 {
        let (words, _) = addresses.as_chunks::<8>();
        let products = words.iter().zip(self.0).map(|(word, key)| {
            let [a, b] = halves(u64::from_le_bytes(*word));
            let [key_a, key_b] = halves(key);
            u64::from(a.wrapping_add(key_a)) * u64::from(b.wrapping_add(key_b))
        });
        products.fold(0, u64::wrapping_add)
    }
}

/// Returns the low half and the high half.
#[inline(always)]
const fn halves(word: u64) -> [u32; 2] {
    [low32(word), low32(word >> 32)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Addresses that collide under one seed do so by chance: under another they differ.
        #[test]
        fn no_two_pairs_of_addresses_have_one_digest_under_every_seed(
            one in any::<[u8; 32]>(), at in 0usize..32, other in 1u8..=255, seed in any::<u64>(),
        ) {
            let mut changed = one;
            changed[at] ^= other;
            let same = |seed| AddressDigest::new(seed).of(&one) == AddressDigest::new(seed).of(&changed);
            prop_assert!(!same(seed) || !same(seed ^ 1));
        }
    }

    /// An unseeded digest gives its collisions away: here pairs whose products are all zero under the keys of one seed.
    #[test]
    fn addresses_chosen_for_one_seed_spread_under_another() {
        let [known, secret] = [1, 2].map(AddressDigest::new);
        // The first word of each product cancels its key, so that the other word does not count.
        let chosen = |n: u64| {
            let mut all = [0; 32];
            let (words, _) = all.as_chunks_mut::<8>();
            for (word, key) in words.iter_mut().zip(known.keys()) {
                let [key, _] = halves(key);
                *word = (u64::from(key.wrapping_neg()) | n << 32).to_le_bytes();
            }
            all
        };
        let digests = |digest: AddressDigest| {
            let all = (0..1000).map(|n| digest.of(&chosen(n)));
            all.collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!((digests(known), digests(secret)), (1, 1000));
    }
}

//! Division of a table into parts, and sets of parts.

use std::hash::{Hash, Hasher};

/// Number of parts of a table. A table of 65,536 ends has 64 in each, and a digest of all fits into one message.
pub const PARTS: usize = 1024;
/// Numbers of all parts.
pub(super) const ALL: std::ops::Range<u16> = 0..1024;
const _: () = assert!(ALL.end as usize == PARTS);
/// Bits of a word.
const WORD: usize = 64;

/// FNV-1a over what is hashed, finished as in SplitMix64: two boxes compute the same value from the same ends, whatever their versions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fnv(u64);

impl Fnv {
    fn new(seed: u64) -> Self {
        Self(0xcbf2_9ce4_8422_2325 ^ mix(seed))
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        mix(self.0)
    }
}

/// Distributes a number over all values: the finish of SplitMix64.
pub(super) const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns the hash of a value. The machines of both boxes have the same byte order.
pub(super) fn hash(seed: u64, value: &impl Hash) -> u64 {
    let mut hasher = Fnv::new(seed);
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the part of a hash.
pub(super) const fn part_of(hash: u64) -> u16 {
    let [low, high, ..] = hash.to_le_bytes();
    u16::from_le_bytes([low, high]) % ALL.end
}

/// Set of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts([u64; PARTS / WORD]);

impl Parts {
    pub(super) const NONE: Self = Self([0; PARTS / WORD]);
    pub(super) const ALL: Self = Self([u64::MAX; PARTS / WORD]);

    pub(super) fn set(&mut self, part: u16, member: bool) {
        let part = usize::from(part);
        if let Some(word) = self.0.get_mut(part / WORD) {
            let bit = 1 << (part % WORD);
            *word = if member { *word | bit } else { *word & !bit };
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Returns the members in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        ALL.filter(|part| {
            let part = usize::from(*part);
            self.0[part / WORD] >> (part % WORD) & 1 == 1
        })
    }

    /// Returns the lowest member.
    pub(super) fn first(&self) -> Option<u16> {
        self.iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let mut parts = Parts::NONE;
        for part in [3, 64, 1023, 2000] {
            parts.set(part, true);
        }
        assert_eq!(parts.iter().collect::<Vec<_>>(), [3, 64, 1023]);
        parts.set(64, false);
        assert_eq!((parts.first(), parts.len()), (Some(3), 2));
        assert_eq!(Parts::ALL.len(), PARTS);
    }

    /// Both boxes must compute the same, also in a later version.
    #[test]
    fn hashes_stay_as_they_are() {
        assert_eq!(hash(1, &7u32), 0xdea2_9fb1_7a22_2f9f);
    }
}

//! Division of a table into parts, and sets of parts.

use npcc_pipeline::bits::mix;

use crate::octets::Octets;

/// Number of parts of a table. A table of 65,536 ends has 64 in each, and a digest of all fits into one message.
pub const PARTS: usize = 1024;
/// Numbers of all parts.
pub(super) const ALL: std::ops::Range<u16> = 0..1024;
const _: () = assert!(ALL.end as usize == PARTS);
/// Bits of a word.
const WORD: usize = 64;

/// Returns the hash of a value: FNV-1a over its octets, finished as in SplitMix64. Two boxes compute the same from the same ends, whatever
/// their versions and processors.
pub(super) fn hash(seed: u64, value: &impl Octets) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325 ^ mix(seed);
    value.each(&mut |octets| {
        for octet in octets {
            state = (state ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        }
    });
    mix(state)
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
    use std::net::IpAddr;

    use super::*;
    use npcc_api::ends::{End, Transport};

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
        let short = End {
            from: [10, 0, 2, 2].into(),
            to: [10, 0, 1, 2].into(),
            queue_pair: 0x12_3456,
            udp_port: 49_200,
            transport: Transport::Rc,
            first_seen: 1_764_000_000_000_000,
            last_seen: 1_764_000_001_000_000,
            packets: 1000,
            acked_psn: None,
            acked_at: None,
        };
        let long = End {
            from: IpAddr::V6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2].into()),
            to: IpAddr::V6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
            acked_psn: Some(7),
            acked_at: Some(1_764_000_001_000_000),
            ..short
        };
        let hashes = [short, long].map(|end| [hash(1, &end.key()), hash(1, &end)]);
        assert_eq!(
            hashes,
            [
                [0x9741_dc64_683a_df3f, 0x45b7_3d5d_fd39_0b7c],
                [0x34a1_2bed_5d44_6576, 0xea6b_1a68_f21c_8fb2]
            ]
        );
    }
}

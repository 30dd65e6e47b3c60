//! Flow-hash seed, which makes one switch's choice of paths differ from the next one's.
//!
//! Two switches in series with the same hash polarise: the second sees only flows the first has sent its way, and they all
//! fall into the buckets by which the first chose them. So each switch has a seed of its own.

use crate::bits::mix;
use crate::units::Mac;

/// A switch's contribution to the hash of a flow: two switches with different seeds choose independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSeed(u64);

impl FlowSeed {
    /// Returns the seed with this number.
    #[must_use]
    pub const fn new(number: u64) -> FlowSeed {
        FlowSeed(mix(number))
    }

    /// Returns the seed of a switch whose ports have these addresses: the same after a restart, another on any other switch.
    #[must_use]
    pub fn of_addresses(ports: impl IntoIterator<Item = Mac>) -> FlowSeed {
        let word = ports
            .into_iter()
            .fold(0, |word, mac| mix(word ^ mac.to_u64()));
        FlowSeed::new(word)
    }

    /// Returns a word whose bits differ at random between seeds.
    #[inline]
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_neighbouring_numbers_and_addresses_have_little_in_common() {
        let mac = |last| Mac([2, 0, 0, 0, 0, last]);
        let pairs = [
            (FlowSeed::new(0), FlowSeed::new(1)),
            (
                FlowSeed::of_addresses([mac(1), mac(2)]),
                FlowSeed::of_addresses([mac(1), mac(3)]),
            ),
            (
                FlowSeed::of_addresses([mac(1), mac(2)]),
                FlowSeed::of_addresses([mac(2), mac(1)]),
            ),
        ];
        for (one, other) in pairs {
            let differ = (one.word() ^ other.word()).count_ones();
            assert!((16..=48).contains(&differ), "{differ} bits");
        }
    }
}

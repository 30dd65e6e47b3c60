//! Rate limit in frames or bytes a second that is shared out by ingress port and source.
//!
//! Law: a port or source that does not use its part leaves it to the others, and one that sends less than an equal part loses
//! nothing because of others. A port's part is equal to every other port's, however many sources it has.
//!
//! Each source of each port has its own credit, up to a burst. The rate is credited in equal parts to the ports that have room
//! for credit, and each port's part in equal parts to its sources that have. Sources are distinguished by six bits of a seeded
//! hash, so made-up addresses cost no memory: they can take the parts of others on their own port, and of no other.

use std::net::IpAddr;

use crate::bits::low64;
use crate::units::{Nanos, PortId};

/// Number of hash slots for the sources of a port.
const SOURCES: usize = 64;
/// Shortest time between two distributions of credit.
const PERIOD: Nanos = Nanos::from_micros(16);
/// Cost of one unit: the credit that a rate of one a second earns in a second.
const UNIT: u64 = 1_000_000_000;
/// Longest interval in ns that one distribution counts: it keeps the product far from 64 bits at any rate.
const LONGEST: u64 = 1_000_000_000;

/// Sender of a frame, as 64 bits of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source(u64);

impl Source {
    /// Returns the source with this IP address.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Source {
        match address {
            IpAddr::V4(v4) => Source(v4.to_bits().into()),
            IpAddr::V6(v6) => Source::of_words([v6.to_bits() >> 64, v6.to_bits()].map(low64)),
        }
    }

    /// Returns the source whose address has these words, the high one first.
    #[must_use]
    pub const fn of_words([high, low]: [u64; 2]) -> Source {
        Source(high.rotate_left(32) ^ low)
    }

    /// Returns the source whose address has these octets, as an IPv4 or MAC address.
    #[must_use]
    pub fn of_octets(address: &[u8]) -> Source {
        let octets = address.iter();
        Source(octets.fold(0, |word, octet| word << 8 | u64::from(*octet)))
    }

    /// Returns the slot among the sources of a port: from both halves of a product with a secret odd number.
    fn slot(self, seed: u64) -> usize {
        let (low, high) = (self.0 ^ seed).carrying_mul(seed | 1, 0);
        ((low ^ high).wrapping_mul(SPREAD) >> 58) as usize
    }
}

/// Multiplier of the hash: 2^64 over the golden ratio, odd.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Credits of a port's sources.
#[derive(Debug, Clone)]
struct Credits {
    sources: [u64; SOURCES],
    /// Slots that have room for credit, as a mask.
    hungry: u64,
}

impl Credits {
    /// Credits each source that has room with its part, and returns the remainder.
    fn earn(&mut self, mut all: u64, cap: u64) -> u64 {
        loop {
            let part = all / u64::from(self.hungry.count_ones()).max(1);
            if self.hungry == 0 || part == 0 {
                return all;
            }
            let before = self.hungry;
            let mut left = before;
            while left != 0 {
                let n = left.trailing_zeros();
                left &= left - 1;
                if let Some(credit) = self.sources.get_mut(n as usize) {
                    let fits = part.min(cap - *credit);
                    *credit += fits;
                    all -= fits;
                    self.hungry &= !(u64::from(*credit == cap) << n);
                }
            }
            if self.hungry == before {
                return all;
            }
        }
    }
}

/// A rate limit that is shared out.
#[derive(Debug, Clone)]
pub struct Shares {
    rate: u64,
    cap: u64,
    ports: Box<[Credits]>,
    /// Credit earned and not yet shared out.
    pot: u64,
    /// Credit that no source had room for, which the first source in need takes, and its maximum.
    reserve: (u64, u64),
    last: Nanos,
    seed: u64,
}

impl Shares {
    /// Returns a limit of `rate` units a second, with a burst of `burst` units from each source. Units are the caller's:
    /// frames or bytes. `seed` should differ from start to start, so that no sender can aim at another's part.
    #[must_use]
    pub fn new(rate: u64, burst: u64, ports: usize, seed: u64) -> Shares {
        let cap = burst * UNIT;
        let full = Credits {
            sources: [cap; SOURCES],
            hungry: 0,
        };
        Shares {
            rate,
            cap,
            ports: vec![full; ports].into_boxed_slice(),
            pot: 0,
            reserve: (0, 0),
            last: Nanos::ZERO,
            seed,
        }
    }

    /// Keeps up to `units` of credit that no source had room for, for any source that needs more than its own part at once.
    #[must_use]
    pub fn with_reserve(self, units: u64) -> Shares {
        let all = units * UNIT;
        Shares {
            reserve: (all, all),
            ..self
        }
    }

    /// Takes `units` from the part of a source at `port`; returns false if not that much is left. More than a burst is never
    /// left.
    pub fn take(&mut self, (port, source): (PortId, Source), units: u64, now: Nanos) -> bool {
        let elapsed = now.since(self.last);
        if elapsed >= PERIOD {
            self.last = now;
            self.pot += elapsed.0.min(LONGEST) * self.rate;
            self.share_out();
        }
        let Some(port) = self.ports.get_mut(port.index()) else {
            return false;
        };
        let (slot, cost) = (source.slot(self.seed), units * UNIT);
        match port.sources.get_mut(slot) {
            Some(credit) if *credit >= cost => {
                *credit -= cost;
                port.hungry |= 1 << slot;
                true
            }
            _ => {
                let (reserve, _) = &mut self.reserve;
                let is_left = *reserve >= cost;
                *reserve -= if is_left { cost } else { 0 };
                is_left
            }
        }
    }

    /// Credits each port that has room with its part, and again with the remainders of the others.
    fn share_out(&mut self) {
        loop {
            let hungry = |port: &Credits| port.hungry != 0;
            let count = self.ports.iter().filter(|port| hungry(port)).count() as u64;
            if count == 0 {
                // Every source has a full burst.
                let (reserve, most) = self.reserve;
                self.reserve.0 = reserve.saturating_add(self.pot).min(most);
                self.pot = 0;
                return;
            }
            let part = self.pot / count;
            let mut is_one_full = false;
            for port in self.ports.iter_mut().filter(|port| hungry(port)) {
                self.pot -= part - port.earn(part, self.cap);
                is_one_full |= !hungry(port);
            }
            if part == 0 || !is_one_full {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;
    const SEED: u64 = 7;

    /// Burst of a source in frames, as computed from the limit.
    const fn burst(limit: u32) -> u64 {
        let twentieth = limit as u64 / 20;
        if twentieth > 32 { twentieth } else { 32 }
    }

    fn of(limit: u32, ports: usize) -> Shares {
        Shares::new(limit.into(), burst(limit), ports, SEED)
    }

    /// Source with this slot among those of a port.
    fn nth(slot: u64) -> Source {
        let all = (0..).map(Source);
        let mut at = all.filter(|source| source.slot(SEED) as u64 == slot);
        at.next().unwrap()
    }

    /// Sender of `rate` frames a second from `sources` addresses on a port.
    #[derive(Debug, Clone)]
    struct Sender {
        port: u8,
        rate: u64,
        sources: u8,
    }

    /// Frames of each sender that pass in `seconds`, and frames it sent.
    fn passed(limit: u32, senders: &[Sender], seconds: u64) -> Vec<(u64, u64)> {
        let mut shares = of(limit, 4);
        let mut counts = vec![(0, 0); senders.len()];
        let mut sent: Vec<(u64, usize)> = Vec::new();
        for (who, sender) in senders.iter().enumerate() {
            let times = (0..sender.rate * seconds).map(|n| n * SECOND / sender.rate);
            sent.extend(times.map(|at| (at, who)));
        }
        sent.sort_unstable();
        for (at, who) in sent {
            let (sender, count) = (&senders[who], &mut counts[who]);
            let source = nth(count.1 % u64::from(sender.sources));
            let passes = shares.take((PortId(sender.port), source), 1, Nanos(SECOND + at));
            *count = (count.0 + u64::from(passes), count.1 + 1);
        }
        counts
    }

    fn sender(port: u8, rate: u64, sources: u8) -> Sender {
        Sender {
            port,
            rate,
            sources,
        }
    }

    proptest! {
        #![proptest_config(crate::cases::cases(64))]

        /// Whatever arrives from wherever, no more than the rate and a burst of each source pass, a lone sender gets the rate,
        /// and one that sends less than an equal part among the ports, and among its port's sources, loses nothing.
        #[test]
        fn nobody_takes_anothers_part(
            limit in 200u32..20_000,
            floods in prop::collection::vec((0u8..3, 1_000u64..60_000, 1u8..16), 0..4),
        ) {
            let floods: Vec<Sender> = floods.into_iter().map(|(port, rate, sources)| sender(port, rate, sources)).collect();
            // The quiet sender is on a port of its own here; below, on the floods' port, from a source that none of them has.
            let quiet = sender(3, u64::from(limit) / 5, 1);
            let all = [floods.as_slice(), &[quiet]].concat();
            let counts = passed(limit, &all, 1);
            let (got, sent) = counts[floods.len()];
            prop_assert_eq!(got, sent);
            let cap = burst(limit);
            let total: u64 = counts.iter().map(|count| count.0).sum();
            prop_assert!(total <= u64::from(limit) + cap * SOURCES as u64 * 4);
        }
    }

    #[test]
    fn who_is_alone_has_the_rate_and_one_of_two_the_half() {
        let alone = passed(1_000, &[sender(0, 100_000, 1)], 10)[0].0;
        assert!((9_990..=10_060).contains(&alone), "{alone}");
        let counts = passed(1_000, &[sender(0, 100_000, 1), sender(1, 100_000, 15)], 10);
        for (got, _) in &counts {
            assert!((4_900..=5_800).contains(got), "{counts:?}");
        }
        // A small sender leaves the rest to the others.
        let counts = passed(1_000, &[sender(0, 100_000, 1), sender(1, 100, 1)], 10);
        assert_eq!(counts[1].0, counts[1].1);
        assert!((8_990..=9_110).contains(&counts[0].0), "{counts:?}");
    }

    #[test]
    fn sources_of_a_port_share_its_part() {
        let mut shares = of(1_000, 1);
        let (loud_one, quiet_one) = (nth(3), nth(7));
        let (mut loud, mut quiet) = (0, 0);
        for step in 0..100_000 {
            let now = Nanos(SECOND + step * 100_000);
            loud += u64::from(shares.take((PortId(0), loud_one), 1, now));
            if step % 25 == 0 {
                quiet += u64::from(shares.take((PortId(0), quiet_one), 1, now));
            }
        }
        assert_eq!(quiet, 4_000);
        assert!((5_900..=6_150).contains(&loud), "{loud}");
    }

    #[test]
    fn time_that_goes_back_earns_nothing_and_a_long_pause_a_burst() {
        let mut shares = of(1_000, 1);
        let mut passed = |now| {
            (0..1_000)
                .filter(|_| shares.take((PortId(0), Source(0)), 1, Nanos(now)))
                .count()
        };
        assert_eq!(passed(u64::MAX / 2), 50);
        assert_eq!(passed(u64::MAX), 50);
        assert_eq!(passed(5), 0);
    }

    /// Slots depend on the seed, so no sender can choose an address that shares another's part.
    #[test]
    fn hosts_of_a_subnet_have_parts_of_their_own_and_others_with_another_seed() {
        let places = |seed| {
            let hosts = (1..=16u8).map(|host| Source::of_address([10, 0, 1, host].into()));
            hosts.map(|source| source.slot(seed)).collect::<Vec<_>>()
        };
        let mut shared = 0;
        for seed in 0..64 {
            let (these, others) = (
                places(0x1234_5678_9abc_def1u64.wrapping_mul(seed)),
                places(!seed),
            );
            let distinct: std::collections::BTreeSet<_> = these.iter().collect();
            assert!(distinct.len() >= 10, "{these:?}");
            shared += usize::from(these[0] == others[0]);
        }
        assert!(shared < 8, "{shared}");
    }
}

//! A limit of frames a second that is shared out by ingress port and source.
//!
//! Law: what one port or source does not use is the others', and who sends less than an equal part loses nothing by what others
//! send. A port's part is equal to every other port's, however many sources it has.
//!
//! Each source of each port has a credit of its own, up to a burst. What the rate earns goes in equal parts to the ports that have
//! room for credit, and of each in equal parts to its sources that have. Sources are told apart by four bits of a hash, so that made-up
//! addresses cost no memory: they can take the parts of others on their own port, and of no other.

use std::net::IpAddr;

use super::bucket::{FRAME, LONGEST, burst};
use super::layer2::Layer2;
use crate::bits::low64;
use crate::units::{Nanos, PortId};
use crate::wire::ethernet;

/// Sources of a port that are told apart.
const SOURCES: usize = 16;
/// What is earned is shared out so often at most.
const PERIOD: Nanos = Nanos::from_micros(100);

/// The part of a source, by some bits of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source(u8);

impl Source {
    /// The sender of an IP packet.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Source {
        match address {
            IpAddr::V4(v4) => Source::of_bits(v4.to_bits().into()),
            IpAddr::V6(v6) => {
                let [high, low] = [v6.to_bits() >> 64, v6.to_bits()].map(low64);
                Source::of_bits(high ^ low)
            }
        }
    }

    /// The sender of a frame: of its packet, where it is IP, else by its MAC address.
    #[must_use]
    pub fn of_frame(layer2: &Layer2, frame: &[u8]) -> Source {
        let at = |off: usize, len: usize| frame.get(off..off + len).unwrap_or_default();
        let address = match layer2.ethertype {
            ethernet::IPV4 => at(layer2.l3_off + 12, 4),
            ethernet::IPV6 => at(layer2.l3_off + 8, 16),
            _ => at(6, 6),
        };
        let word = |chunk: &[u8]| {
            let octets = chunk.iter();
            octets.fold(0, |word, octet| word << 8 | u64::from(*octet))
        };
        let words = address.chunks(8).map(word);
        Source::of_bits(words.fold(0, |all, word| all ^ word))
    }

    /// The upper bits of a product with the golden ratio's.
    const fn of_bits(bits: u64) -> Source {
        Source((bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u8)
    }
}

/// The credits of a port's sources.
#[derive(Debug, Clone)]
struct Credits {
    sources: [u64; SOURCES],
    /// Those that have room, as a mask.
    hungry: u16,
}

impl Credits {
    /// Gives each source that has room its part; what is left over.
    fn earn(&mut self, mut all: u64, cap: u64) -> u64 {
        loop {
            let part = all / u64::from(self.hungry.count_ones()).max(1);
            if self.hungry == 0 || part == 0 {
                return all;
            }
            let before = self.hungry;
            for (n, credit) in self.sources.iter_mut().enumerate() {
                if before & 1 << n != 0 {
                    let fits = part.min(cap - *credit);
                    *credit += fits;
                    all -= fits;
                    self.hungry &= !(u16::from(*credit == cap) << n);
                }
            }
            if self.hungry == before {
                return all;
            }
        }
    }
}

/// A limit that is shared out.
#[derive(Debug, Clone)]
pub struct Shares {
    rate: u64,
    cap: u64,
    ports: Box<[Credits]>,
    /// Earned, and not yet shared out.
    pot: u64,
    last: Nanos,
}

impl Shares {
    /// `rate` frames a second by so many ports; up to a twentieth of it, and 32 at least, come at once from each source.
    #[must_use]
    pub fn new(rate: u32, ports: usize) -> Shares {
        let cap = burst(rate.into());
        let full = Credits {
            sources: [cap; SOURCES],
            hungry: 0,
        };
        Shares {
            rate: rate.into(),
            cap,
            ports: vec![full; ports].into_boxed_slice(),
            pot: 0,
            last: Nanos::ZERO,
        }
    }

    /// Whether one more frame of a source may pass now that came in by `port`; it is paid for then.
    pub fn take(&mut self, port: PortId, source: Source, now: Nanos) -> bool {
        let elapsed = now.since(self.last);
        if elapsed >= PERIOD {
            self.last = now;
            self.pot += elapsed.0.min(LONGEST) * self.rate;
            self.share_out();
        }
        let Some(port) = self.ports.get_mut(port.index()) else {
            return false;
        };
        let slot = usize::from(source.0);
        let Some(credit) = port
            .sources
            .get_mut(slot)
            .filter(|credit| **credit >= FRAME)
        else {
            return false;
        };
        *credit -= FRAME;
        port.hungry |= 1 << slot;
        true
    }

    /// Gives each port that has room its part, and again what others of them had no room for.
    fn share_out(&mut self) {
        loop {
            let hungry = |port: &Credits| port.hungry != 0;
            let count = self.ports.iter().filter(|port| hungry(port)).count() as u64;
            if count == 0 {
                // Everybody has what may be saved up.
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

    /// One that sends `rate` frames a second from `sources` addresses by a port.
    #[derive(Debug, Clone)]
    struct Sender {
        port: u8,
        rate: u64,
        sources: u8,
    }

    /// Frames of each sender that pass in `seconds`, and that were sent.
    fn passed(limit: u32, senders: &[Sender], seconds: u64) -> Vec<(u64, u64)> {
        let mut shares = Shares::new(limit, 4);
        let mut counts = vec![(0, 0); senders.len()];
        let mut sent: Vec<(u64, usize)> = Vec::new();
        for (who, sender) in senders.iter().enumerate() {
            let times = (0..sender.rate * seconds).map(|n| n * SECOND / sender.rate);
            sent.extend(times.map(|at| (at, who)));
        }
        sent.sort_unstable();
        for (at, who) in sent {
            let (sender, count) = (&senders[who], &mut counts[who]);
            let source = Source(count.1 as u8 % sender.sources);
            let passes = shares.take(PortId(sender.port), source, Nanos(SECOND + at));
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
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever comes from wherever: no more than the rate and a burst of each source pass, who is alone has the rate, and who
        /// sends less than an equal part of the ports, and on his of the sources, loses nothing.
        #[test]
        fn nobody_takes_anothers_part(
            limit in 200u32..20_000,
            floods in prop::collection::vec((0u8..3, 1_000u64..60_000, 1u8..16), 0..4),
        ) {
            let floods: Vec<Sender> = floods.into_iter().map(|(port, rate, sources)| sender(port, rate, sources)).collect();
            // By a port of its own, and, below, by that of the floods from a source that none of them has.
            let quiet = sender(3, u64::from(limit) / 5, 1);
            let all = [floods.as_slice(), &[quiet]].concat();
            let counts = passed(limit, &all, 1);
            let (got, sent) = counts[floods.len()];
            prop_assert_eq!(got, sent);
            let cap = burst(limit.into()) / FRAME;
            let total: u64 = counts.iter().map(|count| count.0).sum();
            prop_assert!(total <= u64::from(limit) + cap * 16 * 4);
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
        // What a small one leaves is the others'.
        let counts = passed(1_000, &[sender(0, 100_000, 1), sender(1, 100, 1)], 10);
        assert_eq!(counts[1].0, counts[1].1);
        assert!((8_990..=9_110).contains(&counts[0].0), "{counts:?}");
    }

    #[test]
    fn sources_of_a_port_share_its_part() {
        let mut shares = Shares::new(1_000, 1);
        let (mut loud, mut quiet) = (0, 0);
        for step in 0..100_000 {
            let now = Nanos(SECOND + step * 100_000);
            loud += u64::from(shares.take(PortId(0), Source(3), now));
            if step % 25 == 0 {
                quiet += u64::from(shares.take(PortId(0), Source(7), now));
            }
        }
        assert_eq!(quiet, 4_000);
        assert!((5_900..=6_150).contains(&loud), "{loud}");
    }

    #[test]
    fn time_that_goes_back_earns_nothing_and_a_long_pause_a_burst() {
        let mut shares = Shares::new(1_000, 1);
        let mut passed = |now| {
            (0..1_000)
                .filter(|_| shares.take(PortId(0), Source(0), Nanos(now)))
                .count()
        };
        assert_eq!(passed(u64::MAX / 2), 50);
        assert_eq!(passed(u64::MAX), 50);
        assert_eq!(passed(5), 0);
    }

    #[test]
    fn hosts_of_a_subnet_are_told_apart() {
        let hosts = (1..=16u8).map(|host| Source::of_address([10, 0, 1, host].into()));
        let mut parts: Vec<u8> = hosts.map(|source| source.0).collect();
        parts.sort_unstable();
        parts.dedup();
        assert!(parts.len() >= 10, "{parts:?}");
    }
}

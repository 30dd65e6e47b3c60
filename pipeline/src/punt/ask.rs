//! Questions for the MAC address of a next hop: the kernel resolves, and its neighbours are ours.
//!
//! Law: a destination is asked for again only after a while, so that one that many frames go to does not take what the others
//! ask by.

use std::net::IpAddr;

use rtrb::Producer;

use super::bucket::Bucket;
use crate::units::{Nanos, PortId};

/// A packet's next hop has no MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The port it leads to.
    pub port: PortId,
    /// The VLAN there; 0 without a tag.
    pub vlan: u16,
    /// The packet's destination: who knows the routes finds the next hop by it, which is this address itself on a connected subnet.
    pub destination: IpAddr,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It is on its way.
    Sent,
    /// The same was asked a moment ago.
    Lately,
    /// Too many are asked.
    OverRate,
    /// Too many wait.
    Full,
}

/// Destinations that are remembered.
const KNOWN: usize = 1024;
/// How long one is not asked for again.
const AGAIN: Nanos = Nanos::from_millis(200);
/// Questions on the way at a time.
pub(super) const RING: usize = 1024;

/// Asks, and remembers what.
#[derive(Debug)]
pub(super) struct Asker {
    ring: Producer<Ask>,
    bucket: Bucket,
    /// By some bits of the destination: what was asked for there last, and until when it is not asked again.
    known: Box<[(u128, Nanos)]>,
}

impl Asker {
    pub(super) fn new(ring: Producer<Ask>, rate: u32) -> Asker {
        Asker {
            ring,
            bucket: Bucket::new(rate),
            known: vec![(0, Nanos::ZERO); KNOWN].into_boxed_slice(),
        }
    }

    pub(super) fn ask(&mut self, ask: Ask, now: Nanos) -> Asked {
        let word = match ask.destination {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let place = (word ^ word >> 64 ^ word >> 10) as usize % KNOWN;
        let Some(known) = self.known.get_mut(place) else {
            return Asked::Full;
        };
        if known.0 == word && now < known.1 {
            return Asked::Lately;
        }
        if !self.bucket.take(now) {
            return Asked::OverRate;
        }
        if self.ring.push(ask).is_err() {
            return Asked::Full;
        }
        *known = (word, now + AGAIN);
        Asked::Sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrb::RingBuffer;

    fn of(text: &str) -> Ask {
        Ask {
            port: PortId(1),
            vlan: 0,
            destination: text.parse().unwrap(),
        }
    }

    #[test]
    fn one_destination_is_asked_for_now_and_then_and_others_meanwhile() {
        let (ring, mut asked) = RingBuffer::new(RING);
        let mut asker = Asker::new(ring, 1_000);
        assert_eq!(asker.ask(of("10.0.3.9"), Nanos(5)), Asked::Sent);
        for step in 0..1_000 {
            let now = Nanos(5 + step);
            assert_eq!(asker.ask(of("10.0.3.9"), now), Asked::Lately);
        }
        assert_eq!(asker.ask(of("2001:db8::9"), Nanos(6)), Asked::Sent);
        assert_eq!(asker.ask(of("10.0.3.9"), Nanos(5) + AGAIN), Asked::Sent);
        let all = std::iter::from_fn(|| asked.pop().ok());
        assert_eq!(
            all.collect::<Vec<_>>(),
            [of("10.0.3.9"), of("2001:db8::9"), of("10.0.3.9")]
        );
    }

    #[test]
    fn a_scan_is_held_to_the_rate() {
        let (ring, _asked) = RingBuffer::new(RING);
        let mut asker = Asker::new(ring, 1_000);
        let mut sent = 0;
        for host in 0..50_000u32 {
            let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + host);
            let ask = Ask {
                destination: address.into(),
                ..of("10.0.0.1")
            };
            sent += usize::from(asker.ask(ask, Nanos(u64::from(host) * 1_000)) == Asked::Sent);
        }
        assert!(
            (90..=101).contains(&sent),
            "{sent}: 50 at once and 50 in 50 ms"
        );
    }
}

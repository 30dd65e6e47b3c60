//! Requests to the kernel to resolve the MAC address of a next hop; its neighbours become ours.
//!
//! Law: the same destination is requested again only after a while, so that one to which many frames go does not use up the
//! rate of the others.

use std::net::IpAddr;

use rtrb::Producer;

use crate::token_bucket::TokenBucket;
use crate::units::{Nanos, PortId};

/// Request to resolve the next hop of a packet, which has no MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Port the next hop is on.
    pub port: PortId,
    /// VLAN the next hop is on; 0 without a tag.
    pub vlan: u16,
    /// Destination of the packet: the kernel, which knows the routes, finds the next hop by it. On a connected subnet it is
    /// the next hop itself.
    pub destination: IpAddr,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskOutcome {
    /// Request is queued.
    Sent,
    /// Request suppressed: the same one was made within the last 200 ms.
    Lately,
    /// Request suppressed: the rate limit is reached.
    OverRate,
    /// Request suppressed: the queue is full.
    Full,
}

/// Number of destinations that are remembered.
const KNOWN: usize = 1024;
/// Time for which the same destination is not requested again.
const AGAIN: Nanos = Nanos::from_millis(200);
/// Capacity of the queue of requests.
pub(super) const RING: usize = 1024;

/// Source of requests, with a memory of recent ones.
#[derive(Debug)]
pub(super) struct Asker {
    ring: Producer<Ask>,
    bucket: TokenBucket,
    /// Recent requests, by some bits of the destination: the last destination requested there, and the time until which it is
    /// not requested again.
    known: Box<[(u128, Nanos)]>,
}

/// Returns the largest burst in frames that is saved up at `rate` frames a second: a twentieth of a second's, and at least 32.
pub(super) fn burst(rate: u32) -> u64 {
    u64::from(rate / 20).max(32)
}

impl Asker {
    pub(super) fn new(ring: Producer<Ask>, rate: u32) -> Asker {
        Asker {
            ring,
            bucket: TokenBucket::new(rate.into(), burst(rate)),
            known: vec![(0, Nanos::ZERO); KNOWN].into_boxed_slice(),
        }
    }

    pub(super) fn ask(&mut self, ask: Ask, now: Nanos) -> AskOutcome {
        let word = match ask.destination {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let place = (word ^ word >> 64 ^ word >> 10) as usize % KNOWN;
        let Some(known) = self.known.get_mut(place) else {
            return AskOutcome::Full;
        };
        if known.0 == word && now < known.1 {
            return AskOutcome::Lately;
        }
        if !self.bucket.take(now, 1) {
            return AskOutcome::OverRate;
        }
        if self.ring.push(ask).is_err() {
            return AskOutcome::Full;
        }
        *known = (word, now + AGAIN);
        AskOutcome::Sent
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
        assert_eq!(asker.ask(of("10.0.3.9"), Nanos(5)), AskOutcome::Sent);
        for step in 0..1_000 {
            let now = Nanos(5 + step);
            assert_eq!(asker.ask(of("10.0.3.9"), now), AskOutcome::Lately);
        }
        assert_eq!(asker.ask(of("2001:db8::9"), Nanos(6)), AskOutcome::Sent);
        assert_eq!(
            asker.ask(of("10.0.3.9"), Nanos(5) + AGAIN),
            AskOutcome::Sent
        );
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
            sent += usize::from(asker.ask(ask, Nanos(u64::from(host) * 1_000)) == AskOutcome::Sent);
        }
        assert!(
            (90..=101).contains(&sent),
            "{sent}: 50 at once and 50 in 50 ms"
        );
    }
}

//! Sequence numbers lately sent to an endpoint, and an index to find endpoints by number: the store of [`super::super::senders`].

use npcc_pipeline::units::Nanos;

use crate::key::{KeyHasher, low32};
use crate::links::{Links, NONE};
use crate::pair::pair_state::Direction;
use crate::sample::{PacketSample, SlotRef};

/// Largest distance at which two sequence numbers may be of one connection, where it is not known which numbers are in flight: no queue pair has as
/// many in flight.
pub(in crate::pair) const NEAR: u32 = 1 << 16;
/// Limit below which a first number may be a count from 0.
pub(in crate::pair) const SMALL: u32 = 1 << 16;
/// Time within which a reply comes after its request.
const FLIGHT: Nanos = Nanos::from_millis(20);
/// Number of packets by which the samples of both directions may be apart.
const SLACK: u32 = 16;
/// Log2 of the numbers in a bucket: no endpoint goes further between two of its records, which are 65,536 packets
/// apart at most (or 10 ms, with few flows).
const BUCKET: u32 = 17;
pub(in crate::pair) const MASK: u32 = (1 << 24) - 1;

/// Distance of two sequence numbers, either way.
pub(in crate::pair) const fn distance(a: u32, b: u32) -> u32 {
    let forth = a.wrapping_sub(b) & MASK;
    let back = b.wrapping_sub(a) & MASK;
    if forth < back { forth } else { back }
}

/// Distance by which requests sent again go back at most.
const BACK: u32 = 1 << 18;

/// Returns true if requests of one connection can go from `last` to `psn` with this many of its packets between, none of them a
/// READ.
pub(in crate::pair) const fn follows(last: u32, psn: u32, packets: u32) -> bool {
    let forth = psn.wrapping_sub(last) & MASK;
    let back = last.wrapping_sub(psn) & MASK;
    forth <= NEAR.saturating_add(packets) || back <= BACK
}

/// Properties of the packets of one connection's endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// UDP source port of the packets.
    pub(in crate::pair) port: u16,
    /// Number of the latest request ([`NONE`] for none), and the endpoint's packet count at that time.
    pub(in crate::pair) last: u32,
    pub(in crate::pair) packets: u32,
}

impl Fingerprint {
    /// Returns true if a packet continues them; `request`: its sequence number, if it is one, and the endpoint's packet count.
    pub(in crate::pair) fn is_continued(&self, port: u16, request: Option<(u32, u32)>) -> bool {
        let counts_on = |(psn, packets): (u32, u32)| {
            self.last == NONE || follows(self.last, psn, packets.wrapping_sub(self.packets))
        };
        self.port == port && request.is_none_or(counts_on)
    }
}

/// Sequence numbers of requests to one endpoint.
#[derive(Debug, Clone, Copy)]
pub(in crate::pair) struct SentPsns {
    /// First and last number shown; [`NONE`] for none.
    pub(in crate::pair) first: u32,
    pub(in crate::pair) last: u32,
    since: Nanos,
    /// Time at which `newer` was seen.
    newer_at: Nanos,
    /// Number at `newer_at`, and a number from at least one [`FLIGHT`] before it (`older`).
    newer: u32,
    older: u32,
    /// Slot in which the worker keeps the present number; `reader` is [`NONE`] if there is none.
    pub(in crate::pair) slot: SlotRef,
    pub(in crate::pair) reader: u32,
    /// Packet count of the endpoint at the last number shown.
    pub(in crate::pair) packets: u32,
    /// Bucket of the endpoint, and its neighbours there.
    pub(in crate::pair) bucket: Option<PsnBucket>,
    pub(in crate::pair) links: Links,
}

const _: () = assert!(size_of::<SentPsns>() <= 64);

/// Bucket of one direction between two addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::pair) struct PsnBucket {
    pair: u32,
    up: bool,
    range: u8,
}

impl PsnBucket {
    pub(in crate::pair) fn of(pair: u32, direction: Direction, psn: u32) -> PsnBucket {
        let [range, ..] = ((psn & MASK) >> BUCKET).to_le_bytes();
        PsnBucket {
            pair,
            up: direction == Direction::Up,
            range,
        }
    }

    /// Bucket `steps` further on, wrapping around.
    pub(in crate::pair) fn further(self, steps: u8) -> PsnBucket {
        const LAST: u8 = ((1u32 << (24 - BUCKET)) - 1).to_le_bytes()[0];
        PsnBucket {
            range: self.range.wrapping_add(steps) & LAST,
            ..self
        }
    }
}

impl SentPsns {
    pub(in crate::pair) const fn new() -> SentPsns {
        SentPsns {
            first: NONE,
            last: NONE,
            since: Nanos::ZERO,
            newer_at: Nanos::ZERO,
            newer: 0,
            older: 0,
            slot: SlotRef::NONE,
            reader: NONE,
            packets: 0,
            bucket: None,
            links: Links::NONE,
        }
    }

    pub(in crate::pair) fn see(&mut self, record: &PacketSample, reader: usize) {
        let (now, psn) = (record.time, record.psn);
        if self.first == NONE {
            self.first = psn;
        }
        if self.last == NONE {
            self.since = now;
            (self.newer_at, self.newer, self.older) = (now, psn, psn);
        } else if now.since(self.newer_at) >= FLIGHT {
            (self.older, self.newer) = (self.newer, psn);
            self.newer_at = now;
        }
        self.last = psn;
        self.slot = record.slot;
        self.reader = u32::try_from(reader).unwrap_or(NONE);
    }

    /// Returns true if everything in flight at this moment was seen.
    pub(in crate::pair) fn is_known(&self, now: Nanos) -> bool {
        now.since(self.since) >= FLIGHT
    }

    /// Returns true if a reply at this moment can have this number, when the latest request has `present`.
    pub(in crate::pair) fn holds(&self, present: u32, psn: u32, now: Nanos) -> bool {
        if !self.is_known(now) {
            return distance(present, psn) <= NEAR;
        }
        let (forth, back) = (
            present.wrapping_sub(self.older) & MASK,
            self.older.wrapping_sub(present) & MASK,
        );
        // Requests sent again go back.
        let (from, span) = if forth <= back {
            (self.older, forth)
        } else {
            (present, back)
        };
        psn.wrapping_sub(from).wrapping_add(SLACK) & MASK <= span + 2 * SLACK
    }
}

/// Index of endpoints by their number.
#[derive(Debug)]
pub(in crate::pair) struct PsnIndex {
    heads: Box<[u32]>,
    hasher: KeyHasher,
    /// Number of endpoints that may still be looked at before the next tick.
    pub(in crate::pair) steps: usize,
}

impl PsnIndex {
    pub(in crate::pair) fn new(capacity: usize, seed: u64) -> PsnIndex {
        PsnIndex {
            heads: vec![NONE; capacity.max(1).next_power_of_two()].into_boxed_slice(),
            hasher: KeyHasher::new(seed),
            steps: usize::MAX,
        }
    }

    fn slot(&self, bucket: PsnBucket) -> usize {
        low32(self.hasher.hash(&bucket)) as usize & (self.heads.len() - 1)
    }

    pub(in crate::pair) fn head(&self, bucket: PsnBucket) -> u32 {
        self.heads.get(self.slot(bucket)).copied().unwrap_or(NONE)
    }

    pub(in crate::pair) fn set_head(&mut self, bucket: PsnBucket, endpoint: u32) -> u32 {
        let slot = self.slot(bucket);
        let head = self.heads.get_mut(slot);
        head.map_or(NONE, |head| std::mem::replace(head, endpoint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_wraps() {
        assert_eq!(distance(5, MASK), 6);
        assert_eq!(distance(MASK, 5), 6);
        assert_eq!(distance(0, 1 << 23), 1 << 23);
    }

    #[test]
    fn psns_in_flight_are_those_sent_in_the_last_twenty_milliseconds() {
        let ms = Nanos::from_millis;
        let mut sent = SentPsns::new();
        (sent.first, sent.since) = (MASK - 9, ms(1));
        (sent.older, sent.newer, sent.newer_at) = (MASK - 9, MASK - 9, ms(1));
        // Seen for a short time: the numbers in flight before are not known.
        assert!(sent.holds(90, 60_000, ms(2)) && !sent.holds(90, 70_000, ms(2)));
        for (psn, held) in [
            (MASK - 9, true),
            (90, true),
            (0, true),
            (MASK - 40, false),
            (120, false),
        ] {
            assert_eq!(sent.holds(90, psn, ms(30)), held, "{psn}");
        }
        // Sent again from 40 before the oldest.
        let back = (MASK - 9) - 40;
        assert!(sent.holds(back, back + 20, ms(30)) && !sent.holds(back, 60, ms(30)));
    }
}

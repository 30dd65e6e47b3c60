//! Which end's requests a sequence number can be one of: what every end has sent lately, and an index to find it by.
//!
//! Law: an end that may have sent a number is never passed over. What it has in flight lies between its number of 20 to 40 ms
//! ago (more than a round trip of 2,000 km) and its present one, which the worker's flow cache has of every packet; while it
//! has been seen for less than that, within [`NEAR`] of its present one.
//!
//! Numbers begin anywhere, so a thousand connections lie apart from each other, and of those at random few are near. Where
//! more are near than so, they began together (NCCL begins all at 0) or follow another rule, and nothing is concluded.
//! Work is bounded: ends are kept in buckets by their number, and only three buckets are looked into.

use npcc_pipeline::units::Nanos;

use super::ends::Ends;
use super::pair_state::{Direction, PairKey};
use crate::key::{KeyHasher, low32};
use crate::links::{Links, NONE, link, unlink};
use crate::sample::{Record, SlotRef};

/// Ends looked at for one number, at most.
const MOST: usize = 192;
/// One in so many ends may be near by chance: four times as many as there are when numbers are random.
const CROWD: u32 = 32;
/// How far two numbers are apart for one not to be taken for the other, where no more is known: more than any queue pair has
/// in flight.
pub(super) const NEAR: u32 = 1 << 16;
/// A reply comes within this time of its request.
const FLIGHT: Nanos = Nanos::from_millis(20);
/// Packets by which what is shown of both directions may be apart.
const SLACK: u32 = 16;
/// Numbers in a bucket, as a power of two: no end goes further between two of its records, which are 65,536 packets
/// apart at most (or 10 ms, of few flows).
const BUCKET: u32 = 17;
pub(super) const MASK: u32 = (1 << 24) - 1;

/// How far apart two numbers are, either way.
pub(super) const fn distance(a: u32, b: u32) -> u32 {
    let forth = a.wrapping_sub(b) & MASK;
    let back = b.wrapping_sub(a) & MASK;
    if forth < back { forth } else { back }
}

/// What is known of the numbers of requests to one end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    /// The first and the last shown; [`NONE`] for none.
    pub(super) first: u32,
    last: u32,
    since: Nanos,
    /// When `newer` was.
    newer_at: Nanos,
    /// Numbers of a while ago: at least one and at least two flights.
    newer: u32,
    older: u32,
    /// Where the worker has the present one; reader [`NONE`] for nowhere.
    slot: SlotRef,
    reader: u32,
    /// Its bucket, and its neighbours there.
    place: Option<Place>,
    links: Links,
}

const _: () = assert!(size_of::<Sent>() <= 64);

/// A bucket: of one direction between two addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    pair: u32,
    up: bool,
    bucket: u8,
}

impl Place {
    fn of(pair: u32, direction: Direction, number: u32) -> Place {
        let [bucket, ..] = ((number & MASK) >> BUCKET).to_le_bytes();
        Place {
            pair,
            up: direction == Direction::Up,
            bucket,
        }
    }

    /// The bucket so many further.
    fn further(self, steps: u8) -> Place {
        const LAST: u8 = ((1u32 << (24 - BUCKET)) - 1).to_le_bytes()[0];
        Place {
            bucket: self.bucket.wrapping_add(steps) & LAST,
            ..self
        }
    }
}

impl Sent {
    pub(super) const fn new() -> Sent {
        Sent {
            first: NONE,
            last: NONE,
            since: Nanos::ZERO,
            newer_at: Nanos::ZERO,
            newer: 0,
            older: 0,
            slot: SlotRef::NONE,
            reader: NONE,
            place: None,
            links: Links::NONE,
        }
    }

    fn see(&mut self, record: &Record, reader: usize) {
        let (now, number) = (record.time, record.psn);
        if self.first == NONE {
            (self.first, self.since) = (number, now);
            (self.newer_at, self.newer, self.older) = (now, number, number);
        } else if now.since(self.newer_at) >= FLIGHT {
            (self.older, self.newer) = (self.newer, number);
            self.newer_at = now;
        }
        self.last = number;
        self.slot = record.slot;
        self.reader = u32::try_from(reader).unwrap_or(NONE);
    }

    /// Whether a reply of this moment can have this number, when the latest request has `present`.
    fn holds(&self, present: u32, number: u32, now: Nanos) -> bool {
        if now.since(self.since) < FLIGHT {
            return distance(present, number) <= NEAR;
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
        number.wrapping_sub(from).wrapping_add(SLACK) & MASK <= span + 2 * SLACK
    }
}

/// Who can have sent a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Senders {
    /// Several, or it cannot be told.
    Unknown,
    /// Nobody seen.
    Nobody,
    /// This end alone.
    One(u32),
}

/// Ends by their number.
#[derive(Debug)]
pub(super) struct NumberIndex {
    heads: Box<[u32]>,
    hasher: KeyHasher,
    /// Ends that may still be looked at before the next tick.
    pub(super) steps: usize,
}

impl NumberIndex {
    pub(super) fn new(capacity: usize, seed: u64) -> NumberIndex {
        NumberIndex {
            heads: vec![NONE; capacity.max(1).next_power_of_two()].into_boxed_slice(),
            hasher: KeyHasher::new(seed),
            steps: usize::MAX,
        }
    }

    fn bucket(&self, place: Place) -> usize {
        low32(self.hasher.hash(&place)) as usize & (self.heads.len() - 1)
    }

    fn head(&self, place: Place) -> u32 {
        self.heads.get(self.bucket(place)).copied().unwrap_or(NONE)
    }

    fn set_head(&mut self, place: Place, end: u32) -> u32 {
        let bucket = self.bucket(place);
        let head = self.heads.get_mut(bucket);
        head.map_or(NONE, |head| std::mem::replace(head, end))
    }
}

impl Ends {
    /// Takes in the number of a request to `end`.
    pub(super) fn see_number(&mut self, end: u32, record: &Record, reader: usize) {
        let Some(state) = self.end_mut(end) else {
            return;
        };
        state.sent.see(record, reader);
        let (_, direction) = PairKey::of(&record.key);
        let place = Place::of(state.pair, direction, record.psn);
        if state.sent.place == Some(place) {
            return;
        }
        self.leave_place(end);
        let between = Links {
            previous: NONE,
            next: self.numbers.set_head(place, end),
        };
        link(&mut self.ends, |end| &mut end.sent.links, end, between);
        if let Some(state) = self.end_mut(end) {
            state.sent.place = Some(place);
        }
    }

    /// Forgets what was sent to an end.
    pub(super) fn forget_numbers(&mut self, end: u32) {
        self.leave_place(end);
        if let Some(state) = self.end_mut(end) {
            state.sent = Sent::new();
        }
    }

    fn leave_place(&mut self, end: u32) {
        let Some(state) = self.end_mut(end) else {
            return;
        };
        let Some(place) = state.sent.place.take() else {
            return;
        };
        let between = unlink(&mut self.ends, |end| &mut end.sent.links, end);
        if between.previous == NONE {
            self.numbers.set_head(place, between.next);
        }
    }

    /// Where the worker has the present number of requests to an end.
    pub(super) fn request_slot(&self, end: u32) -> Option<(usize, SlotRef)> {
        let sent = &self.end(end)?.sent;
        (sent.reader != NONE).then_some((sent.reader as usize, sent.slot))
    }

    /// The present number of requests to an end.
    pub(super) fn number(
        &self,
        end: u32,
        live: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> Option<u32> {
        let (reader, slot) = self.request_slot(end)?;
        live(reader, slot).or_else(|| Some(self.end(end)?.sent.last))
    }

    /// Whose request a reply to `end` with this number answers.
    pub(super) fn senders(
        &mut self,
        end: u32,
        number: u32,
        now: Nanos,
        live: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> Senders {
        let (Some(state), Some(key)) = (self.end(end), self.key(end)) else {
            return Senders::Unknown;
        };
        let (_, direction) = PairKey::of(&key);
        let place = Place::of(state.pair, direction.back(), number);
        let allowed = self
            .opposite_side(end)
            .map_or(0, |side| side.ends.len / CROWD)
            + 1;
        let (mut looked, mut near, mut found) = (0, 0, Senders::Nobody);
        for further in [0, 1, u8::MAX] {
            let place = place.further(further);
            let mut at = self.numbers.head(place);
            while let Some(state) = self.end(at) {
                looked += 1;
                if looked > MOST.min(self.numbers.steps) {
                    self.numbers.steps = self.numbers.steps.saturating_sub(looked);
                    return Senders::Unknown;
                }
                let (sent, index) = (&state.sent, at);
                at = sent.links.next;
                if sent.place != Some(place) {
                    continue;
                }
                let Some(present) = self.number(index, live) else {
                    continue;
                };
                near += u32::from(distance(present, number) <= NEAR);
                if sent.holds(present, number, now) {
                    found = match found {
                        Senders::Nobody => Senders::One(index),
                        _ => Senders::Unknown,
                    };
                }
                if near > allowed || found == Senders::Unknown {
                    self.numbers.steps = self.numbers.steps.saturating_sub(looked);
                    return Senders::Unknown;
                }
            }
        }
        self.numbers.steps = self.numbers.steps.saturating_sub(looked);
        found
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
    fn what_may_be_in_flight_is_what_was_sent_in_twenty_milliseconds() {
        let ms = Nanos::from_millis;
        let mut sent = Sent::new();
        (sent.first, sent.since) = (MASK - 9, ms(1));
        (sent.older, sent.newer, sent.newer_at) = (MASK - 9, MASK - 9, ms(1));
        // Seen for a short time: what was in flight before is not known.
        assert!(sent.holds(90, 60_000, ms(2)) && !sent.holds(90, 70_000, ms(2)));
        for (number, held) in [
            (MASK - 9, true),
            (90, true),
            (0, true),
            (MASK - 40, false),
            (120, false),
        ] {
            assert_eq!(sent.holds(90, number, ms(30)), held, "{number}");
        }
        // Sent again from 40 before the oldest.
        let back = (MASK - 9) - 40;
        assert!(sent.holds(back, back + 20, ms(30)) && !sent.holds(back, 60, ms(30)));
    }
}

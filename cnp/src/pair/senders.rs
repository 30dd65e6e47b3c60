//! Finds the endpoint whose requests can include a sequence number: the numbers lately sent to every endpoint, and an index of them.
//!
//! Law: an endpoint that may have been sent a number is never passed over. Its numbers in flight lie between its number of 20 to 40 ms
//! ago (more than a round trip of 2,000 km) and its present one, which the worker's flow cache has of every packet; while it
//! has been seen for less than that, within [`NEAR`] of its present one.
//!
//! Numbers begin anywhere, so a thousand connections lie apart from each other, and of those at random few are near. Where
//! more are near than that, they began together (NCCL begins all at 0) or follow another rule, and nothing is concluded.
//! Work is bounded: endpoints are kept in buckets by their number, and only three buckets are looked into.

use npcc_pipeline::units::Nanos;

use super::ends::Endpoints;
use super::ends::numbers::{NEAR, Place, SMALL, Sent, distance};
use super::pair_state::PairKey;
use crate::links::{Links, NONE, link, unlink};
use crate::sample::{Record, SlotRef};

/// Maximum number of endpoints looked at for one number.
const MOST: usize = 192;
/// Share of endpoints (1/32) that may be near by chance: four times as many as there are when numbers are random.
const CROWD: u32 = 32;

/// Endpoints whose requests can include a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Senders {
    /// Several endpoints, or it is not known which one.
    Unknown,
    /// No endpoint seen.
    Nobody,
    /// One endpoint alone.
    One(u32),
}

impl Endpoints {
    /// Records the number of a request to `end`.
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

    /// Forgets the numbers sent to an endpoint.
    pub(super) fn forget_numbers(&mut self, end: u32) {
        self.leave_place(end);
        if let Some(state) = self.end_mut(end) {
            // The fact that numbers were small is kept: more that count from 0 may follow.
            let first = Some(state.sent.first).filter(|first| *first < SMALL);
            state.sent = Sent::new();
            state.sent.first = first.unwrap_or(NONE);
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

    /// Reader and slot in which a worker keeps the present number of requests to an endpoint.
    pub(super) fn request_slot(&self, end: u32) -> Option<(usize, SlotRef)> {
        let sent = &self.end(end)?.sent;
        (sent.reader != NONE).then_some((sent.reader as usize, sent.slot))
    }

    /// Present number of requests to an endpoint.
    pub(super) fn number(
        &self,
        end: u32,
        live: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> Option<u32> {
        let (reader, slot) = self.request_slot(end)?;
        live(reader, slot).or_else(|| Some(self.end(end)?.sent.last))
    }

    /// Finds the endpoint whose request a reply to `end` with this number answers.
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
        let allowed = self.opposite_side(end).map_or(0, |side| side.len / CROWD) + 1;
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

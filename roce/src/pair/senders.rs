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

use super::endpoints::Endpoints;
use super::endpoints::psns::{NEAR, PsnBucket, SMALL, SentPsns, distance};
use super::pair_state::PairKey;
use crate::links::{Links, NONE, link, unlink};
use crate::sample::{PacketSample, SlotRef};

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
    /// Records the number of a request to `endpoint`.
    pub(super) fn index_psn(&mut self, endpoint: u32, record: &PacketSample, reader: usize) {
        let Some(state) = self.endpoint_mut(endpoint) else {
            return;
        };
        state.sent.see(record, reader);
        let (_, direction) = PairKey::of(&record.key);
        let bucket = PsnBucket::of(state.pair, direction, record.psn);
        if state.sent.bucket == Some(bucket) {
            return;
        }
        self.leave_bucket(endpoint);
        let between = Links {
            previous: NONE,
            next: self.psn_index.set_head(bucket, endpoint),
        };
        link(
            &mut self.entries,
            |it| &mut it.sent.links,
            endpoint,
            between,
        );
        if let Some(state) = self.endpoint_mut(endpoint) {
            state.sent.bucket = Some(bucket);
        }
    }

    /// Forgets the numbers sent to an endpoint.
    pub(super) fn clear_sent_psns(&mut self, endpoint: u32) {
        self.leave_bucket(endpoint);
        if let Some(state) = self.endpoint_mut(endpoint) {
            // The fact that numbers were small is kept: more that count from 0 may follow.
            let first = Some(state.sent.first).filter(|first| *first < SMALL);
            state.sent = SentPsns::new();
            state.sent.first = first.unwrap_or(NONE);
        }
    }

    fn leave_bucket(&mut self, endpoint: u32) {
        let Some(state) = self.endpoint_mut(endpoint) else {
            return;
        };
        let Some(bucket) = state.sent.bucket.take() else {
            return;
        };
        let between = unlink(&mut self.entries, |it| &mut it.sent.links, endpoint);
        if between.previous == NONE {
            self.psn_index.set_head(bucket, between.next);
        }
    }

    /// Reader and slot in which a worker keeps the present number of requests to an endpoint.
    pub(super) fn request_slot(&self, endpoint: u32) -> Option<(usize, SlotRef)> {
        let sent = &self.endpoint(endpoint)?.sent;
        (sent.reader != NONE).then_some((sent.reader as usize, sent.slot))
    }

    /// Present number of requests to an endpoint.
    pub(super) fn present_psn(
        &self,
        endpoint: u32,
        read_psn: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> Option<u32> {
        let (reader, slot) = self.request_slot(endpoint)?;
        read_psn(reader, slot).or_else(|| Some(self.endpoint(endpoint)?.sent.last))
    }

    /// Finds the endpoint whose request a reply to `endpoint` with this number answers.
    pub(super) fn senders(
        &mut self,
        endpoint: u32,
        psn: u32,
        now: Nanos,
        read_psn: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> Senders {
        let (found, looked) = self.find_senders(endpoint, psn, now, read_psn);
        self.psn_index.steps = self.psn_index.steps.saturating_sub(looked);
        found
    }

    /// Result of [`Endpoints::senders`], and the number of endpoints looked at.
    fn find_senders(
        &self,
        endpoint: u32,
        psn: u32,
        now: Nanos,
        read_psn: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> (Senders, usize) {
        let (Some(state), Some(key)) = (self.endpoint(endpoint), self.key(endpoint)) else {
            return (Senders::Unknown, 0);
        };
        let (_, direction) = PairKey::of(&key);
        let bucket = PsnBucket::of(state.pair, direction.back(), psn);
        let allowed = self.opposite_endpoints(endpoint).unwrap_or(0) / CROWD + 1;
        let (mut looked, mut near, mut found) = (0, 0, Senders::Nobody);
        for further in [0, 1, u8::MAX] {
            let bucket = bucket.further(further);
            let mut at = self.psn_index.head(bucket);
            while let Some(state) = self.endpoint(at) {
                looked += 1;
                if looked > MOST.min(self.psn_index.steps) {
                    return (Senders::Unknown, looked);
                }
                let (sent, index) = (&state.sent, at);
                at = sent.links.next;
                if sent.bucket != Some(bucket) {
                    continue;
                }
                let Some(present) = self.present_psn(index, read_psn) else {
                    continue;
                };
                near += u32::from(distance(present, psn) <= NEAR);
                if sent.holds(present, psn, now) {
                    found = match found {
                        Senders::Nobody => Senders::One(index),
                        _ => Senders::Unknown,
                    };
                }
                if near > allowed || found == Senders::Unknown {
                    return (Senders::Unknown, looked);
                }
            }
        }
        (found, looked)
    }
}

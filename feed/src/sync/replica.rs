//! Copy of a peer's ends.

use std::time::Duration;

use npcc_api::ends::{EndRow, Key};
use npcc_pipeline::token_bucket::TokenBucket;
use schemars::JsonSchema;
use serde::Serialize;

use super::ends::Ends;
use super::limits::Limits;
use super::message::{Body, Message, Part, RejectReason};
use super::parts::{PARTS, Parts};

/// Time between two requests, without jitter.
const PAUSE: Duration = Duration::from_millis(250);
/// Time without a message after which a peer counts as silent and nothing is requested of it.
const SILENT: Duration = Duration::from_secs(2);
/// Time without progress after which a lower sequence number is accepted, and for which a message of the last epoch may be late.
const STUCK: Duration = Duration::from_secs(1);
/// Changes of the epoch that may be taken at once, and a second: each divides the whole table anew.
const EPOCHS_AT_ONCE: u64 = 3;
const EPOCHS_A_SECOND: u64 = 1;
/// Time after a peer's last message, and since an end's last frame by the peer's clock, for which its ends are suggested again: as long as
/// a switch believes a report.
const BELIEVED: Duration = Duration::from_secs(60);
/// Parts that may be requested at once, and a second: all of them four times, then once in 5 s.
pub(super) const PARTS_AT_ONCE: u64 = 4 * PARTS as u64;
pub(super) const PARTS_A_SECOND: u64 = PARTS as u64 / 5;

/// Counters of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PeerCounts {
    /// Messages received.
    pub messages: u64,
    /// Rows applied.
    pub rows: u64,
    /// Rows that were missing in the numbers: lost on the way, or not published.
    pub missing: u64,
    /// Requests sent.
    pub requests: u64,
    /// Parts replaced.
    #[serde(skip)]
    pub parts: u64,
    /// Rows for the switch that were dropped, because it took them too slowly.
    pub dropped: u64,
    /// Messages or rows refused, in the order of [`RejectReason::ALL`].
    #[serde(skip)]
    pub refused: [u64; RejectReason::COUNT],
}

/// Copy of a peer's ends.
#[derive(Debug)]
pub(super) struct Replica {
    ends: Ends,
    epoch: Option<u64>,
    /// Epoch before this one, and the time until which late messages of it are ignored.
    previous: Option<(u64, Duration)>,
    /// Number of the row that is expected next.
    next: u64,
    /// Time at which `next` was last raised.
    advanced: Duration,
    /// Parts that may differ from the peer's.
    doubtful: Parts,
    /// True once a digest has shown which parts differ.
    compared: bool,
    heard: Option<Duration>,
    /// Earliest time of the next request.
    request_at: Duration,
    /// Position from which ends are suggested again next; `None` while none are due.
    repeated: Option<(u16, Key)>,
    /// True if all are suggested again once more after those.
    again: bool,
    epochs: TokenBucket,
    rows: TokenBucket,
    requests: TokenBucket,
    pub(super) counts: PeerCounts,
}

impl Replica {
    pub(super) fn new(limits: &Limits) -> Self {
        let rows = limits.rows_per_second;
        Self {
            ends: Ends::new(0, limits.ends),
            epoch: None,
            previous: None,
            next: 1,
            advanced: Duration::ZERO,
            doubtful: Parts::NONE,
            compared: false,
            heard: None,
            request_at: Duration::ZERO,
            repeated: None,
            again: false,
            epochs: TokenBucket::new(EPOCHS_A_SECOND, EPOCHS_AT_ONCE),
            rows: TokenBucket::new(rows, 2 * rows),
            requests: TokenBucket::new(PARTS_A_SECOND, PARTS_AT_ONCE),
            counts: PeerCounts::default(),
        }
    }

    /// Takes a message of the peer. Returns the parts that it requests of this box, none of them for the digest.
    pub(super) fn receive(&mut self, now: Duration, message: Message) -> Option<Vec<u16>> {
        self.counts.messages += 1;
        if !self.rows.take(now.into(), message.body.rows() as u64) {
            self.refuse(RejectReason::Rate, 1);
            return None;
        }
        if let Body::Request { parts } = message.body {
            return Some(parts);
        }
        if self.epoch != Some(message.epoch) {
            let late = |(epoch, until)| epoch == message.epoch && now < until;
            if self.previous.is_some_and(late) {
                return None;
            }
            if !self.epochs.take(now.into(), 1) {
                self.refuse(RejectReason::Rate, 1);
                return None;
            }
            let before = self.epoch.replace(message.epoch);
            self.previous = before.map(|epoch| (epoch, now + STUCK));
            self.ends.reseed(message.epoch);
            // Its parts are others.
            self.repeated = self.repeated.map(|_| Ends::FIRST);
            self.next = 1;
            self.advanced = now;
            self.doubt_all();
        }
        let heard = self.heard.replace(now);
        if heard.is_some_and(|heard| now.saturating_sub(heard) >= BELIEVED) {
            self.repeat(now);
        }
        match message.body {
            Body::Delta { first, rows } => self.delta(now, first, &rows),
            Body::Heartbeat { sequence, hash } => {
                if self.is_current(now, sequence) {
                    if hash == self.ends.hash() {
                        self.doubtful = Parts::NONE;
                    } else if self.doubtful.is_empty() {
                        self.doubt_all();
                    }
                }
            }
            Body::Digest { sequence, hashes } => {
                if self.is_current(now, sequence) {
                    for (part, hash) in (0..).zip(hashes) {
                        self.doubtful.set(part, self.ends.hash_of(part) != hash);
                    }
                    // The answer: what differs may be requested at once.
                    if !std::mem::replace(&mut self.compared, true) {
                        self.request_at = now;
                    }
                }
            }
            Body::Parts { sequence, parts } => {
                if self.is_current(now, sequence) {
                    self.replace(&parts);
                }
            }
            Body::Request { .. } => {}
        }
        self.counts.dropped += self.ends.bound_changes() as u64;
        None
    }

    fn doubt_all(&mut self) {
        self.doubtful = Parts::ALL;
        self.compared = false;
    }

    fn delta(&mut self, now: Duration, first: u64, rows: &[EndRow]) {
        if first > self.next {
            self.missed(now, first);
        }
        let known = usize::try_from(self.next - first).unwrap_or(usize::MAX);
        let Some(rows) = rows.get(known..).filter(|rows| !rows.is_empty()) else {
            return;
        };
        for row in rows {
            match row {
                EndRow::End(end) if !self.ends.insert(*end) => self.refuse(RejectReason::Full, 1),
                EndRow::End(_) => {}
                EndRow::Gone(key) => _ = self.ends.remove(key),
                // No switch takes messages of the connection manager, and leases come from hosts alone.
                EndRow::Cm(_)
                | EndRow::Lost { .. }
                | EndRow::Begin
                | EndRow::Complete { .. }
                | EndRow::Lease(_) => {}
            }
        }
        self.next += rows.len() as u64;
        self.advanced = now;
        self.counts.rows += rows.len() as u64;
    }

    /// Goes on with the number `next`: rows before it are missing.
    fn missed(&mut self, now: Duration, next: u64) {
        self.counts.missing += next - self.next;
        self.next = next;
        self.advanced = now;
        self.doubt_all();
    }

    /// Returns true if this copy includes all rows up to `sequence`; records missing rows first.
    fn is_current(&mut self, now: Duration, sequence: u64) -> bool {
        let next = sequence + 1;
        if next > self.next {
            self.missed(now, next);
        } else if next < self.next && now.saturating_sub(self.advanced) >= STUCK {
            // A lower number means that the peer sent a false one before, or that this message is very late.
            self.next = next;
            self.advanced = now;
            self.doubt_all();
        }
        next == self.next
    }

    fn replace(&mut self, parts: &[Part]) {
        for Part { part, rows } in parts {
            if rows.iter().any(|end| self.ends.part(&end.key()) != *part) {
                self.refuse(RejectReason::Malformed, 1);
                continue;
            }
            let left_out = self.ends.replace(*part, rows) as u64;
            self.refuse(RejectReason::Full, left_out);
            self.doubtful.set(*part, false);
            self.counts.parts += 1;
        }
    }

    pub(super) fn refuse(&mut self, reason: RejectReason, count: u64) {
        self.counts.refused[reason.index()] += count;
    }

    /// Returns what has to be requested of the peer now; `jitter` is between 0 and 1.
    pub(super) fn request(&mut self, now: Duration, jitter: f64) -> Option<Body> {
        let hears = self
            .heard
            .is_some_and(|heard| now.saturating_sub(heard) < SILENT);
        if self.doubtful.is_empty() || !hears || now < self.request_at {
            return None;
        }
        let parts: Vec<u16> = if self.compared {
            self.doubtful.iter().collect()
        } else {
            Vec::new()
        };
        if !self.requests.take(now.into(), parts.len().max(1) as u64) {
            return None;
        }
        self.request_at = now + PAUSE.mul_f64(1.0 + jitter / 2.0);
        self.counts.requests += 1;
        Some(Body::Request { parts })
    }

    /// Takes at most `most` rows for the switch.
    pub(super) fn suggestions(&mut self, most: usize) -> Vec<EndRow> {
        std::iter::from_fn(|| self.ends.next_change())
            .take(most)
            .collect()
    }

    /// Has all ends be suggested again that a switch may still believe.
    pub(super) fn repeat(&mut self, now: Duration) {
        (self.repeated, self.again) = (None, false);
        self.repeat_some(now, usize::MAX, true);
    }

    /// Has the next of these ends be suggested again, of at most `most` ends; once they were all, begins anew with the first if `again` was
    /// true meanwhile.
    pub(super) fn repeat_some(&mut self, now: Duration, most: usize, again: bool) {
        let heard = self
            .heard
            .is_some_and(|heard| now.saturating_sub(heard) < BELIEVED);
        self.again |= again;
        let again = &mut self.again;
        let from = self
            .repeated
            .take()
            .or_else(|| std::mem::take(again).then_some(Ends::FIRST));
        if let Some(from) = from.filter(|_| heard) {
            self.repeated = self.ends.repeat(from, most, BELIEVED);
        }
    }

    pub(super) fn ends(&self) -> &Ends {
        &self.ends
    }

    pub(super) fn is_equal(&self) -> bool {
        self.epoch.is_some() && self.doubtful.is_empty()
    }

    pub(super) const fn heard(&self) -> Option<Duration> {
        self.heard
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.ends.changes()
    }
}

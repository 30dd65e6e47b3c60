//! Whether telling a sender had an effect, and whether the effect lasted: its bytes before, and over a window once the effect must show.
//!
//! What CNPs should have cost together is added up, as DCQCN's alpha fades and a single late one proves nothing: by when they should have
//! cost a fifth of the rate, a quarter of that must be seen, over a window that begins [`SETTLED`] after the feedback delay. A sender whose
//! byte counter takes it back within microseconds shows as little there as one that hears nothing. What a sender wins back by its own
//! clock ([`RECOVERY`]) is allowed for, at the first CNP of a measurement too, where that meets a sender that has just won back half of the way
//! to what it sent before; and so is that flows of one host share its link: each of eight queue pairs at their line rate sends an
//! eighth of what its rate limiter allows, and its first two cuts cost it nothing (its *headroom*). So is a full link
//! on the way here that others share, a leaf's uplink or that of a host whose other flows go elsewhere; and by a full link that a flow shares,
//! its own host's too, an effect has longer to show ([`HELD_BACK`]). Three times in vain makes a flow unresponsive; it keeps its ECN marks and
//! gets at most one CNP a millisecond until as many effects were seen: a flow falls for many reasons, and one fall proves little.

use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

named! {
    /// What a flow did after it was signalled.
    #[derive(Default)]
    pub enum Response {
        /// Not measured yet.
        #[default]
        Unknown = "unknown",
        /// At most 62.5 % of before (a first CNP halves; half a cut's error is allowed).
        Halved = "halved",
        /// At most 90 %.
        Weak = "weak",
        /// More.
        None = "none",
    }
}

impl Response {
    fn of(before: u64, after: u64) -> Response {
        let (before, after) = (u128::from(before), u128::from(after));
        if after * 8 <= before * 5 {
            Response::Halved
        } else if after * 10 <= before * 9 {
            Response::Weak
        } else {
            Response::None
        }
    }
}

/// What must be left of the rate, in 65,536ths, for the effect to have to show.
const PROOF: u32 = ONE / 5 * 4;
const ONE: u32 = 1 << 16;
/// Which part of what is expected must be seen.
const PART: u64 = 4;
/// Misses, less effects, that make a flow unresponsive.
const MISSES: u8 = 3;
/// No more than these are remembered.
const MOST: u8 = 6;
/// Time after the feedback delay within which an effect that does not last is over.
const SETTLED: Nanos = Nanos::from_micros(20);
/// Time in which a sender that is not told wins back half of what it lost, at the soonest.
const RECOVERY: Nanos = Nanos::from_micros(300);
/// The same by the clock of a sender that was told a little later than was noted.
const NEARLY_RECOVERY: Nanos = Nanos::from_micros(200);
/// An effect is measured over as long as a flow needs for so many bytes, so that a few frames more or less prove nothing, ...
const ENOUGH: u64 = 64 << 10;
/// ... but never over less than this: of a byte counter that brings a sender back, the end is seen.
const SHORTEST: Nanos = Nanos::from_micros(40);
/// CNPs that have not added up to a proof in this time are forgotten.
const PATIENCE: Nanos = Nanos::from_millis(5);
/// A link of which others take less than this beside a flow, in 65,536ths of what it sends itself, is its own.
const SHARED: u64 = 5 << 14;
/// So long an effect may take to show by a link that is full: what waits before it is as much as a switch's buffer holds.
const HELD_BACK: Nanos = Nanos::from_millis(2);

/// Half of the way from these bytes to `top`, in 65,536ths of them.
fn halfway(before: u64, top: u64) -> u32 {
    let middle = u128::from(before) + u128::from(top.saturating_sub(before) / 2);
    let share = middle * u128::from(ONE) / u128::from(before.max(1));
    u32::try_from(share).unwrap_or(u32::MAX)
}

/// How long a signalled flow is watched.
#[derive(Debug, Clone, Copy)]
pub struct ResponseConfig {
    /// Time from a CNP to its effect in the queue.
    pub feedback: Nanos,
    /// Time in which a flow sent what it is said to have sent before; the longest over which its bytes are counted after.
    pub window: Nanos,
}

impl ResponseConfig {
    /// Time over which a flow is measured that sent so much in a window before.
    fn time(&self, before: u64) -> Nanos {
        let enough = u128::from(self.window.0) * u128::from(ENOUGH) / u128::from(before.max(1));
        let enough = u64::try_from(enough).unwrap_or(u64::MAX);
        Nanos(enough).max(SHORTEST).min(self.window)
    }
}

/// What a measurement found. Shares are of the rate before, in 65,536ths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Whether the sender slowed down, and was still slow later.
    pub worked: bool,
    /// What its CNPs should have cost together.
    pub expected: u32,
    /// What the rate fell by.
    pub seen: u32,
    /// Time from the CNP before the first of them to the first, and how many they were; `None` when there was none before, or when the
    /// rate may have fallen by less than what was allowed did.
    pub after: Option<(Nanos, u8)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Quiet,
    /// Signalled: an effect is on its way, or too small yet.
    Told,
    /// The effect should be there: counting from this time and total.
    Counting { since: Nanos, total: u64 },
}

/// The watch over one flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseWatch {
    state: State,
    last: Response,
    misses: u8,
    unresponsive: bool,
    /// The first CNP of this measurement, and the bytes in the window before it.
    first: (Nanos, u64),
    /// From when on it is worth counting.
    ripe: Nanos,
    /// The latest CNP of all.
    latest: Option<Nanos>,
    /// Time from the CNP before the first of this measurement to that.
    gap: Nanos,
    /// CNPs of this measurement.
    cnps: u8,
    /// What the CNPs of this measurement should leave of what was allowed, in 65,536ths of what was sent: above 1 nothing need be seen.
    left: u32,
    /// What may have been allowed of more than was sent, in 65,536ths of that.
    headroom: u32,
    /// Whether `left` takes in what the link it came by held back.
    is_held_back: bool,
    /// The most it sent in a window before CNPs that followed each other within [`PATIENCE`]: what a sender wins back leads half of the way
    /// there.
    top: u64,
}

impl ResponseWatch {
    /// The sender was signalled; `before` is what the flow enqueued over the window, and `share` what this CNP should cost
    /// of the rate, in 65,536ths; `headroom` is what the sender may be allowed to send, in 65,536ths of what it sends. A measurement
    /// under way goes on.
    pub fn record_cnp_sent(&mut self, now: Nanos, before: u64, share: u32, headroom: u32) {
        let gap = self
            .latest
            .map_or(Nanos(u64::MAX), |latest| now.since(latest));
        self.latest = Some(now);
        if self.state == State::Quiet {
            if before == 0 {
                return;
            }
            self.state = State::Told;
            self.first = (now, before);
            self.top = if gap > PATIENCE {
                before
            } else {
                self.top.max(before)
            };
            // Lately it was seen to be held by its rate limiter, and not by its host's link.
            let fell = matches!(self.last, Response::Halved | Response::Weak);
            let is_limited = fell && gap < RECOVERY;
            let headroom = if is_limited { ONE } else { headroom.max(ONE) };
            // By its clock it may win back half of what it lost at this very moment.
            let headroom = if gap >= NEARLY_RECOVERY {
                headroom.max(halfway(before, self.top))
            } else {
                headroom
            };
            self.headroom = headroom;
            self.is_held_back = false;
            (self.gap, self.cnps, self.left, self.ripe) = (gap, 0, headroom, now);
        } else if gap >= RECOVERY {
            self.left = u32::midpoint(self.left, ONE).max(self.left);
        }
        let was_little = self.left > PROOF;
        let left = u64::from(self.left) * u64::from(ONE.saturating_sub(share)) / u64::from(ONE);
        self.left = u32::try_from(left).unwrap_or(0);
        self.cnps = self.cnps.saturating_add(1);
        if was_little && self.left <= PROOF && self.state == State::Told {
            self.ripe = now;
        }
    }

    /// Takes the flow's running total of bytes; says what was measured, when something was. `allowed` is what a flow that sent so many
    /// bytes in a time that ends now may have been allowed to send, in 65,536ths of them, where the link it comes by was full. A measurement that was not looked at
    /// in time is dropped.
    pub fn observe(
        &mut self,
        now: Nanos,
        total: u64,
        config: &ResponseConfig,
        allowed: impl FnOnce(u64, Nanos) -> u32,
    ) -> Option<Measured> {
        let (told, before) = self.first;
        match self.state {
            State::Quiet => None,
            State::Told => {
                let due = self.ripe + config.feedback + SETTLED;
                if now > due + config.window && self.left <= PROOF || now.since(told) > PATIENCE {
                    self.state = State::Quiet;
                } else if now >= due {
                    self.state = State::Counting { since: now, total };
                }
                None
            }
            State::Counting {
                since,
                total: start,
            } => {
                let passed = now.since(since);
                let time = config.time(before);
                if passed < time {
                    return None;
                }
                self.state = State::Quiet;
                if passed.0 > time.0.saturating_mul(2).max(config.window.0) {
                    return None;
                }
                let counted = u128::from(total.saturating_sub(start));
                let after = counted * u128::from(config.window.0) / u128::from(passed.0.max(1));
                let after = u64::try_from(after).unwrap_or(u64::MAX);
                let allowed = || allowed(total.saturating_sub(start), passed);
                self.conclude(before, after, now, allowed)
            }
        }
    }

    fn conclude(
        &mut self,
        before: u64,
        after: u64,
        now: Nanos,
        allowed: impl FnOnce() -> u32,
    ) -> Option<Measured> {
        if after > before.saturating_mul(3) / 2 {
            // It had only begun, or its application sends more now: what it would have sent is not known.
            return None;
        }
        if after == 0 {
            // It ended, or its application waits: a limiter lets something through. A deaf sender's bursts end, too.
            return None;
        }
        let response = Response::of(before, after);
        let fell = before.saturating_sub(after);
        let seen = u128::from(fell) * u128::from(ONE) / u128::from(before.max(1));
        let seen = u32::try_from(seen).unwrap_or(ONE);
        let has_shown = |left: u32| u64::from(seen) * PART >= u64::from(ONE.saturating_sub(left));
        if self.left <= PROOF && !has_shown(self.left) && now.since(self.first.0) < HELD_BACK {
            let allowed = u64::from(allowed());
            if self.is_held_back || allowed >= SHARED {
                // What its host's other flows take of the link was reckoned with before.
                let more = allowed * u64::from(ONE) / u64::from(self.headroom.max(1));
                self.hold_back(more.max(ONE.into()));
                (self.state, self.ripe) = (State::Told, now);
                return None;
            }
        }
        let expected = ONE.saturating_sub(self.left);
        let must_show = self.left <= PROOF;
        if !must_show && response != Response::Halved {
            // Little was asked for and little is seen: the next CNPs count with these.
            (self.state, self.ripe) = (State::Told, now);
            return None;
        }
        let worked = has_shown(self.left);
        self.last = if worked { response } else { Response::None };
        self.misses = if worked {
            self.misses.saturating_sub(1)
        } else {
            (self.misses + 1).min(MOST)
        };
        self.unresponsive = if self.unresponsive {
            self.misses > 0
        } else {
            self.misses >= MISSES
        };
        let is_cut = self.gap.0 < u64::MAX && self.headroom <= ONE;
        let after = is_cut.then_some((self.gap, self.cnps));
        Some(Measured {
            worked,
            expected,
            seen,
            after,
        })
    }

    /// Something on the way here held back what the sender was allowed to send, so that the first cuts are not missed; and what waits there
    /// comes at the old rate for a while.
    fn hold_back(&mut self, more: u64) {
        if !self.is_held_back {
            let times = |share: u32| u64::from(share).saturating_mul(more) / u64::from(ONE);
            let [left, headroom] = [self.left, self.headroom].map(times);
            self.left = u32::try_from(left).unwrap_or(u32::MAX);
            self.headroom = u32::try_from(headroom).unwrap_or(u32::MAX);
            self.is_held_back = true;
        }
    }

    /// The sender was held back by something else at that time: what is being measured since then, or over a window before, is dropped.
    pub fn forget(&mut self, at: Nanos, window: Nanos) {
        if at > Nanos::ZERO && self.first.0 <= at + window {
            self.state = State::Quiet;
        }
    }

    /// Whether the effect of CNPs is being measured that must show: another one now would be taken for theirs.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.state != State::Quiet && self.left <= PROOF
    }

    /// The latest measurement.
    #[must_use]
    pub const fn last(&self) -> Response {
        self.last
    }

    /// Signalled in vain, again and again.
    #[must_use]
    pub const fn is_unresponsive(&self) -> bool {
        self.unresponsive
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

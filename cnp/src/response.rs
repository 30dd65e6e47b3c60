//! Measures the response of a flow's rate to CNPs to its sender, or says why it cannot be measured.
//!
//! A measurement begins with a CNP to a flow whose rate is known. [`SETTLED`] after the feedback delay its bytes are counted, over the time it needs
//! for 64 KiB at the rate before, and at least 40 us: a byte counter that takes its sender back within microseconds shows as little there as
//! a sender that ignores CNPs. The expected rate of each kind of card ([`crate::reaction_point`]) is an interval: with only those CNPs that had their
//! effect when the counting began, and with all that were sent until it ended. CNPs that cost little are taken together, over 5 ms at most. In a train
//! of CNPs a measurement takes the rate of the one before it as its rate before.
//!
//! Other causes that may have changed the rate, or hidden a cut, are not weighed but counted by their [`Unmeasured`] reason.

use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

use crate::likelihood::{Observation, SHOWS, ln};
use crate::reaction_point::{KINDS, ONE, OfEach, ReactionPoints};

named! {
    /// Response of a flow to being signalled.
    #[derive(Default)]
    pub enum Response {
        /// The response is not measured yet.
        #[default]
        Unknown = "unknown",
        /// The rate is at most 62.5 % of before (a first CNP halves; half a cut's error is allowed).
        Halved = "halved",
        /// The rate is at most 90 % of before.
        Weak = "weak",
        /// The rate is more than 90 % of before.
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

named! {
    /// Reason why a measurement says nothing about a sender.
    pub enum Unmeasured {
        /// The flow was not read in time.
        Late = "late",
        /// We paused the senders behind its port.
        Paused = "paused",
        /// A link that the flow shares with others was full, or its host has other flows: a cut may not show.
        SharedLink = "shared-link",
        /// The flow sent nothing: it ended, or its application waits.
        Silent = "silent",
        /// The flow sent more than before: it had only begun, or its application sends more now.
        Grew = "grew",
    }
}

/// Time from the end of the feedback delay to the beginning of the count: a cut that the sender takes back at once is over by then.
const SETTLED: Nanos = Nanos::from_micros(20);
/// Number of bytes at the rate before for which a count lasts: a few frames more or less then prove nothing.
const ENOUGH: u64 = 64 << 10;
/// Shortest time that a count lasts, so that the recovery by a sender's byte counter shows.
const SHORTEST: Nanos = Nanos::from_micros(40);
/// Time after which CNPs that have not added up to something measurable are forgotten.
const PATIENCE: Nanos = Nanos::from_millis(5);
/// Time for which an effect may be hidden by a full link: the frames that wait before it are as many as a switch's buffer holds.
const HELD_BACK: Nanos = Nanos::from_millis(2);
/// Bytes of a frame, as frames are counted: cards pace frames, so that four small ones are as certain as a large one.
const FRAME: u64 = 1 << 10;

/// Times over which a signalled flow is measured.
#[derive(Debug, Clone, Copy)]
pub struct ResponseConfig {
    /// Time from a CNP to its effect in the queue.
    pub feedback: Nanos,
    /// Time to which the rate before refers; also the longest over which bytes are counted after.
    pub window: Nanos,
}

impl ResponseConfig {
    /// Time over which a flow is measured that sent this many bytes in a window before.
    fn time(&self, before: u64) -> Nanos {
        let enough = u128::from(self.window.0) * u128::from(ENOUGH) / u128::from(before.max(1));
        let enough = u64::try_from(enough).unwrap_or(u64::MAX);
        Nanos(enough).max(SHORTEST).min(self.window)
    }
}

/// Result of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) seen: Observation,
    /// Logarithms of the share of the rate that each kind of card should keep, at least and at most.
    pub(crate) expected: [(f64, f64); KINDS],
}

/// Outcome of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    Measured(Measured),
    Unmeasured(Unmeasured),
}

#[cfg(test)]
impl Outcome {
    /// Outcome of a flow that kept the share `seen` of its rate, where each kind of card should have kept these.
    pub(crate) fn of(seen: f64, expected: [f64; KINDS]) -> Outcome {
        Outcome::Measured(Measured {
            seen: Observation {
                seen: seen.ln(),
                frames: 40.0,
            },
            expected: expected.map(|share| (share.ln(), share.ln())),
        })
    }

    /// Outcome after one CNP that should halve the rate: it did if `worked`, else the rate stayed as it was.
    pub(crate) fn of_half(worked: bool) -> Outcome {
        Outcome::of(if worked { 0.5 } else { 1.0 }, [0.5; KINDS])
    }

    /// Outcome that fits a card as published, and no other.
    pub(crate) fn of_published() -> Outcome {
        Outcome::of(0.3, [0.7, 0.7, 0.3])
    }
}

/// A measured rate, and the rates of each kind of card between which it was measured.
#[derive(Debug, Clone, Copy)]
struct RateInterval {
    at: Nanos,
    /// Number of bytes in a window.
    bytes: u64,
    low: OfEach,
    high: OfEach,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Quiet,
    /// The flow was signalled: CNPs before `from` have their effect when counting begins.
    Signalled { from: Nanos },
    /// Bytes are counted from this time and total.
    Counting { since: Nanos, total: u64 },
}

/// Measurement of one flow's response.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResponseWatch {
    state: State,
    last: Response,
    /// Time of the first CNP after a time in which the rate was its sender's own.
    first: Nanos,
    /// Rate with which the rate after is compared.
    before: Option<RateInterval>,
    /// Rates that each kind of card should have while bytes are counted. `high`: the mean if no CNP but those whose effect began before the count
    /// matters; it is set by the first later CNP, or at the end. `low`: the lowest, if all CNPs until the end matter.
    high: Option<OfEach>,
    low: OfEach,
    /// Headroom when the flow was signalled: the amount it may have been allowed to send, in 65,536ths of the amount it sent.
    hidden_ratio: u32,
}

impl ResponseWatch {
    /// Records a CNP to the sender; `bytes` is what the flow enqueued over the window, 0 where that is not known, and `points` the state from earlier
    /// CNPs. `hidden_ratio` is the amount the sender may be allowed to send, in 65,536ths of what it sends.
    pub(crate) fn record_cnp_sent(
        &mut self,
        now: Nanos,
        bytes: u64,
        points: &ReactionPoints,
        hidden_ratio: u32,
        config: &ResponseConfig,
    ) {
        match self.state {
            State::Signalled { from } if now < from => {}
            State::Signalled { from } => self.take(points, from, now + config.window),
            State::Counting { since, .. } => {
                let from = Nanos(since.0.saturating_sub(config.feedback.0));
                self.take(points, from, now + config.window);
            }
            State::Quiet => {
                let seen = Nanos(now.0.saturating_sub(config.feedback.0 + config.window.0));
                if points.signalled().is_none_or(|signalled| signalled <= seen) {
                    // The rate seen now is the sender's own.
                    self.first = now;
                    self.before = (bytes > 0).then(|| RateInterval {
                        at: now,
                        bytes,
                        low: points.rates(seen),
                        high: points.rates(now),
                    });
                }
                self.hidden_ratio = hidden_ratio.max(ONE);
                self.start(now);
            }
        }
    }

    /// Begins a measurement.
    fn start(&mut self, now: Nanos) {
        self.before = self
            .before
            .filter(|interval| now.since(interval.at) <= PATIENCE);
        self.high = None;
        self.state = State::Signalled {
            from: now + SETTLED,
        };
    }

    /// Computes the rates of each kind of card from the CNPs until now: over the whole counting if no later one matters.
    fn take(&mut self, points: &ReactionPoints, from: Nanos, end: Nanos) {
        if self.high.is_none() {
            (self.low, self.high) = (points.lowest(), Some(points.mean(from, end)));
        }
        for (low, lowest) in self.low.iter_mut().zip(points.lowest()) {
            *low = lowest.min(*low);
        }
    }

    /// Takes the flow's running total of bytes; returns an outcome when a measurement ends. `allowed` returns what a flow that sent this many
    /// bytes in a time that ends now may have been allowed to send, in 65,536ths of them, where its ingress link was full.
    pub(crate) fn observe(
        &mut self,
        now: Nanos,
        total: u64,
        points: &ReactionPoints,
        config: &ResponseConfig,
        allowed: impl FnOnce(u64, Nanos) -> u32,
    ) -> Option<Outcome> {
        let time = config.time(self.before.map_or(0, |interval| interval.bytes));
        match self.state {
            State::Quiet => None,
            State::Signalled { from } => {
                let due = from + config.feedback;
                if now > due + config.window {
                    return self.drop(Unmeasured::Late);
                }
                if now >= due {
                    self.state = State::Counting { since: now, total };
                }
                None
            }
            State::Counting {
                since,
                total: start,
            } => {
                let passed = now.since(since);
                if passed < time {
                    return None;
                }
                if passed.0 > time.0.saturating_mul(2).max(config.window.0) {
                    return self.drop(Unmeasured::Late);
                }
                self.state = State::Quiet;
                let counted = total.saturating_sub(start);
                // A packet seen now was sent a feedback delay ago.
                let sent = |seen: Nanos| Nanos(seen.0.saturating_sub(config.feedback.0));
                self.take(points, sent(since), sent(now));
                let bytes = u128::from(counted) * u128::from(config.window.0);
                let after = RateInterval {
                    at: now,
                    bytes: u64::try_from(bytes / u128::from(passed.0.max(1))).unwrap_or(u64::MAX),
                    low: self.low,
                    high: self.high.unwrap_or(self.low),
                };
                self.conclude(&after, counted, || allowed(counted, passed))
            }
        }
    }

    /// Ends a measurement without a result.
    fn drop(&mut self, reason: Unmeasured) -> Option<Outcome> {
        self.state = State::Quiet;
        self.before.take().map(|_| Outcome::Unmeasured(reason))
    }

    fn conclude(
        &mut self,
        after: &RateInterval,
        counted: u64,
        allowed: impl FnOnce() -> u32,
    ) -> Option<Outcome> {
        let Some(before) = self.before else {
            self.compare_with(after);
            return None;
        };
        let ratio = |part: u64, of: u64| ln(real(part.max(1)) / real(of.max(1)));
        let mut expected = [(0.0, 0.0); KINDS];
        let shares = after
            .low
            .iter()
            .zip(before.high)
            .zip(after.high)
            .zip(before.low);
        for (place, (((low, high_before), high), low_before)) in expected.iter_mut().zip(shares) {
            let low = ratio((*low).into(), high_before.into());
            *place = (low, ratio(high.into(), low_before.into()));
        }
        if expected.iter().all(|(_, high)| *high > SHOWS) {
            // The expected cut is small: the next CNPs count with these.
            return None;
        }
        if after.bytes == 0 {
            return Some(Outcome::Unmeasured(Unmeasured::Silent));
        }
        let seen = ratio(after.bytes, before.bytes);
        if !Observation::is_possible(seen) {
            self.before = None;
            self.compare_with(after);
            return Some(Outcome::Unmeasured(Unmeasured::Grew));
        }
        let allowed = allowed();
        let hidden = ratio(allowed.max(self.hidden_ratio).into(), ONE.into());
        let is_held_back = allowed > ONE / 4 * 5 && after.at.since(self.first) < HELD_BACK;
        if hidden > 0.0 {
            for (_, high) in &mut expected {
                *high = high.max((*high + hidden).min(0.0));
            }
            if is_held_back || expected.iter().any(|(_, high)| *high > SHOWS) {
                return Some(Outcome::Unmeasured(Unmeasured::SharedLink));
            }
        }
        self.last = Response::of(before.bytes, after.bytes);
        // A flow that goes on as before, while it should have slowed down, is compared with the same rate again.
        if hidden <= 0.0 && self.last != Response::None {
            self.compare_with(after);
        }
        Some(Outcome::Measured(Measured {
            seen: Observation {
                seen,
                frames: real(counted / FRAME),
            },
            expected,
        }))
    }

    /// Compares later rates with this one, if the rate of each kind of card at that time is known well enough.
    fn compare_with(&mut self, interval: &RateInterval) {
        let mut ends = interval.low.iter().zip(interval.high);
        if interval.bytes > 0 && ends.all(|(low, high)| high.saturating_sub(*low) <= high / 8) {
            self.before = Some(*interval);
        }
    }

    /// Drops a measurement whose rate before was taken up to a window after `at`, because something else held the sender back at `at`.
    pub(crate) fn forget(&mut self, at: Nanos, window: Nanos) -> Option<Outcome> {
        let is_open = !matches!(self.state, State::Quiet);
        let is_concerned = at > Nanos::ZERO
            && self
                .before
                .is_some_and(|interval| interval.at <= at + window);
        if is_concerned && !is_open {
            self.before = None;
        }
        if is_concerned && is_open {
            self.drop(Unmeasured::Paused)
        } else {
            None
        }
    }

    /// Latest measured response.
    #[must_use]
    pub(crate) const fn last(&self) -> Response {
        self.last
    }
}

/// Converts a count to `f64`, exactly below 2^53.
#[allow(clippy::cast_precision_loss, reason = "a ratio of counts")]
const fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

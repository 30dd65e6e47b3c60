//! Whether telling a sender had an effect: its bytes before, and one feedback delay after.
//!
//! CNPs that can cost little (DCQCN's alpha has faded) prove nothing when no effect is seen: a miss takes CNPs that should
//! have cost a fifth of the rate together (`crate::dcqcn`). Three times no effect makes a flow unresponsive: it keeps its ECN marks and gets at most one CNP per ms. One effect
//! makes it responsive again.

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
/// Effects missed in a row that make a flow unresponsive.
const MISSES: u8 = 3;

/// How long a signalled flow is watched.
#[derive(Debug, Clone, Copy)]
pub struct ResponseConfig {
    /// Time from a CNP to its effect in the queue.
    pub feedback: Nanos,
    /// Time over which bytes are compared.
    pub window: Nanos,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Quiet,
    /// Signalled at this time, with these bytes in the window before.
    Told { at: Nanos, before: u64 },
    /// The effect should be there: counting from this time and total.
    Counting {
        since: Nanos,
        total: u64,
        before: u64,
    },
}

/// The watch over one flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseWatch {
    state: State,
    last: Response,
    misses: u8,
    /// What the CNPs of this measurement should leave of the rate, in 65,536ths.
    left: u32,
}

impl ResponseWatch {
    /// The sender was signalled; `before` is what the flow enqueued over the window, and `share` what this CNP should cost
    /// of the rate, in 65,536ths. A measurement under way goes on.
    pub fn record_cnp_sent(&mut self, now: Nanos, before: u64, share: u32) {
        if before > 0 && matches!(self.state, State::Quiet) {
            self.state = State::Told { at: now, before };
            self.left = ONE;
        }
        let left = u64::from(self.left) * u64::from(ONE.saturating_sub(share)) / u64::from(ONE);
        self.left = u32::try_from(left).unwrap_or(0);
    }

    /// Takes the flow's running total of bytes. A measurement that was not looked at in time is dropped.
    pub fn observe(&mut self, now: Nanos, total: u64, config: &ResponseConfig) {
        match self.state {
            State::Quiet => {}
            State::Told { at, before } => {
                let passed = now.since(at);
                if passed > config.feedback + config.window {
                    self.state = State::Quiet;
                } else if passed >= config.feedback {
                    self.state = State::Counting {
                        since: now,
                        total,
                        before,
                    };
                }
            }
            State::Counting {
                since,
                total: start,
                before,
            } => {
                let passed = now.since(since);
                if passed.0 >= config.window.0 {
                    if passed.0 <= config.window.0.saturating_mul(2) {
                        let counted = u128::from(total.saturating_sub(start));
                        let after =
                            counted * u128::from(config.window.0) / u128::from(passed.0.max(1));
                        self.note(Response::of(
                            before,
                            u64::try_from(after).unwrap_or(u64::MAX),
                        ));
                    }
                    self.state = State::Quiet;
                }
            }
        }
    }

    fn note(&mut self, response: Response) {
        if response == Response::None && self.left > PROOF {
            return;
        }
        self.last = response;
        self.misses = if response == Response::None {
            self.misses.saturating_add(1)
        } else {
            0
        };
    }

    /// The latest measurement.
    #[must_use]
    pub const fn last(&self) -> Response {
        self.last
    }

    /// Signalled in vain, again and again.
    #[must_use]
    pub const fn is_unresponsive(&self) -> bool {
        self.misses >= MISSES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ResponseConfig = ResponseConfig {
        feedback: Nanos::from_micros(20),
        window: Nanos::from_micros(100),
    };

    /// Tells a flow of 1,000 bytes a window, then lets it send `after` a window.
    fn measure(watch: &mut ResponseWatch, after: u64) -> Response {
        let mut total = 5_000;
        watch.record_cnp_sent(Nanos::ZERO, 1_000, ONE / 2);
        for tick in 1..=10u64 {
            watch.observe(Nanos::from_micros(tick * 20), total, &CONFIG);
            total += after / 5;
        }
        watch.last()
    }

    #[test]
    fn effects_are_graded() {
        for (after, grade) in [
            (0, Response::Halved),
            (500, Response::Halved),
            (800, Response::Weak),
            (1_000, Response::None),
            (2_000, Response::None),
        ] {
            assert_eq!(
                measure(&mut ResponseWatch::default(), after),
                grade,
                "{after}"
            );
        }
    }

    #[test]
    fn three_misses_make_unresponsive_and_one_effect_unmakes_it() {
        let mut watch = ResponseWatch::default();
        for miss in 1..=3 {
            assert!(!watch.is_unresponsive(), "before miss {miss}");
            measure(&mut watch, 1_000);
        }
        assert!(watch.is_unresponsive());
        measure(&mut watch, 500);
        assert!(!watch.is_unresponsive());
    }

    #[test]
    fn one_small_cut_that_does_not_show_is_no_miss() {
        let mut watch = ResponseWatch::default();
        for _ in 0..10 {
            let mut total = 5_000;
            watch.record_cnp_sent(Nanos::ZERO, 1_000, ONE / 50);
            for tick in 1..=10u64 {
                watch.observe(Nanos::from_micros(tick * 20), total, &CONFIG);
                total += 200;
            }
        }
        assert_eq!(
            (watch.last(), watch.is_unresponsive()),
            (Response::Unknown, false)
        );
    }

    #[test]
    fn a_measurement_missed_is_no_answer() {
        let mut watch = ResponseWatch::default();
        watch.record_cnp_sent(Nanos::ZERO, 1_000, ONE / 2);
        watch.observe(Nanos::from_millis(10), 1_000_000, &CONFIG);
        watch.observe(Nanos::from_millis(20), 2_000_000, &CONFIG);
        assert_eq!(watch.last(), Response::Unknown);
    }
}

//! `pi`: a fair rate that a proportional-integral law keeps at a set-point of the depth, as RoCC has it.
//!
//! ```text
//!   every period:  fair -= alpha * (depth - set_point) + beta * (depth - depth before)      in bit/s
//! ```
//! RoCC (CoNEXT 2020) sends the rate itself to its sources; a CNP carries no rate, so whoever sends faster than it is signalled,
//! at most once in `min_cnp_interval`, and nobody else; above eight set-points once in half a period, because cuts of senders
//! signalled before are small, and the queue of a start grew fivefold. Below that nobody is signalled while the queue falls: RoCC's
//! sources take the fair rate and rise with it, DCQCN's senders are cut by half and come back in their own time, so that what
//! is taken off a falling queue is missing when it is empty (goodput of `paper` senders: 0.93 with, 1.00 without). The gains
//! are RoCC's for 100G (0.45 and 2.25, of 10 Mb/s for 600 bytes), scaled to the drain rate. The fair rate stays between
//! 1/1000 of the drain rate and all of it, and begins where there is somebody to tell: at the rate of the fastest sender.

use npcc_pipeline::units::{BitRate, Nanos};

use super::npcc::CLOSEST;
use super::parameter::{self, Declared, per_mille, time};
use super::{
    Amount, BadParameter, Choice, Decision, Parameters, Policy, QueueContext, QueueSettings,
    Reason, Round,
};

/// Bits per second per byte of depth that a gain of one (1,000 thousandths) means at 100G.
const GAIN: i128 = 10_000_000 / 600;
const REFERENCE: i128 = 100_000_000_000;
/// Set-points above which the integral is too slow.
const OVERFULL: u64 = 8;

/// Parameters of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PiConfig {
    /// Time between two steps of the law (default 40 us).
    pub period: Nanos,
    /// Depth that is aimed at, as a time of the drain rate (default 24 us: RoCC's 300 KB at 100G).
    pub set_point: Nanos,
    /// Integral gain in thousandths (default 450).
    pub alpha: u16,
    /// Proportional gain in thousandths (default 2,250).
    pub beta: u16,
    /// Shortest time between two CNPs to one flow (default 60 us, at least 4 us).
    pub min_cnp_interval: Nanos,
}

impl From<&QueueSettings> for PiConfig {
    fn from(settings: &QueueSettings) -> PiConfig {
        PiConfig {
            period: Nanos(settings.tick.0.saturating_mul(2)),
            set_point: settings.time_of(settings.shallow / 5 * 4),
            alpha: 450,
            beta: 2_250,
            min_cnp_interval: settings.min_cnp_interval,
        }
    }
}

const PARAMETERS: &[Declared<PiConfig>] = &[
    time("set_point", |_| 0, |config| &mut config.set_point),
    time(
        "min_cnp_interval",
        |_| CLOSEST.0,
        |config| &mut config.min_cnp_interval,
    ),
    time("period", |_| 1_000, |config| &mut config.period),
    per_mille("alpha", |_| 0, 60_000, |config| &mut config.alpha),
    per_mille("beta", |_| 0, 60_000, |config| &mut config.beta),
];

/// The state of one queue.
#[derive(Debug, Clone)]
pub struct Pi {
    config: PiConfig,
    fair: Option<i128>,
    before: u64,
    stepped: Option<Nanos>,
    falling: bool,
}

impl Pi {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(config: PiConfig) -> Pi {
        Pi {
            config,
            fair: None,
            before: 0,
            stepped: None,
            falling: false,
        }
    }

    /// Takes a step of the law when its time has come, and says the fair rate.
    fn step(&mut self, context: &QueueContext, now: Nanos) -> BitRate {
        let drain = i128::from(context.drain.0);
        let mut fair = self.fair.unwrap_or(drain);
        let due = self
            .stepped
            .is_none_or(|at| now.since(at).0 >= self.config.period.0 - self.config.period.0 / 8);
        if due {
            let set_point = i128::from(context.drain.bytes_in(self.config.set_point));
            let depth = i128::from(context.depth);
            let error = depth - set_point;
            let slope = depth - i128::from(self.before);
            self.falling = slope < 0;
            let push = error * i128::from(self.config.alpha) + slope * i128::from(self.config.beta);
            fair = (fair - push * GAIN * drain / REFERENCE / 1_000)
                .clamp((drain / 1_000).max(1), drain.max(1));
            (self.before, self.stepped, self.fair) = (context.depth, Some(now), Some(fair));
        }
        BitRate(u64::try_from(fair).unwrap_or(u64::MAX))
    }
}

impl Policy for Pi {
    fn decide(&mut self, context: &QueueContext, now: Nanos) -> Decision {
        let fair = self.step(context, now);
        if context.depth <= context.drain.bytes_in(self.config.set_point) / 2 {
            return Decision::none(Amount::None, Reason::Idle);
        }
        if fair >= context.drain {
            return Decision::none(Amount::None, Reason::SetPoint);
        }
        let overfull = context.depth > OVERFULL * context.drain.bytes_in(self.config.set_point);
        if self.falling && !overfull {
            return Decision::none(Amount::Many, Reason::Draining);
        }
        let spacing = if overfull {
            // Half a period less an eighth: a tick, as two make a period.
            self.config
                .min_cnp_interval
                .min(Nanos(self.config.period.0 / 16 * 7))
        } else {
            self.config.min_cnp_interval
        };
        Decision {
            wanted: Amount::Many,
            amount: Amount::Many,
            choice: Choice::Above(fair),
            few: 1_000,
            spacing: spacing.max(CLOSEST),
            reason: Reason::Overload,
        }
    }

    /// Nobody is told before the fair rate is below that of the fastest sender: it begins there.
    fn sent(&mut self, context: &QueueContext, _: &Decision, round: &Round, _: Nanos) {
        if let Some(fair) = self.fair.as_mut().filter(|_| round.fastest.0 > 0) {
            let least = i128::from(context.drain.0 / 1_000).max(1);
            *fair = (*fair).min(i128::from(round.fastest.0).max(least));
        }
    }

    fn parameters(&self) -> Parameters {
        parameter::list(PARAMETERS, &self.config)
    }

    fn set(&mut self, name: &str, value: u64) -> Result<(), BadParameter> {
        parameter::set(PARAMETERS, &mut self.config, name, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detector::{Reading, Trend, Zone};

    fn at(depth: u64) -> QueueContext {
        QueueContext {
            reading: Reading {
                depth,
                zone: Zone::Idle,
                confirmed: Zone::Idle,
                trend: Trend::Falling,
            },
            fresh: true,
            depth,
            deep: 1_500_000,
            drain: BitRate(100_000_000_000),
            arrival: BitRate(100_000_000_000),
            mtu: 4_200,
            rates_known: true,
        }
    }

    #[test]
    fn the_fair_rate_falls_above_the_set_point_and_rises_below_it() {
        let mut policy = Pi::new(PiConfig::default());
        let mut now = Nanos::ZERO;
        let mut step = |policy: &mut Pi, depth| {
            now += Nanos::from_micros(40);
            policy.step(&at(depth), now).0
        };
        assert_eq!(step(&mut policy, 0), 100_000_000_000);
        let first = step(&mut policy, 600_000);
        let second = step(&mut policy, 600_000);
        assert!(
            second < first && first < 100_000_000_000,
            "{first} {second}"
        );
        // 300 KB above: 0.45 * 300 KB * 16,666 bit/s a byte.
        assert_eq!(first - second, 2_249_910_000);
        assert!(step(&mut policy, 100_000) > second);
    }

    #[test]
    fn who_is_above_the_fair_rate_is_told_and_an_empty_queue_tells_nobody() {
        let mut policy = Pi::new(PiConfig::default());
        let decision = policy.decide(&at(900_000), Nanos::ZERO);
        assert!(matches!(decision.choice, Choice::Above(rate) if rate.0 < 100_000_000_000));
        assert_eq!(decision.spacing, Nanos::from_micros(60));
        // 300 KB is the set-point.
        let overfull = policy.decide(&at(2_400_001), Nanos::from_micros(20));
        assert_eq!(overfull.spacing, Nanos(17_500));
        assert_eq!(
            policy.decide(&at(0), Nanos::from_micros(40)).amount,
            Amount::None
        );
    }

    #[test]
    fn a_falling_queue_is_left_alone_unless_it_is_overfull() {
        let mut policy = Pi::new(PiConfig::default());
        let mut now = Nanos::ZERO;
        let mut reason = |depth| {
            now += Nanos::from_micros(40);
            policy.decide(&at(depth), now).reason
        };
        assert_eq!(reason(2_000_000), Reason::Overload);
        assert_eq!(reason(1_900_000), Reason::Draining);
        assert_eq!(reason(1_900_000), Reason::Overload);
        assert_eq!(reason(3_000_000), Reason::Overload);
        assert_eq!(reason(2_900_000), Reason::Overload);
    }

    /// At 400G nobody was told before the fair rate had come down from the whole link to the 100G of each sender: 1.6 times ECN's peak.
    #[test]
    fn the_fair_rate_begins_at_the_fastest_sender_and_not_at_the_link() {
        let mut policy = Pi::new(PiConfig::default());
        let context = QueueContext {
            drain: BitRate(400_000_000_000),
            ..at(1_300_000)
        };
        let fair = |policy: &mut Pi, us| match policy.decide(&context, Nanos::from_micros(us)) {
            Decision {
                choice: Choice::Above(fair),
                ..
            } => fair.0,
            other => panic!("{other:?}"),
        };
        let first = fair(&mut policy, 40);
        assert!(first > 200_000_000_000, "{first}");
        let decision = policy.decide(&context, Nanos::from_micros(40));
        let round = |gigabits: u64| Round {
            fastest: BitRate(gigabits * 1_000_000_000),
            ..Round::default()
        };
        // Nobody was looked at: nothing is known.
        policy.sent(&context, &decision, &round(0), Nanos::from_micros(40));
        assert!(fair(&mut policy, 80) > 150_000_000_000);
        policy.sent(&context, &decision, &round(100), Nanos::from_micros(80));
        let next = fair(&mut policy, 120);
        assert!((50_000_000_000..100_000_000_000).contains(&next), "{next}");
    }
}

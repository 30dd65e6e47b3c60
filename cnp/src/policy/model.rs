//! `model`: as many CNPs as bring the arrival rate down to the queue's drain rate, and no more.
//!
//! ```text
//!   excess = growth - cuts on their way + (depth - set_point) / horizon
//! ```
//! `growth` is the arrival rate less the departure rate, measured by the depth itself over the shortest time in which it moved by eight frames or 16 us of
//! the drain rate, whichever is more, so that the bursts of cards' rate limiters are none; and over 128 us when it moved less. It starts at the first
//! evaluation of a queue that is not empty: the queue may have begun to grow at any time since the one before, and dividing by a whole interval then
//! gives too little. A queue that was empty less than `filter` ticks ago and is below `deep` is left alone, as it may be a microburst. `cuts on their way` is the rate that those signalled are expected to give up
//! and that does not show yet: all of it until the feedback delay has passed, then less and less, as more of the time over which the growth is
//! measured lies after that; and never more than the part by which the growth has not fallen since they were signalled, as the delay is not known
//! at first and the default is many times too long for a near sender. When the growth has fallen by a quarter of the drain rate more than expected,
//! nobody is signalled. The last term takes the queue to the set-point, so that the link never idles: with a pool 200 us of the drain rate and a quarter
//! of the pool at most, without one 4/3 of `shallow` (40 us); slowly, because a sender that was cut too far raises its rate only every 300 us, and never
//! by more than a quarter of the drain rate.
//!
//! A flow gives up its rate times half of its DCQCN alpha (`dcqcn.rs`): one half at the first CNP, little when it was
//! signalled long ago. No flow is signalled that would give up more than twice the rate that
//! is left to cut, so that the sum lands near the drain rate from either side. The choice goes by max-min fair rate: flows whose rate lies above
//! the level that is left to each when all above it give up the excess together, heaviest (by bytes) first. The level is that of the 256 heaviest.
//!
//! When flows are too many to be read often enough, their rates are not known and the table of [`super::npcc`] decides.

use arrayvec::ArrayVec;
use npcc_pipeline::units::{BitRate, Nanos};

use super::in_flight::{InFlight, SHORTEST, per_second};
use super::npcc::{Npcc, NpccConfig};
use super::parameter::{self, Declared, time};
use super::{
    Amount, BadParameter, Choice, Decision, NIC_MIN_CNP_INTERVAL, Parameters, Policy, PolicyInputs,
    QueueContext, Reason, RoundOutcome,
};
use crate::detector::ORDER;

/// Number of evaluations remembered; they cover more than [`LONGEST`] at the default interval.
const LOOKS: usize = 40;
/// Number of frames by which the depth must have moved for its movement to count as more than the order of packets.
const SIGNIFICANT: u64 = 8;
/// Movement, as a time of the drain rate, that counts as more than the bursts of cards' rate limiters: 200 KB at 100 Gb/s are three bursts of
/// 64 KB. With 8 us goodput fell to 0.85 in the failover of the acceptance rows; with 32 us an excess is seen later.
const BURSTS: Nanos = Nanos::from_micros(16);
/// Time over which a growth is measured when the depth moved less than that: four bursts of a flow that has a quarter of the link.
const LONGEST: Nanos = Nanos::from_micros(128);
/// Divisor of the drain rate that limits the pull on a deep queue (1/4): senders cut further are not back when it is empty, as their timers need
/// milliseconds for that. With 1/2 near and far senders in one queue shared it 65 to 35, with 1/10 no better than with 1/4.
const PULLS: u64 = 4;
/// Divisor of the drain rate that gives the tolerated excess (1/50).
const DEAD_BAND: u64 = 50;

/// Target depth of a queue with a pool, as a time of the drain rate. Over the closed applications of the acceptance rows the steps' geometric mean
/// beside the best baseline is 0.998 with 40 us, 0.993 with 100, 0.991 with 200, 1.001 with 400, 1.030 with 800; the mice's 99th percentile
/// of slowdown 1.2, 1.2, 1.4, 1.8, 2.7.
const SET_POINT: Nanos = Nanos::from_micros(200);

/// Settings of the policy `model`; `set_point` is a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelConfig {
    /// Time between two evaluations of the queue (default 4 us, the shortest time between two CNPs that count).
    pub look: Nanos,
    /// Target depth, as a time of the drain rate. Default without a pool: four thirds of `shallow` (40 us). With one, which holds what waits while
    /// senders recover: [`SET_POINT`], and never more than a quarter of the pool.
    pub set_point: Nanos,
    /// Time for which a queue that was empty may rise without being signalled while it is below `deep`: `filter` ticks.
    pub filter: Nanos,
    /// Time in which a depth off the set-point is to be corrected: the NIC's rate-increase timer.
    pub horizon: Nanos,
    /// Parameters of the table that decides when rates are not known.
    pub fallback: NpccConfig,
}

impl From<&PolicyInputs> for ModelConfig {
    fn from(settings: &PolicyInputs) -> ModelConfig {
        ModelConfig {
            look: Nanos(settings.tick.0 / 5).max(NIC_MIN_CNP_INTERVAL),
            set_point: settings.pool.map_or_else(
                || settings.time_of(settings.shallow / 3 * 4),
                |pool| SET_POINT.min(settings.time_of(pool / 4)),
            ),
            filter: settings.filter,
            horizon: settings.recovery,
            fallback: settings.into(),
        }
    }
}

const PARAMETERS: &[Declared<ModelConfig>] =
    &[time("set_point", |_| 0, |config| &mut config.set_point)];

#[derive(Debug, Clone, Copy)]
struct Look {
    at: Nanos,
    depth: u64,
}

/// Rate in bit/s above (or, negative, below) the drain rate, and the time over which it was measured.
#[derive(Debug, Clone, Copy)]
struct Growth {
    rate: i64,
    over: Nanos,
}

/// State of the policy `model` for one queue.
#[derive(Debug, Clone)]
pub struct Model {
    config: ModelConfig,
    looks: ArrayVec<Look, LOOKS>,
    /// Time of the first evaluation since the queue was empty.
    since: Nanos,
    flight: InFlight,
    /// Growth at the last evaluation, in bit/s.
    grew: i64,
    fallback: Npcc,
    fell_back: bool,
}

impl Model {
    /// Makes the policy in its initial state.
    #[must_use]
    pub fn new(config: ModelConfig) -> Model {
        Model {
            fallback: Npcc::new(config.fallback),
            config,
            looks: ArrayVec::new(),
            since: Nanos::ZERO,
            flight: InFlight::default(),
            grew: 0,
            fell_back: false,
        }
    }

    fn remember(&mut self, depth: u64, mtu: u64, now: Nanos) {
        // The depth before says nothing about when it began to grow.
        if depth < ORDER * mtu {
            self.looks.clear();
            return;
        }
        if self.looks.is_empty() {
            self.since = now;
        }
        if self.looks.is_full() {
            self.looks.pop_at(0);
        }
        // A clock that stood still would make the growth infinite.
        if self.looks.last().is_none_or(|last| last.at < now) {
            self.looks.push(Look { at: now, depth });
        }
    }

    /// Returns true if the queue was empty less than a filter's time ago: a rise that ends by then is a microburst.
    fn is_new(&self, now: Nanos) -> bool {
        now.since(self.since) < self.config.filter
    }

    /// Growth over the shortest time in which it is significant, or over all that can be remembered.
    fn growth(&self, context: &QueueContext) -> Option<Growth> {
        let (last, before) = self.looks.split_last()?;
        let enough = (SIGNIFICANT * context.mtu).max(context.drain.bytes_in(BURSTS));
        let significant = |look: &&Look| {
            last.depth.abs_diff(look.depth) >= enough && last.at.since(look.at) >= SHORTEST
        };
        let oldest = before
            .iter()
            .rposition(|look| last.at.since(look.at) >= LONGEST);
        let from = before.get(oldest.unwrap_or(0)..)?;
        let from = from
            .iter()
            .rev()
            .find(significant)
            .or_else(|| before.get(oldest?))?;
        let over = last.at.since(from.at);
        let rate = per_second(last.depth, from.depth, over);
        Some(Growth { rate, over })
    }

    /// Cut in bit/s that the growth does not show yet, and the amount by which it fell more than that.
    fn on_the_way(&mut self, growth: Growth, now: Nanos) -> (i64, i64) {
        let first = self.looks.first();
        let longest = first.map_or(Nanos::ZERO, |first| now.since(first.at));
        self.flight
            .unseen_in(growth.rate, growth.over, longest, now)
    }
}

impl Policy for Model {
    fn decide(&mut self, context: &QueueContext, now: Nanos) -> Decision {
        self.remember(context.depth, context.mtu, now);
        self.fell_back = !context.rates_known;
        if self.fell_back {
            return self.fallback.decide(context, now);
        }
        if context.depth < ORDER * context.mtu {
            return Decision::none(Amount::None, Reason::Idle);
        }
        if context.depth < context.deep && self.is_new(now) {
            return Decision::none(Amount::None, Reason::Jitter);
        }
        let Some(growth) = self.growth(context) else {
            return Decision::none(Amount::None, Reason::Idle);
        };
        let (on_the_way, beyond) = self.on_the_way(growth, now);
        self.grew = growth.rate;
        let set_point = context.drain.bytes_in(self.config.set_point);
        let most = i64::try_from(context.drain.0 / PULLS).unwrap_or(i64::MAX);
        let pull = per_second(context.depth, set_point, self.config.horizon).min(most);
        let wanted = growth.rate.saturating_add(pull);
        let excess = wanted.saturating_sub(on_the_way);
        let band = context.drain.0 / DEAD_BAND;
        let falling = u64::try_from(beyond).unwrap_or(0) > context.drain.0 / 4;
        match u64::try_from(excess) {
            Ok(excess) if excess > band && !falling => Decision {
                wanted: Amount::Many,
                amount: Amount::Many,
                choice: Choice::Cut(BitRate(excess)),
                few: 1_000,
                spacing: NIC_MIN_CNP_INTERVAL,
                reason: Reason::Overload,
            },
            _ if wanted > 0 && (on_the_way > 0 || falling) => {
                Decision::none(Amount::Many, Reason::Feedback)
            }
            _ => Decision::none(Amount::None, Reason::Balanced),
        }
    }

    fn sent(
        &mut self,
        context: &QueueContext,
        decision: &Decision,
        round: &RoundOutcome,
        now: Nanos,
    ) {
        if self.fell_back {
            self.fallback.sent(context, decision, round, now);
        }
        if round.sent == 0 {
            return;
        }
        self.flight.add_to(self.grew, round, now);
    }

    fn guard_sent(&mut self, round: &RoundOutcome, now: Nanos) {
        self.flight.add_to(self.grew, round, now);
    }

    fn holds(&self) -> Nanos {
        if self.fell_back {
            Nanos::ZERO
        } else {
            self.config.set_point
        }
    }

    fn interval(&self) -> Option<Nanos> {
        Some(self.config.look)
    }

    fn fell_back(&self) -> bool {
        self.fell_back
    }

    fn parameters(&self) -> Parameters {
        parameter::list(PARAMETERS, &self.config)
    }

    fn set(&mut self, name: &str, value: u64) -> Result<(), BadParameter> {
        parameter::set(PARAMETERS, &mut self.config, name, value)
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;

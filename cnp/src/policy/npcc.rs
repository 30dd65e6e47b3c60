//! `npcc`: the table of depth and trend ([`crate::detector`]).
//!
//! | answer | who | how often |
//! |---|---|---|
//! | many, rising | every contributor | once a tick; in the n-th tick in a row up to n times, see below |
//! | few | the heaviest ceil(5 %) | one round per queue and `recovery`; 60 us a flow |
//!
//! A CNP to a sender signalled lately costs it little (DCQCN's alpha fades in 0.2 ms), so one a tick does not stop senders that
//! recover at the same moment. While `many` is called for tick after tick, the n-th tick has up to n rounds, 4 us apart, but
//! none once those signalled should have given up
//!
//! ```text
//!   excess = growth over the tick + (depth - deep) / recovery - cuts on their way
//! ```
//! Senders that slow down at the first round end the rise before there is a second. Cuts that are expected and not visible yet are taken off, so a
//! round is not repeated before it can show.
//!
//! Never two CNPs to a flow within 4 us: network cards ignore the second. After a round in the shallow zone
//! the next waits one feedback delay, so that the effect shows before more is cut; the hard zone does not wait.

use npcc_pipeline::units::Nanos;

use super::in_flight::{InFlight, SHORTEST, per_second};
use super::parameter::{self, Declared, per_mille, time};
use super::{
    Amount, BadParameter, Choice, Decision, NIC_MIN_CNP_INTERVAL, Parameters, Policy, PolicyInputs,
    QueueContext, Reason, RoundOutcome,
};
use crate::detector::{Reading, Trend, Zone};

/// Default share of the contributors that counts as few, in thousandths: Huawei's 5 %.
const FEW: u16 = 50;

/// Settings of the policy `npcc`; `recovery` and `few` are parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NpccConfig {
    /// Time between ticks.
    pub tick: Nanos,
    /// Shortest time between two rounds of few: the network card's rate-increase timer.
    pub recovery: Nanos,
    /// Shortest time between two CNPs to one flow, except while deep and rising; at least 4 us.
    pub min_cnp_interval: Nanos,
    /// Time from a CNP to its effect in the queue.
    pub feedback: Nanos,
    /// Share of the contributors that counts as few, in thousandths (default 50).
    pub few: u16,
}

impl From<&PolicyInputs> for NpccConfig {
    fn from(settings: &PolicyInputs) -> NpccConfig {
        NpccConfig {
            tick: settings.tick,
            recovery: settings.recovery,
            min_cnp_interval: settings.min_cnp_interval,
            feedback: settings.feedback,
            few: FEW,
        }
    }
}

const PARAMETERS: &[Declared<NpccConfig>] = &[
    time(
        "recovery",
        |config| config.tick.0,
        |config| &mut config.recovery,
    ),
    per_mille("few", |_| 1, 1_000, |config| &mut config.few),
];

/// Decision of the table for a reading: a pure function, monotone in depth.
#[must_use]
pub fn table(reading: &Reading) -> (Amount, Reason) {
    if reading.zone == Zone::Idle {
        return (Amount::None, Reason::Idle);
    }
    match (reading.confirmed, reading.trend) {
        (Zone::Idle, _) => (Amount::None, Reason::Jitter),
        (Zone::Shallow, Trend::Falling) => (Amount::None, Reason::Emptying),
        (Zone::Shallow, Trend::Rising) => (Amount::Few, Reason::Filling),
        (Zone::Deep | Zone::Hard, Trend::Falling) => (Amount::Few, Reason::Draining),
        (Zone::Deep | Zone::Hard, Trend::Rising) => (Amount::Many, Reason::Overfull),
    }
}

/// State of the policy `npcc` for one queue.
#[derive(Debug, Clone)]
pub struct Npcc {
    config: NpccConfig,
    few_round: Option<Nanos>,
    shallow_round: Option<Nanos>,
    /// Time and depth of the previous tick.
    before: Option<(Nanos, u64)>,
    flight: InFlight,
    /// Rate still to be given up in this tick, in bit/s.
    excess: i64,
    /// Number of rounds of many that this tick may still have.
    rounds: u64,
    /// Number of ticks in a row that called for many.
    rising: u64,
}

impl Npcc {
    /// Makes the policy in its initial state.
    #[must_use]
    pub fn new(config: NpccConfig) -> Npcc {
        Npcc {
            config,
            few_round: None,
            shallow_round: None,
            before: None,
            flight: InFlight::default(),
            excess: 0,
            rounds: 0,
            rising: 0,
        }
    }
}

impl Npcc {
    /// Begins a tick: computes its excess, and the number of rounds it may have.
    fn begin(&mut self, wanted: Amount, context: &QueueContext, now: Nanos) {
        let before = self.before.replace((now, context.depth));
        let (at, depth) = before.unwrap_or((now, context.depth));
        let over = now.since(at).max(SHORTEST);
        let growth = per_second(context.depth, depth, over);
        let above = context.depth.saturating_sub(context.deep);
        let pull = per_second(above, 0, self.config.recovery);
        let unseen = self.flight.unseen(over, over, now);
        self.excess = growth.saturating_add(pull).saturating_sub(unseen);
        self.rising = if wanted == Amount::Many {
            self.rising.saturating_add(1)
        } else {
            0
        };
        self.rounds = self.rising.min(self.config.tick.0 / NIC_MIN_CNP_INTERVAL.0);
    }

    /// Decision between two ticks: every contributor once more, if the tick has called for it.
    fn again(&self) -> Decision {
        if !self.urgent() {
            return Decision::none(Amount::None, Reason::Feedback);
        }
        Decision {
            wanted: Amount::Many,
            amount: Amount::Many,
            choice: Choice::All,
            few: self.config.few,
            spacing: NIC_MIN_CNP_INTERVAL,
            reason: Reason::Overfull,
        }
    }
}

fn within(round: Option<Nanos>, time: Nanos, now: Nanos) -> bool {
    round.is_some_and(|at| now.since(at) < time)
}

impl Policy for Npcc {
    fn decide(&mut self, context: &QueueContext, now: Nanos) -> Decision {
        if !context.fresh {
            return self.again();
        }
        let (wanted, reason) = table(&context.reading);
        self.begin(wanted, context, now);
        let (config, reading) = (&self.config, &context.reading);
        if wanted == Amount::None {
            return Decision::none(wanted, reason);
        }
        if reading.zone != Zone::Hard && within(self.shallow_round, config.feedback, now) {
            self.rounds = 0;
            return Decision::none(wanted, Reason::Feedback);
        }
        if wanted == Amount::Few && within(self.few_round, config.recovery, now) {
            return Decision::none(wanted, Reason::Recovery);
        }
        let spacing = match wanted {
            // The previous tick may have had rounds until just now.
            Amount::Many if self.rising > 1 => NIC_MIN_CNP_INTERVAL,
            // A tick that comes an eighth early is still a tick.
            Amount::Many => Nanos(config.tick.0 - config.tick.0 / 8),
            Amount::Few | Amount::None => config.min_cnp_interval,
        };
        Decision {
            wanted,
            amount: wanted,
            choice: Choice::All,
            few: self.config.few,
            spacing: spacing.max(NIC_MIN_CNP_INTERVAL),
            reason,
        }
    }

    fn sent(
        &mut self,
        context: &QueueContext,
        decision: &Decision,
        round: &RoundOutcome,
        now: Nanos,
    ) {
        self.rounds = self.rounds.saturating_sub(1);
        if round.sent == 0 {
            return;
        }
        self.flight.add(round, now);
        let cut = i64::try_from(round.cut.0).unwrap_or(i64::MAX);
        self.excess = self.excess.saturating_sub(cut);
        if decision.amount == Amount::Few {
            self.few_round = Some(now);
        }
        if context.reading.zone == Zone::Shallow {
            self.shallow_round = Some(now);
        }
    }

    fn urgent(&self) -> bool {
        self.rounds > 0 && self.excess > 0
    }

    fn parameters(&self) -> Parameters {
        parameter::list(PARAMETERS, &self.config)
    }

    fn set(&mut self, name: &str, value: u64) -> Result<(), BadParameter> {
        parameter::set(PARAMETERS, &mut self.config, name, value)
    }
}

#[cfg(test)]
#[path = "npcc_tests.rs"]
mod tests;

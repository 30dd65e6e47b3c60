//! Never worse: what a scheme did held against what ECN alone did in the same place with the same seed.
//!
//! | figure | may be |
//! |---|---|
//! | peak of the queue | 1.05 times ECN's, and two bursts of full frames or 10 us of the drain rate, whichever is more |
//! | pauses | ECN's |
//! | goodput | ECN's less 0.01 |
//! | Jain's index | ECN's less 0.05 |
//!
//! The median over the seeds of each figure's excess must be within that; the peak of no seed beyond 1.2 times ECN's and the
//! same allowance.

use npcc_config::units::BitRate;
use npcc_pipeline::frame::wire_len;
use npcc_pipeline::units::BURST;

use crate::engine::Outcome;
use crate::scenario::Scenario;
use crate::wire::OVERHEAD;

/// What the median of the peaks may be of ECN's, and what the worst may be.
const PEAK: f64 = 1.05;
const WORST: f64 = 1.2;
/// What is lost of goodput and of Jain's index at most.
const GOODPUT: f64 = 0.01;
const JAIN: f64 = 0.05;

/// One seed: ECN alone, and the scheme.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// What ECN alone did.
    pub ecn: &'a Outcome,
    /// What the scheme did.
    pub with: &'a Outcome,
}

/// What was worse than it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Harm {
    /// Which figure.
    pub figure: &'static str,
    /// ECN's, in the seed that stands for the figure.
    pub ecn: f64,
    /// The scheme's, there.
    pub with: f64,
    /// How it compares: the scheme's over ECN's for peaks and pauses, ECN's less the scheme's for shares.
    pub by: f64,
    /// What that may be at most.
    pub limit: f64,
}

/// Bytes that no peak is held against: two bursts of full frames, or 10 us of the drain rate.
#[must_use]
pub fn allowance(scenario: &Scenario) -> u64 {
    let frame = u64::from(wire_len(OVERHEAD + usize::from(scenario.mtu)));
    let BitRate(bits) = scenario.watched_rate();
    let drain = bits / 8 / 100_000;
    drain.max(2 * BURST as u64 * frame)
}

/// All that was worse, over the seeds; none is what is wanted. No pairs, no harm.
#[must_use]
pub fn of(pairs: &[Pair], allowance: u64) -> Vec<Harm> {
    let bytes = allowance as f64;
    let peak = |pair: &Pair| {
        let (ecn, with) = (pair.ecn.peak as f64, pair.with.peak as f64);
        (ecn, with, (with - bytes).max(0.0) / ecn.max(1.0))
    };
    let pauses = |pair: &Pair| {
        let (ecn, with) = (pair.ecn.pauses as f64, pair.with.pauses as f64);
        // None where there are none with ECN either.
        (
            ecn,
            with,
            if with > ecn { with / ecn.max(0.5) } else { 1.0 },
        )
    };
    let share = |of: fn(&Outcome) -> f64| {
        move |pair: &Pair| {
            let (ecn, with) = (of(pair.ecn), of(pair.with));
            (ecn, with, ecn - with)
        }
    };
    let median = |figure, limit, values: &dyn Fn(&Pair) -> (f64, f64, f64)| {
        harm(figure, limit, middle(pairs, values))
    };
    let found = [
        median("peak", PEAK, &peak),
        harm("peak, worst", WORST, worst(pairs, &peak)),
        median("pauses", 1.0, &pauses),
        median("goodput", GOODPUT, &share(|outcome| outcome.goodput)),
        median("Jain", JAIN, &share(|outcome| outcome.jain)),
    ];
    found.into_iter().flatten().collect()
}

type Value = (f64, f64, f64);

fn harm(figure: &'static str, limit: f64, value: Option<Value>) -> Option<Harm> {
    let (ecn, with, by) = value?;
    // What rounding makes of a bound is not beyond it.
    (by > limit + 1e-9).then_some(Harm {
        figure,
        ecn,
        with,
        by,
        limit,
    })
}

fn sorted(pairs: &[Pair], value: &dyn Fn(&Pair) -> Value) -> Vec<Value> {
    let mut values: Vec<Value> = pairs.iter().map(value).collect();
    values.sort_by(|a, b| a.2.total_cmp(&b.2));
    values
}

/// The upper one of the two in the middle, where their number is even.
fn middle(pairs: &[Pair], value: &dyn Fn(&Pair) -> Value) -> Option<Value> {
    sorted(pairs, value).get(pairs.len() / 2).copied()
}

fn worst(pairs: &[Pair], value: &dyn Fn(&Pair) -> Value) -> Option<Value> {
    sorted(pairs, value).last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(peak: u64, pauses: u64, goodput: f64, jain: f64) -> Outcome {
        Outcome {
            peak,
            pauses,
            goodput,
            jain,
            ..Outcome::default()
        }
    }

    fn figures(ecn: &[Outcome], with: &[Outcome]) -> Vec<&'static str> {
        let pairs = ecn.iter().zip(with).map(|(ecn, with)| Pair { ecn, with });
        let harms = of(&pairs.collect::<Vec<_>>(), 100);
        harms.iter().map(|harm| harm.figure).collect()
    }

    #[test]
    fn each_bound_is_kept_to_the_last_digit_and_no_further() {
        let ecn = [outcome(1_000, 7, 0.9, 0.9)];
        let at =
            |peak, pauses, goodput, jain| figures(&ecn, &[outcome(peak, pauses, goodput, jain)]);
        assert!(at(1_150, 7, 0.89, 0.85).is_empty(), "all at their bounds");
        assert_eq!(at(1_151, 7, 0.9, 0.9), ["peak"]);
        assert_eq!(at(1_301, 7, 0.9, 0.9), ["peak", "peak, worst"]);
        assert_eq!(at(1_000, 8, 0.9, 0.9), ["pauses"]);
        assert_eq!(at(1_000, 0, 0.889, 0.9), ["goodput"]);
        assert_eq!(at(1_000, 0, 0.9, 0.849), ["Jain"]);
        assert_eq!(
            figures(&[outcome(0, 0, 1.0, 1.0)], &[outcome(0, 1, 1.0, 1.0)]),
            ["pauses"]
        );
    }

    #[test]
    fn the_median_counts_and_of_peaks_the_worst_too() {
        let ecn = vec![outcome(1_000, 0, 0.9, 0.9); 8];
        let mut with = ecn.clone();
        for one in &mut with[..3] {
            *one = outcome(1_290, 3, 0.5, 0.5);
        }
        assert!(figures(&ecn, &with).is_empty(), "three of eight");
        with[3] = with[0].clone();
        assert_eq!(figures(&ecn, &with), ["peak", "pauses", "goodput", "Jain"]);
        with = ecn.clone();
        with[5].peak = 1_400;
        assert_eq!(figures(&ecn, &with), ["peak, worst"]);
    }
}

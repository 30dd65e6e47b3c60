//! Verdicts: which targets of a scenario were met, and by how much the others were missed.

use std::fmt::Write;

use super::baseline;
use crate::figures::Figures;
use crate::harm;
use crate::scenario::{Case, Scenario, Scheme, Target};
use crate::sweep::Run;

/// Returns a line for each target and scheme: the number of applicable runs that met it, and the worst of them; `seeds[n]` are the
/// runs of the n-th seed.
#[must_use]
pub fn verdicts(scenario: &Scenario, seeds: &[Vec<Run>]) -> String {
    let mut text = String::new();
    for target in &scenario.targets {
        for scheme in &target.scheme {
            let is_meant = |case: &Case| case.scheme == *scheme && target.is_for(case);
            if target.never_worse {
                text.push_str(&never_worse(scenario, seeds, *scheme, &is_meant));
            }
            let bounds = bounds(target);
            text.extend(bounds.filter_map(|bound| bound.verdict(*scheme, seeds, &is_meant)));
        }
    }
    text
}

/// Returns a line for all cases of a scheme, and one for each figure that was worse than ECN's.
fn never_worse(
    scenario: &Scenario,
    seeds: &[Vec<Run>],
    scheme: Scheme,
    is_meant: &dyn Fn(&Case) -> bool,
) -> String {
    let allowance = harm::allowance(scenario);
    let gbps = scenario.watched_rate().0 as f64 / 1e9;
    let (mut cases, mut lines) = (0, String::new());
    let mut held = 0;
    let chosen = seeds.first().into_iter().flatten().enumerate();
    for (at, run) in chosen.filter(|(_, run)| is_meant(&run.case)) {
        let pairs = seeds.iter().filter_map(|runs| {
            let with = runs.get(at)?;
            let ecn = baseline(runs, with)?;
            Some([ecn, with].map(|run| Figures::of(&run.outcome, gbps)))
        });
        let (ecn, with): (Vec<_>, Vec<_>) = pairs.map(|[ecn, with]| (ecn, with)).unzip();
        let harms = harm::of(&ecn, &with, allowance);
        cases += 1;
        held += u32::from(harms.is_empty());
        for harm in harms {
            let _ = writeln!(
                lines,
                "       {}: {} {} against {} of ecn",
                run.case,
                harm.figure,
                digits(harm.with),
                digits(harm.ecn)
            );
        }
    }
    let word = if held == cases { "met   " } else { "MISSED" };
    format!(
        "{word} {:<18} never worse than ecn  {held}/{cases} cases\n{lines}",
        scheme.to_string()
    )
}

fn digits(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1_000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

/// Number of a run, from the run and all runs of its seed; `None` where there is nothing to compare it with.
type Value = fn(&[Run], &Run) -> Option<f64>;

/// Bound on one number of a run.
struct Bound {
    name: &'static str,
    limit: f64,
    at_most: bool,
    value: Value,
}

impl Bound {
    /// Returns a line with the number of runs that met the bound, and the worst of them; `None` if it applies to no run.
    fn verdict(
        &self,
        scheme: Scheme,
        seeds: &[Vec<Run>],
        is_meant: &dyn Fn(&Case) -> bool,
    ) -> Option<String> {
        let mut results = Vec::new();
        for runs in seeds {
            for run in runs.iter().filter(|run| is_meant(&run.case)) {
                results.extend((self.value)(runs, run).map(|value| (value, run.case)));
            }
        }
        let margin = |(value, _): &(f64, Case)| self.margin(*value);
        let worst = results
            .iter()
            .min_by(|a, b| margin(a).total_cmp(&margin(b)));
        let (value, case) = worst?;
        let met = results.iter().filter(|one| margin(one) >= 0.0).count();
        let word = if met == results.len() {
            "met   "
        } else {
            "MISSED"
        };
        Some(format!(
            "{word} {:<18} {} {} {}  {met}/{} runs, worst {} ({case})\n",
            scheme.to_string(),
            self.name,
            if self.at_most { "<=" } else { ">=" },
            digits(self.limit),
            results.len(),
            digits(*value),
        ))
    }

    /// Returns the distance from the limit; not negative when the bound is met.
    fn margin(&self, value: f64) -> f64 {
        if self.at_most {
            self.limit - value
        } else {
            value - self.limit
        }
    }
}

/// Returns the bounds of a target.
fn bounds(target: &Target) -> impl Iterator<Item = Bound> {
    let least: [(_, _, Value); 5] = [
        ("times below ecn's peak", target.times_below_ecn, ratio),
        ("utilisation", target.utilisation, |_, run| {
            Some(run.outcome.utilisation)
        }),
        // A difference of one thousandth is noise.
        (
            "utilisation above ecn's",
            target.utilisation_of_ecn.then_some(-0.001),
            gain,
        ),
        ("goodput", target.goodput, |_, run| {
            Some(run.outcome.goodput)
        }),
        ("Jain", target.jain, |_, run| Some(run.outcome.jain)),
    ];
    let most: [(_, _, Value); 2] = [
        (
            "pauses",
            target.pauses.map(|pauses| pauses as f64),
            |_, run| Some(run.outcome.pauses as f64),
        ),
        ("peak, longest over shortest", target.flat, spread),
    ];
    let least = least.into_iter().map(|one| (false, one));
    let all = least.chain(most.into_iter().map(|one| (true, one)));
    all.filter_map(|(at_most, (name, limit, value))| {
        Some(Bound {
            name,
            limit: limit?,
            at_most,
            value,
        })
    })
}

/// Returns how many times lower a run's peak is than ECN's.
fn ratio(runs: &[Run], run: &Run) -> Option<f64> {
    let ecn = baseline(runs, run)?;
    Some(ecn.outcome.peak as f64 / run.outcome.peak.max(1) as f64)
}

/// Returns the utilisation of a run above ECN's.
fn gain(runs: &[Run], run: &Run) -> Option<f64> {
    Some(run.outcome.utilisation - baseline(runs, run)?.outcome.utilisation)
}

/// Returns the ratio of the highest to the lowest peak among the runs that differ from this one at most in length.
#[allow(clippy::unnecessary_wraps, reason = "a `Value`")]
fn spread(runs: &[Run], run: &Run) -> Option<f64> {
    let alike = |other: &&Run| {
        other.case
            == Case {
                length: other.case.length,
                ..run.case
            }
    };
    let peaks = || runs.iter().filter(alike).map(|run| run.outcome.peak as f64);
    let most = peaks().fold(0.0, f64::max);
    Some(most / peaks().fold(f64::INFINITY, f64::min).max(1.0))
}

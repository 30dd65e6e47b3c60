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
            for bound in bounds(target) {
                let runs = seeds
                    .iter()
                    .flat_map(|runs| runs.iter().map(move |run| (runs, run)));
                let results =
                    runs.filter(|(_, run)| is_meant(&run.case))
                        .filter_map(|(runs, run)| {
                            let value = (bound.value)(runs, run)?;
                            Some((bound.margin(value), value, run.case))
                        });
                let results: Vec<(f64, f64, Case)> = results.collect();
                let met = results.iter().filter(|(margin, ..)| *margin >= 0.0).count();
                let worst = results.iter().min_by(|a, b| a.0.total_cmp(&b.0));
                let Some((_, value, case)) = worst else {
                    continue;
                };
                let word = if met == results.len() {
                    "met   "
                } else {
                    "MISSED"
                };
                let _ = writeln!(
                    text,
                    "{word} {:<18} {} {}  {met}/{} runs, worst {} ({case})",
                    scheme.to_string(),
                    bound.name,
                    bound.bound(),
                    results.len(),
                    digits(*value),
                );
            }
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

type Value<'a> = Box<dyn Fn(&[Run], &Run) -> Option<f64> + 'a>;

/// Bound on one number of a run.
struct Bound<'a> {
    name: &'static str,
    limit: f64,
    at_most: bool,
    value: Value<'a>,
}

impl Bound<'_> {
    /// Returns the distance from the limit; not negative when the bound is met.
    fn margin(&self, value: f64) -> f64 {
        if self.at_most {
            self.limit - value
        } else {
            value - self.limit
        }
    }

    fn bound(&self) -> String {
        let sign = if self.at_most { "<=" } else { ">=" };
        format!("{sign} {}", digits(self.limit))
    }
}

fn bounds(target: &Target) -> Vec<Bound<'_>> {
    let least = |name, limit: Option<f64>, value: Value<'static>| {
        limit.map(|limit| Bound {
            name,
            limit,
            at_most: false,
            value,
        })
    };
    let ratio = |runs: &[Run], run: &Run| {
        let ecn = baseline(runs, run)?;
        Some(ecn.outcome.peak as f64 / run.outcome.peak.max(1) as f64)
    };
    let gain = |runs: &[Run], run: &Run| {
        Some(run.outcome.utilisation - baseline(runs, run)?.outcome.utilisation)
    };
    let spread = |runs: &[Run], run: &Run| {
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
    };
    let bounds = [
        least(
            "times below ecn's peak",
            target.times_below_ecn,
            Box::new(ratio),
        ),
        least(
            "utilisation",
            target.utilisation,
            Box::new(|_, run| Some(run.outcome.utilisation)),
        ),
        // A difference of one thousandth is noise.
        least(
            "utilisation above ecn's",
            target.utilisation_of_ecn.then_some(-0.001),
            Box::new(gain),
        ),
        least(
            "goodput",
            target.goodput,
            Box::new(|_, run| Some(run.outcome.goodput)),
        ),
        least(
            "Jain",
            target.jain,
            Box::new(|_, run| Some(run.outcome.jain)),
        ),
        target.pauses.map(|pauses| Bound {
            name: "pauses",
            limit: pauses as f64,
            at_most: true,
            value: Box::new(|_, run| Some(run.outcome.pauses as f64)),
        }),
        target.flat.map(|limit| Bound {
            name: "peak, longest over shortest",
            limit,
            at_most: true,
            value: Box::new(spread),
        }),
    ];
    bounds.into_iter().flatten().collect()
}

//! Measure of a scheme: compares its runs with those of a baseline in the same scenario, over several seeds of each.
//!
//! | level | figures, in this order |
//! |---|---|
//! | 1. what the application gets | mean step time of each application; goodput of the worst class of endless flows, as a share of its fair one (of all connections where no class is named); slowdown of short flows, 99th percentile |
//! | 2. pauses and drops | frames dropped; pauses begun |
//! | 3. the delay that others in the class see | depth that was not exceeded for 99 % of the time, as a time of the link's rate; slowdown of short flows, median |
//! | 4. depth | peak |
//!
//! The first figure that is no tie decides. It is a tie unless both hold:
//!
//! 1. **It matters**: the medians differ by more than [`SMALL`] of the larger one.
//! 2. **It is not chance**: in [`PAIRS`] of all pairs of a run of the one and a run of the other it is the same one that is better (the rank-sum
//!    test of Mann and Whitney). Runs of one seed are not paired: a queue is chaotic, and two of one seed are as unlike as any two.
//!
//! A run that gets better in a figure makes no finding worse, and a comparison turned round has the opposite verdict (`tests.rs`).

mod table;

use std::fmt;

use crate::figures::Figures;
pub use table::table;

/// Difference of the medians, as a share of the larger, up to which they are equal.
pub const SMALL: f64 = 0.02;
/// Share of the pairs of runs in which the same one must be better; equal ones count half. Two sets of eight runs of one kind reach it in
/// 1.4 % of cases.
pub const PAIRS: f64 = 0.82;
/// Share of the time above `kmin` from which a baseline's queue counts as congested.
pub const CONGESTED: f64 = 0.05;

/// Kind of a figure, the more important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Step time, goodput of the worst class, completion time of short flows.
    Application,
    /// Drops and pauses.
    Loss,
    /// Delay of what shares the queue.
    Delay,
    /// Peak depth of the queue.
    Depth,
}

/// A figure that is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Figure {
    /// Mean step time of an application, by its index and name, in ms.
    Step(usize, String),
    /// Goodput of the worst class, as a share of its fair one.
    WorstClass,
    /// Goodput of all connections, as a share of the link.
    Goodput,
    /// Slowdown of short flows: 0 is the median, 1 the 99th percentile.
    Slowdown(usize),
    /// Frames dropped.
    Drops,
    /// Pauses begun.
    Pauses,
    /// Depth not exceeded for 99 % of the time, in us of the link's rate.
    Delay,
    /// Peak depth in MB.
    Peak,
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Step(_, name) => out.pad(&format!("step {name} ms")),
            Figure::WorstClass => out.pad("worst class"),
            Figure::Goodput => out.pad("goodput"),
            Figure::Slowdown(0) => out.pad("slowdown p50"),
            Figure::Slowdown(_) => out.pad("slowdown p99"),
            Figure::Drops => out.pad("drops"),
            Figure::Pauses => out.pad("pauses"),
            Figure::Delay => out.pad("delay p99 us"),
            Figure::Peak => out.pad("peak MB"),
        }
    }
}

impl Figure {
    /// Returns the figures that apply to a run, in the order in which they decide.
    #[must_use]
    pub fn of(run: &Figures) -> Vec<Figure> {
        let applications = run.applications.iter().enumerate();
        let mut figures: Vec<Figure> = applications
            .map(|(at, one)| Figure::Step(at, one.name.clone()))
            .collect();
        let short = run.slowdown.is_some();
        if run.worst.is_some() {
            figures.push(Figure::WorstClass);
        } else if run.applications.is_empty() {
            figures.push(Figure::Goodput);
        }
        figures.extend(short.then_some(Figure::Slowdown(1)));
        figures.extend([Figure::Drops, Figure::Pauses, Figure::Delay]);
        figures.extend(short.then_some(Figure::Slowdown(0)));
        figures.push(Figure::Peak);
        figures
    }

    /// Returns the figure's level.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Figure::Step(..) | Figure::WorstClass | Figure::Goodput | Figure::Slowdown(1..) => {
                Level::Application
            }
            Figure::Drops | Figure::Pauses => Level::Loss,
            Figure::Delay | Figure::Slowdown(0) => Level::Delay,
            Figure::Peak => Level::Depth,
        }
    }

    /// Returns true if more is better.
    const fn is_gain(&self) -> bool {
        matches!(self, Figure::WorstClass | Figure::Goodput)
    }

    /// Returns the value of a run.
    #[must_use]
    pub fn value(&self, run: &Figures) -> f64 {
        match self {
            Figure::Step(at, _) => {
                let one = run.applications.get(*at);
                one.map_or(f64::INFINITY, |one| one.mean)
            }
            Figure::WorstClass => run.worst.unwrap_or(0.0),
            Figure::Goodput => run.goodput,
            Figure::Slowdown(which) => run
                .slowdown
                .and_then(|both| both.get(*which).copied())
                .unwrap_or(f64::INFINITY),
            Figure::Drops => run.dropped as f64,
            Figure::Pauses => run.pauses as f64,
            Figure::Delay => run.delay[1],
            Figure::Peak => run.peak as f64 / 1e6,
        }
    }

    /// Returns the median of the runs, and the worst.
    #[must_use]
    pub fn values(&self, runs: &[Figures]) -> Values {
        Values::of(runs, self.is_gain(), |run| self.value(run))
    }

    /// Returns which of two values is the better one, beyond a rounding error.
    fn better(&self, baseline: f64, scheme: f64) -> Verdict {
        let gain = if self.is_gain() {
            scheme - baseline
        } else {
            baseline - scheme
        };
        match gain {
            gain if gain > 1e-9 => Verdict::Better,
            gain if gain < -1e-9 => Verdict::Worse,
            // Two infinite times are equal.
            _ => Verdict::Tie,
        }
    }

    /// Compares one figure of the runs.
    #[must_use]
    pub fn compare(&self, baseline: &[Figures], scheme: &[Figures]) -> Verdict {
        let (of_baseline, of_scheme) = (self.values(baseline).median, self.values(scheme).median);
        let larger = of_baseline.abs().max(of_scheme.abs());
        if (of_baseline - of_scheme).abs() <= SMALL * larger + 1e-9 && larger.is_finite() {
            return Verdict::Tie;
        }
        let verdict = self.better(of_baseline, of_scheme);
        let pairs = baseline.iter().flat_map(|baseline| {
            let value = self.value(baseline);
            scheme
                .iter()
                .map(move |scheme| self.better(value, self.value(scheme)))
        });
        let share = pairs.map(|pair| match pair {
            Verdict::Tie => 0.5,
            pair if pair == verdict => 1.0,
            _ => 0.0,
        });
        let share = share.sum::<f64>() / (baseline.len() * scheme.len()).max(1) as f64;
        if share >= PAIRS {
            verdict
        } else {
            Verdict::Tie
        }
    }
}

/// Median and worst of the runs of a scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Values {
    /// Middle value, or the mean of the two in the middle.
    pub median: f64,
    /// Value of the worst run.
    pub worst: f64,
}

impl Values {
    /// Returns the median of a figure of the runs, and the worst; `is_gain`: more is better.
    #[must_use]
    pub fn of(runs: &[Figures], is_gain: bool, figure: impl Fn(&Figures) -> f64) -> Values {
        let mut all: Vec<f64> = runs.iter().map(figure).collect();
        all.sort_by(f64::total_cmp);
        let worst = if is_gain { all.first() } else { all.last() };
        Values {
            median: median(&all).unwrap_or(f64::NAN),
            worst: worst.copied().unwrap_or(f64::NAN),
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format!("{} ({})", short(self.median), short(self.worst)))
    }
}

/// Formats a number with about four digits.
#[must_use]
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 2.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Verdict on a scheme beside a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The baseline is better.
    Worse,
    /// No figure differs beyond chance.
    Tie,
    /// The scheme is better.
    Better,
}

/// Result of a comparison: the verdict, and the figure that decided; in a tie, the first figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Verdict on the scheme.
    pub verdict: Verdict,
    /// Figure that decided.
    pub figure: Figure,
    /// Median and worst of the baseline's runs.
    pub baseline: Values,
    /// Median and worst of the scheme's runs.
    pub scheme: Values,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Worse => "worse",
            Verdict::Tie => "tie",
            Verdict::Better => "better",
        };
        let Finding {
            figure,
            baseline,
            scheme,
            ..
        } = self;
        out.pad(&format!("{verdict}: {figure} {scheme} against {baseline}"))
    }
}

/// Compares a scheme's runs with a baseline's; `None` without runs of both.
#[must_use]
pub fn compare(baseline: &[Figures], scheme: &[Figures]) -> Option<Finding> {
    let figures = Figure::of(baseline.first()?);
    scheme.first()?;
    let verdict = |figure: &Figure| figure.compare(baseline, scheme);
    let decides = figures
        .iter()
        .find(|figure| verdict(figure) != Verdict::Tie);
    let figure = decides.or_else(|| figures.first())?;
    Some(Finding {
        verdict: verdict(figure),
        figure: figure.clone(),
        baseline: figure.values(baseline),
        scheme: figure.values(scheme),
    })
}

/// Returns true if the runs of a baseline show congestion: pauses, drops, or a queue above `kmin` for [`CONGESTED`] of the time, in the median.
#[must_use]
pub fn is_congested(runs: &[Figures]) -> bool {
    let median = |of: fn(&Figures) -> f64| Values::of(runs, false, of).median;
    median(|run| run.pauses as f64) > 0.0
        || median(|run| run.dropped as f64) > 0.0
        || median(|run| run.above) >= CONGESTED
}

/// Returns the middle of sorted values, or the mean of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(if upper == lower {
        upper
    } else {
        f64::midpoint(lower, upper)
    })
}

#[cfg(test)]
mod tests;

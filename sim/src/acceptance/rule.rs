//! Rules of the rows: bounds on the figures of a scheme, some of them beside those of baselines or of an earlier law.

use std::collections::BTreeMap;

use super::check::Check;
use crate::figures::Figures;
use crate::measure::{self, Figure, Values, Verdict, short};
use crate::scenario::{Curve, Scheme};

/// Figures of a cell's runs, by the name of the scheme.
pub type Runs = BTreeMap<String, Vec<Figures>>;

/// Time between two near CNPs of a sender, `cnp.interval`, in us.
const INTERVAL: f64 = 4.0;

/// Rule of a row, with what depends on the cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// Every class has its fair share, less a tenth; the peak is at most so many MB.
    Shares(f64),
    /// The 99th percentile of short flows, where there are any, is at most half of the best of `ecn` and `ecn-tuned`; goodput, pauses and
    /// drops are not worse than with the earlier law.
    ShortFlows,
    /// Steps of each application take at most 1.03 times (the worst seed 1.08 times) as long as with the best of `pfc`, `ecn`, `ecn-tuned`, which
    /// is one of them for all applications; pauses are at most a
    /// hundredth of `pfc`'s, and nothing is dropped where they drop nothing.
    Steps,
    /// No baseline has steps that are more than 3 % (the worst seed 8 %) shorter and no more pauses.
    Frontier,
    /// Goodput is at least 0.99 (0.97), Jain's index at least `ecn`'s less 0.02.
    Goodput,
    /// The peak is at most half of `ecn`'s; the bound of [`halvings`], in MB, is printed beside it.
    HalfPeak(f64),
    /// The scheme is not worse than `ecn` by the measure.
    NotWorse,
    /// The switch sends no CNP.
    NoCnps,
    /// The class of this name has at least 0.9 of its fair share.
    Class(&'static str),
    /// Goodput is at least 0.94, and pauses are at most `ecn`'s.
    Adversary,
    /// The peak is at most so many MB; goodput, fairness, pauses and drops are not worse than with the earlier law.
    Old(f64),
}

/// Returns the peak in MB that halving at the fastest pace leaves: `flows` limiters of `line` Gb/s behind links of `hosts` Gb/s together,
/// each halved once per `cnp.interval`, into `link` Gb/s.
#[must_use]
pub fn halvings(flows: u32, line: f64, hosts: f64, link: f64) -> f64 {
    let mut limiters = f64::from(flows) * line;
    let mut peak = 0.0;
    while limiters.min(hosts) > link {
        // Gb/s for us are 125 bytes.
        peak += (limiters.min(hosts) - link) * INTERVAL * 125.0 / 1e6;
        limiters /= 2.0;
    }
    peak
}

impl Rule {
    /// Returns the baselines that the rule needs.
    #[must_use]
    pub fn baselines(&self) -> Vec<Scheme> {
        let tuned = Scheme::marking(Curve::Tuned);
        match self {
            Rule::ShortFlows | Rule::NotWorse => vec![Scheme::ECN, tuned],
            Rule::Steps | Rule::Frontier => vec![Scheme::PFC, Scheme::ECN, tuned],
            Rule::Shares(_)
            | Rule::Goodput
            | Rule::HalfPeak(_)
            | Rule::NoCnps
            | Rule::Class(_)
            | Rule::Adversary
            | Rule::Old(_) => vec![Scheme::ECN],
        }
    }

    /// Returns true if the rule compares with an earlier law.
    #[must_use]
    pub const fn needs_before(&self) -> bool {
        matches!(self, Rule::ShortFlows | Rule::Old(_))
    }

    /// Checks the runs of a scheme; `before` are those of an earlier law.
    #[must_use]
    pub fn check(&self, runs: &Runs, scheme: &str, before: Option<&[Figures]>) -> Vec<Check> {
        let (with, ecn) = (of(runs, scheme), of(runs, "ecn"));
        let got = |figure: &Figure| figure.values(with);
        let beside = |figure: &Figure| format!("ecn {}", figure.values(ecn));
        let peak = |bound: f64| {
            let baseline = beside(&Figure::Peak);
            Check::at_most("peak MB", got(&Figure::Peak), (bound, None), baseline)
        };
        let goodput = |median: f64, worst: f64| {
            let baseline = beside(&Figure::Goodput);
            Check::at_least("goodput", got(&Figure::Goodput), (median, worst), baseline)
        };
        match self {
            Rule::Shares(bound) => {
                let figure = Figure::WorstClass;
                let worst =
                    Check::at_least("worst class", got(&figure), (0.9, 0.0), beside(&figure));
                vec![worst, peak(*bound)]
            }
            Rule::ShortFlows => short_flows(runs, with, before),
            Rule::Steps => steps(runs, with),
            Rule::Frontier => frontier(runs, with),
            Rule::Goodput => {
                let fairness = |runs: &[Figures]| Values::of(runs, true, |run| run.jain);
                let jain = fairness(ecn);
                let bound = (jain.median - 0.02, 0.0);
                let fair = Check::at_least("Jain", fairness(with), bound, format!("ecn {jain}"));
                vec![goodput(0.99, 0.97), fair]
            }
            Rule::HalfPeak(bound) => {
                let of_ecn = Figure::Peak.values(ecn);
                let mut check = peak(of_ecn.median / 2.0);
                check.baseline = format!("ecn {of_ecn}, bound {}", short(*bound));
                vec![check]
            }
            Rule::NotWorse => measure::compare(ecn, with)
                .map(|finding| Check {
                    what: finding.figure.to_string(),
                    wanted: "not worse".to_owned(),
                    got: finding.scheme,
                    baseline: format!("ecn {}", finding.baseline),
                    met: Some(finding.verdict != Verdict::Worse),
                })
                .into_iter()
                .collect(),
            Rule::NoCnps => {
                let cnps = Values::of(with, false, |run| run.cnps as f64);
                vec![Check::at_most(
                    "CNPs",
                    cnps,
                    (0.0, Some(0.0)),
                    String::new(),
                )]
            }
            Rule::Class(name) => {
                let share = |run: &Figures| {
                    let class = run.classes.iter().find(|class| class.name == *name);
                    class.map_or(0.0, |class| class.goodput / class.fair)
                };
                let baseline = format!("ecn {}", Values::of(ecn, true, share));
                let got = Values::of(with, true, share);
                vec![Check::at_least(name, got, (0.9, 0.0), baseline)]
            }
            Rule::Adversary => {
                let pauses = Figure::Pauses.values(ecn);
                let bound = (pauses.median, None);
                let baseline = beside(&Figure::Pauses);
                let pauses = Check::at_most("pauses", got(&Figure::Pauses), bound, baseline);
                vec![goodput(0.94, 0.0), pauses]
            }
            Rule::Old(bound) => {
                let mut checks = vec![peak(*bound)];
                let mut figures = vec![Figure::Goodput, Figure::Pauses];
                if with.iter().any(|run| run.worst.is_some()) {
                    figures.push(Figure::WorstClass);
                }
                let not_worse = |figure: &Figure| Check::not_worse(before, with, figure);
                checks.extend(figures.iter().map(not_worse));
                checks
            }
        }
    }
}

fn of<'a>(runs: &'a Runs, scheme: &str) -> &'a [Figures] {
    runs.get(scheme).map_or(&[], Vec::as_slice)
}

/// Returns the lowest median of these schemes, and its name.
fn best(runs: &Runs, schemes: &[&str], figure: &Figure) -> Option<(f64, String)> {
    let medians = schemes.iter().filter_map(|scheme| {
        let median = figure.values(runs.get(*scheme)?).median;
        Some((median, format!("{scheme} {}", short(median))))
    });
    medians.min_by(|one, other| one.0.total_cmp(&other.0))
}

fn short_flows(runs: &Runs, with: &[Figures], before: Option<&[Figures]>) -> Vec<Check> {
    let figure = Figure::Slowdown(1);
    let mut checks = Vec::new();
    if with.iter().any(|run| run.slowdown.is_some())
        && let Some((median, name)) = best(runs, &["ecn", "ecn-tuned"], &figure)
    {
        let got = figure.values(with);
        checks.push(Check::at_most(
            "slowdown p99",
            got,
            (median / 2.0, None),
            name,
        ));
    }
    let figures = [Figure::Goodput, Figure::Pauses, Figure::Drops];
    checks.extend(figures.map(|figure| Check::not_worse(before, with, &figure)));
    checks
}

/// Baselines of closed applications.
const RIVALS: [&str; 3] = ["pfc", "ecn", "ecn-tuned"];

fn steps_of(runs: &[Figures]) -> Vec<Figure> {
    let first = runs.first().map(Figure::of).unwrap_or_default();
    let is_step = |figure: &Figure| matches!(figure, Figure::Step(..));
    first.into_iter().filter(is_step).collect()
}

/// Returns the baseline whose steps are the shortest: by their geometric mean, where there are several applications.
fn shortest<'a>(runs: &Runs, rivals: &[&'a str], figures: &[Figure]) -> Option<&'a str> {
    let mean = |rival: &&str| -> f64 {
        let medians = figures
            .iter()
            .map(|step| step.values(of(runs, rival)).median);
        medians.map(f64::ln).sum()
    };
    let mut rivals = rivals.to_vec();
    rivals.retain(|rival| !of(runs, rival).is_empty());
    rivals
        .into_iter()
        .min_by(|one, other| mean(one).total_cmp(&mean(other)))
}

/// Checks that each application's steps are not longer than a baseline's.
fn beside_rival(runs: &Runs, rival: &str, with: &[Figures], figure: &Figure) -> Check {
    let median = figure.values(of(runs, rival)).median;
    let bound = (1.03 * median, Some(1.08 * median));
    let name = format!("{rival} {}", short(median));
    Check::at_most(&figure.to_string(), figure.values(with), bound, name)
}

fn steps(runs: &Runs, with: &[Figures]) -> Vec<Check> {
    let figures = steps_of(with);
    let rival = shortest(runs, &RIVALS, &figures);
    let check = |rival| {
        figures
            .iter()
            .map(move |figure| beside_rival(runs, rival, with, figure))
    };
    let mut checks: Vec<Check> = rival.into_iter().flat_map(check).collect();
    let pauses = Figure::Pauses.values(of(runs, "pfc"));
    let bound = (pauses.median / 100.0, None);
    let got = Figure::Pauses.values(with);
    checks.push(Check::at_most(
        "pauses",
        got,
        bound,
        format!("pfc {pauses}"),
    ));
    if let Some((drops, name)) = best(runs, &RIVALS, &Figure::Drops)
        && drops == 0.0
    {
        let got = Figure::Drops.values(with);
        checks.push(Check::at_most("drops", got, (0.0, None), name));
    }
    checks
}

/// Checks the best of the baselines that pause as little: its steps must not be shorter.
fn frontier(runs: &Runs, with: &[Figures]) -> Vec<Check> {
    let pauses = |runs: &[Figures]| Figure::Pauses.values(runs).median;
    let mut rivals = RIVALS.to_vec();
    rivals.retain(|scheme| pauses(of(runs, scheme)) <= pauses(with));
    let figures = steps_of(with);
    let rival = shortest(runs, &rivals, &figures);
    let check = |figure: &Figure| {
        rival.map_or_else(
            || Check {
                what: figure.to_string(),
                wanted: "none pauses less".to_owned(),
                got: figure.values(with),
                baseline: best(runs, &RIVALS, figure).map_or_else(String::new, |best| best.1),
                met: Some(true),
            },
            |rival| beside_rival(runs, rival, with, figure),
        )
    };
    figures.iter().map(check).collect()
}

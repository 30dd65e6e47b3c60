//! Runs the cells of a half, compares policies with every baseline, and counts verdicts by value of each axis.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Half, half};
use crate::acceptance::policies;
use crate::matrix::Cell;
use crate::matrix::run::{self, MatrixError, Series};
use crate::measure::{self, Finding, Verdict};
use crate::results::Results;
use crate::scenario::Scheme;

/// Findings on a policy in a cell.
#[derive(Debug, Clone)]
pub struct ComparedCell {
    /// Name of the cell.
    pub cell: String,
    /// Name of the policy.
    pub scheme: String,
    /// True if a baseline is congested there.
    pub counts: bool,
    /// Findings beside each baseline, in the order of [`baselines`].
    pub findings: Vec<Finding>,
}

impl ComparedCell {
    /// Returns the finding beside the baseline that is hardest to beat: the first that is worse, or else a tie.
    #[must_use]
    pub fn hardest(&self) -> Option<&Finding> {
        self.findings.iter().min_by_key(|finding| finding.verdict)
    }
}

/// Returns the schemes that policies are compared with.
#[must_use]
pub fn baselines() -> Vec<Scheme> {
    let mut all = Scheme::BASELINES.to_vec();
    all.push(Scheme::THEMIS);
    all
}

/// Runs the cells of a half, as far as `results` do not have them: policies and baselines with so many seeds each.
///
/// # Errors
/// [`MatrixError`]; what was done before is in `results`.
pub fn judge(
    of: Half,
    is_chosen: &dyn Fn(&str) -> bool,
    (seeds, law): (u64, &str),
    results: &mut Results,
    jobs: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<ComparedCell>, MatrixError> {
    let cells = half(of).into_iter().map(|point| point.cell());
    let cells: Vec<Cell> = cells.filter(|cell| is_chosen(&cell.name)).collect();
    let (baselines, policies) = (baselines(), policies());
    let from = of.first_seed();
    let schemes = [baselines.as_slice(), &policies].concat();
    let series = Series::of(&schemes, &(from..from + seeds), law);
    let figures = run::run(&cells, &series, results, jobs, done)?;
    let mut judged = Vec::new();
    for (cell, figures) in cells.iter().zip(figures) {
        let (beside, with) = figures.split_at(baselines.len());
        let counts = beside.iter().any(|runs| measure::is_congested(runs));
        for (policy, runs) in policies.iter().zip(with) {
            let compare = |baseline: &Vec<_>| measure::compare(baseline, runs);
            judged.push(ComparedCell {
                cell: cell.name.clone(),
                scheme: policy.to_string(),
                counts,
                findings: beside.iter().filter_map(compare).collect(),
            });
        }
    }
    Ok(judged)
}

const fn sign(verdict: Verdict) -> char {
    match verdict {
        Verdict::Better => '+',
        Verdict::Tie => '=',
        Verdict::Worse => '-',
    }
}

/// Numbers of verdicts: better, tie, worse.
type Count = [u32; 3];

fn count(counts: &mut Count, verdict: Verdict) {
    let place = match verdict {
        Verdict::Better => 0,
        Verdict::Tie => 1,
        Verdict::Worse => 2,
    };
    counts[place] += 1;
}

/// Returns the table: a line for each cell and policy with its verdicts and the finding that is hardest to beat; then how many are better,
/// equal and worse beside each baseline, and beside all of them by value of each axis. Cells that do not count are in brackets, and in no number.
#[must_use]
pub fn table(judged: &[ComparedCell]) -> String {
    let names: Vec<String> = baselines().iter().map(Scheme::to_string).collect();
    let mut text = format!("verdicts beside {}\n", names.join(", "));
    let mut by_baseline: BTreeMap<(String, usize), Count> = BTreeMap::new();
    let mut by_word: BTreeMap<(usize, String, String), Count> = BTreeMap::new();
    for one in judged {
        let signs: String = one.findings.iter().map(|one| sign(one.verdict)).collect();
        let cell = if one.counts {
            one.cell.clone()
        } else {
            format!("[{}]", one.cell)
        };
        let hardest = one.hardest().map(Finding::to_string).unwrap_or_default();
        let scheme = &one.scheme;
        let _ = writeln!(text, "{cell:<52} {scheme:<7} {signs:<8} {hardest}");
        let Some(hardest) = one.hardest().filter(|_| one.counts) else {
            continue;
        };
        for (place, finding) in one.findings.iter().enumerate() {
            let counts = by_baseline.entry((scheme.clone(), place)).or_default();
            count(counts, finding.verdict);
        }
        for (axis, word) in one.cell.split(' ').enumerate() {
            let key = (axis, word.to_owned(), scheme.clone());
            count(by_word.entry(key).or_default(), hardest.verdict);
        }
    }
    let row = |name: &str, scheme: &str, [better, tie, worse]: Count| {
        format!("{name:<18} {scheme:<7} {better:>5} {tie:>5} {worse:>5}\n")
    };
    let head = |what: &str| {
        format!(
            "\n{what:<18} {:<7} {:>5} {:>5} {:>5}\n",
            "policy", "+", "=", "-"
        )
    };
    text.push_str(&head("beside"));
    for ((scheme, place), counts) in by_baseline {
        text.push_str(&row(
            names.get(place).map_or("", String::as_str),
            &scheme,
            counts,
        ));
    }
    text.push_str(&head("beside the hardest"));
    for ((_, word, scheme), counts) in by_word {
        text.push_str(&row(&word, &scheme, counts));
    }
    text
}

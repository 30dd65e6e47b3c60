//! Runs of the rows, and their table.

use std::fmt::Write;

use super::Row;
use super::check::Check;
use super::rows::policies;
use super::rule::Runs;
use crate::figures::Figures;
use crate::matrix::run::{self, MatrixError, Series};
use crate::measure;
use crate::results::Results;

/// A policy's checks in a cell.
#[derive(Debug, Clone)]
pub struct CheckedCell {
    /// Name of the cell.
    pub cell: String,
    /// Name of the policy.
    pub scheme: String,
    /// True if it decides; otherwise it is printed beside the one that does.
    pub decides: bool,
    /// True if a baseline is congested there.
    pub counts: bool,
    /// Checks of the rule.
    pub checks: Vec<Check>,
}

impl CheckedCell {
    /// Returns true if no check is missed.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.checks.iter().all(|check| check.met != Some(false))
    }
}

/// Runs a row's cells, as far as `results` do not have them, and checks them. `before` has runs of an earlier law, under that label.
///
/// # Errors
/// [`MatrixError`]; what was done before is in `results`.
pub fn judge(
    row: &Row,
    (seeds, law): (u64, &str),
    results: &mut Results,
    before: Option<(&Results, &str)>,
    jobs: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<CheckedCell>, MatrixError> {
    let policies = policies();
    let schemes = [row.baselines.as_slice(), &policies].concat();
    let series = Series::of(&schemes, &(0..seeds), law);
    let cells: Vec<_> = row.cases.iter().map(|(cell, _)| cell.clone()).collect();
    let figures = run::run(&cells, &series, results, jobs, done)?;
    let mut judged = Vec::new();
    for ((cell, rule), figures) in row.cases.iter().zip(figures) {
        let names = series.iter().map(|series| series.scheme.to_string());
        let runs: Runs = names.zip(figures).collect();
        let baselines = row
            .baselines
            .iter()
            .filter_map(|scheme| runs.get(&scheme.to_string()));
        let counts = baselines
            .into_iter()
            .any(|runs| measure::is_congested(runs));
        for (place, policy) in policies.iter().enumerate() {
            let scheme = policy.to_string();
            let earlier: Option<Vec<Figures>> = before.map(|(results, law)| {
                let of = |seed| results.get(&cell.key(*policy, seed, law)).cloned();
                (0..seeds).filter_map(of).collect()
            });
            judged.push(CheckedCell {
                cell: cell.name.clone(),
                decides: row.both || place == 0,
                counts,
                checks: rule.check(&runs, &scheme, earlier.as_deref()),
                scheme,
            });
        }
    }
    Ok(judged)
}

/// Returns the table of a row: its target, a line for each check, and how many cells meet it. A cell that no baseline makes congested is in
/// brackets.
#[must_use]
pub fn table(row: &Row, judged: &[CheckedCell]) -> String {
    let mut text = format!("\n{}: {}\n", row.name, row.wanted);
    let _ = writeln!(
        text,
        "{:<42} {:<7} {:<20} {:<20} {:<24} baseline (worst)",
        "cell", "scheme", "figure", "wanted", "got (worst)"
    );
    for one in judged {
        let cell = if one.counts {
            one.cell.clone()
        } else {
            format!("[{}]", one.cell)
        };
        // Nothing of what must not be is left out, unless it is all that is checked.
        let is_shown = |check: &&Check| one.checks.len() == 1 || !check.is_nothing();
        for check in one.checks.iter().filter(is_shown) {
            let met = match (check.met, one.decides) {
                (None, _) => "-",
                (Some(true), _) => "yes",
                (Some(false), true) => "NO",
                (Some(false), false) => "no",
            };
            let Check {
                what,
                wanted,
                got,
                baseline,
                ..
            } = check;
            let _ = writeln!(
                text,
                "{cell:<42} {:<7} {what:<20} {wanted:<20} {:<20} {met:<4} {baseline}",
                one.scheme,
                got.to_string()
            );
        }
    }
    let _ = writeln!(text, "{}", summary(row, judged));
    text
}

/// Returns how many cells of a row meet its target, as a line.
#[must_use]
pub fn summary(row: &Row, judged: &[CheckedCell]) -> String {
    let deciding: Vec<&CheckedCell> = judged.iter().filter(|one| one.decides).collect();
    let met = deciding.iter().filter(|one| one.is_met()).count();
    let counting = deciding.iter().filter(|one| one.counts).count();
    let enough = if counting * 3 < deciding.len() * 2 {
        ", fewer than two thirds"
    } else {
        ""
    };
    let all = deciding.len();
    format!(
        "{:<24} {met:>3} of {all:>3} met; {counting:>3} count{enough}",
        row.name
    )
}

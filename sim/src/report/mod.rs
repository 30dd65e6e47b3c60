//! Reports of a sweep: a table for the terminal, CSV for other tools, and one HTML file with pictures.

mod csv;
mod html;
mod picture;
mod seeds;
mod svg;
mod table;
mod verdict;

pub use csv::csv;
pub use html::html;
pub use picture::{Column, picture};
pub use seeds::seeds_table;
pub use table::table;
pub use verdict::verdicts;

use crate::scenario::{Case, Scenario};
use crate::sweep::Run;

/// Columns that a table needs: the parameters that differ between runs.
#[derive(Debug, Clone, Copy)]
struct Columns {
    sender: bool,
    length: bool,
    qps: bool,
    start: bool,
    np: bool,
    pfc: bool,
    bursts: bool,
    groups: bool,
    loss: bool,
    converged: bool,
    applications: bool,
}

impl Columns {
    /// Returns the headings of the columns that identify a line's case.
    fn names_of_case(self) -> Vec<String> {
        let names = [
            (self.sender, "sender"),
            (self.start, "start"),
            (self.qps, "QPs"),
            (self.length, "length"),
            (self.np, "NP"),
            (true, "scheme"),
        ];
        wanted(names)
    }

    /// Returns the values in the columns of [`Columns::names_of_case`].
    fn values_of_case(self, case: &Case) -> Vec<String> {
        let text = |value: Option<String>| value.unwrap_or_default();
        wanted([
            (self.sender, case.sender.name().to_owned()),
            (self.start, case.start.to_string()),
            (self.qps, text(case.qps.map(|qps| qps.to_string()))),
            (
                self.length,
                text(case.length.map(|length| length.to_string())),
            ),
            (self.np, case.np.name().to_owned()),
            (true, case.scheme.to_string()),
        ])
    }

    fn of(scenario: &Scenario, runs: &[Run]) -> Columns {
        let vary = &scenario.vary;
        let any = |of: &dyn Fn(&Run) -> bool| runs.iter().any(of);
        Columns {
            sender: vary.sender.len() > 1,
            length: !vary.length.is_empty(),
            qps: !vary.qps.is_empty(),
            start: vary.starts().count() > 1,
            np: vary.np.len() > 1,
            pfc: scenario.pfc,
            bursts: any(&|run| {
                run.outcome
                    .groups
                    .iter()
                    .any(|group| !group.bursts.is_empty())
            }),
            groups: scenario.flows.len() > 1,
            loss: any(&|run| run.outcome.dropped + run.outcome.repeated > 0),
            // Time to the fair share is what flows that join are for.
            converged: scenario.flows.iter().any(|flow| flow.start.0 > 0),
            applications: !scenario.applications.is_empty(),
        }
    }
}

fn wanted<T: Into<String>, const N: usize>(cells: [(bool, T); N]) -> Vec<String> {
    let cells = cells.into_iter().filter(|(wanted, _)| *wanted);
    cells.map(|(_, cell)| cell.into()).collect()
}

/// Formats bytes as MB with three decimals.
fn megabytes(bytes: u64) -> String {
    format!("{:.3}", bytes as f64 / 1e6)
}

/// Formats nanoseconds as ms with three decimals.
fn millis(time: npcc_pipeline::units::Nanos) -> String {
    format!("{:.3}", time.0 as f64 / 1e6)
}

/// Returns the `ecn` run that differs from this one in nothing else, to compare with.
fn baseline<'a>(runs: &'a [Run], run: &Run) -> Option<&'a Run> {
    let same = Case {
        scheme: crate::scenario::Scheme::ECN,
        ..run.case
    };
    runs.iter().find(|other| other.case == same)
}

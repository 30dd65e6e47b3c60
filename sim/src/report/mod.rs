//! What is shown of a sweep: a table for the terminal, CSV for other tools, and one HTML file with pictures.

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

/// Which of the varied things differ between runs, and so need a column.
#[derive(Debug, Clone, Copy)]
struct Columns {
    sender: bool,
    length: bool,
    qps: bool,
    warm: bool,
    pfc: bool,
    bursts: bool,
    groups: bool,
    loss: bool,
}

impl Columns {
    /// The headings that say which case a line is of.
    fn names_of_case(self) -> Vec<String> {
        let names = [
            (self.sender, "sender"),
            (self.warm, "start"),
            (self.qps, "QPs"),
            (self.length, "length"),
            (true, "scheme"),
        ];
        wanted(names)
    }

    /// What stands under them.
    fn values_of_case(self, case: &Case) -> Vec<String> {
        let text = |value: Option<String>| value.unwrap_or_default();
        wanted([
            (self.sender, case.sender.name().to_owned()),
            (
                self.warm,
                if case.warm { "warm" } else { "cold" }.to_owned(),
            ),
            (self.qps, text(case.qps.map(|qps| qps.to_string()))),
            (
                self.length,
                text(case.length.map(|length| length.to_string())),
            ),
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
            warm: vary.warm.len() > 1,
            pfc: scenario.pfc,
            bursts: any(&|run| {
                run.outcome
                    .groups
                    .iter()
                    .any(|group| !group.bursts.is_empty())
            }),
            groups: scenario.flows.len() > 1,
            loss: any(&|run| run.outcome.dropped + run.outcome.repeated > 0),
        }
    }
}

fn wanted<T: Into<String>, const N: usize>(cells: [(bool, T); N]) -> Vec<String> {
    let cells = cells.into_iter().filter(|(wanted, _)| *wanted);
    cells.map(|(_, cell)| cell.into()).collect()
}

/// Bytes as MB with three digits.
fn megabytes(bytes: u64) -> String {
    format!("{:.3}", bytes as f64 / 1e6)
}

/// Nanoseconds as ms.
fn millis(time: npcc_pipeline::units::Nanos) -> String {
    format!("{:.3}", time.0 as f64 / 1e6)
}

/// The `ecn` run that differs from this one in nothing else, to compare with.
fn baseline<'a>(runs: &'a [Run], run: &Run) -> Option<&'a Run> {
    let same = Case {
        scheme: crate::scenario::Scheme::ECN,
        ..run.case
    };
    runs.iter().find(|other| other.case == same)
}

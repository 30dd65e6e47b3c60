//! What is shown of a sweep: a table for the terminal, CSV for other tools, and one HTML file with pictures.

mod csv;
mod html;
mod picture;
mod svg;
mod table;
mod verdict;

pub use csv::csv;
pub use html::html;
pub use picture::{Column, picture};
pub use table::table;
pub use verdict::verdicts;

use crate::scenario::Scenario;
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
    let same = crate::scenario::Case {
        scheme: crate::scenario::Scheme::ECN,
        ..run.case
    };
    runs.iter().find(|other| other.case == same)
}

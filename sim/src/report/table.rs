//! Table for the terminal: one line per run, columns for the parameters that differ.

use super::{Columns, baseline, megabytes, millis};
use crate::app::ApplicationOutcome;
use crate::scenario::Scenario;
use crate::sweep::Run;

/// Text of an application's figure.
type Figure = dyn Fn(&ApplicationOutcome) -> Option<String>;

/// Returns the table as text, ready to be printed.
#[must_use]
pub fn table(scenario: &Scenario, runs: &[Run]) -> String {
    let columns = Columns::of(scenario, runs);
    let mut rows = vec![head(columns)];
    rows.extend(runs.iter().map(|run| row(columns, runs, run)));
    align(&rows)
}

pub(super) fn rows(scenario: &Scenario, runs: &[Run]) -> Vec<Vec<String>> {
    let columns = Columns::of(scenario, runs);
    let mut rows = vec![head(columns)];
    rows.extend(runs.iter().map(|run| row(columns, runs, run)));
    rows
}

fn head(columns: Columns) -> Vec<String> {
    let mut head = columns.names_of_case();
    let mut add = |wanted: bool, name: &str| {
        if wanted {
            head.push(name.to_owned());
        }
    };
    for name in [
        "peak MB",
        "ecn/x",
        "mean MB",
        "drained ms",
        "util",
        "goodput",
        "Jain",
    ] {
        add(true, name);
    }
    add(columns.pfc, "pauses");
    add(columns.pfc, "paused ms");
    for name in ["CNP switch", "CNP host", "CE"] {
        add(true, name);
    }
    add(columns.loss, "dropped");
    add(columns.loss, "resent");
    add(columns.bursts, "burst p50/p99 ms");
    add(columns.groups, "Gb/s by group");
    add(columns.converged, "to fair share ms");
    for name in ["steps", "step p50/p99/worst ms", "JCT ratio", "busbw GB/s"] {
        add(columns.applications, name);
    }
    head
}

fn row(columns: Columns, runs: &[Run], run: &Run) -> Vec<String> {
    let (case, outcome) = (&run.case, &run.outcome);
    let mut row = columns.values_of_case(case);
    let mut add = |wanted: bool, value: String| {
        if wanted {
            row.push(value);
        }
    };
    add(true, megabytes(outcome.peak));
    let ratio = baseline(runs, run).map(|ecn| ecn.outcome.peak as f64 / outcome.peak.max(1) as f64);
    add(
        true,
        ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}")),
    );
    add(true, megabytes(outcome.mean));
    add(true, outcome.drained.map_or_else(|| "-".to_owned(), millis));
    for share in [outcome.utilisation, outcome.goodput, outcome.jain] {
        add(true, format!("{share:.3}"));
    }
    add(columns.pfc, outcome.pauses.to_string());
    add(columns.pfc, millis(outcome.paused));
    for count in [outcome.cnps_switch, outcome.cnps_host, outcome.marked] {
        add(true, count.to_string());
    }
    add(columns.loss, outcome.dropped.to_string());
    add(columns.loss, outcome.repeated.to_string());
    let bursts = outcome.groups.iter().filter_map(|group| {
        let (half, most) = (group.quantile(500)?, group.quantile(990)?);
        Some(format!("{} {}/{}", group.name, millis(half), millis(most)))
    });
    add(columns.bursts, bursts.collect::<Vec<_>>().join(", "));
    let groups = outcome
        .groups
        .iter()
        .map(|group| format!("{} {:.1}", group.name, group.goodput));
    add(columns.groups, groups.collect::<Vec<_>>().join(", "));
    add(
        columns.converged,
        outcome.converged.map_or_else(|| "-".to_owned(), millis),
    );
    let applications = |of: &Figure| {
        let named = outcome.applications.iter().map(|one| {
            let value = of(one).unwrap_or_else(|| "-".to_owned());
            match outcome.applications.len() {
                1 => value,
                _ => format!("{} {value}", one.name),
            }
        });
        named.collect::<Vec<_>>().join(", ")
    };
    let values: [&Figure; 4] = [
        &|one| Some(one.steps.len().to_string()),
        &|one| {
            let times = [500, 990, 1_000].map(|share| one.quantile(share).map(millis));
            let [Some(half), Some(most), Some(worst)] = times else {
                return None;
            };
            Some(format!("{half}/{most}/{worst}"))
        },
        &|one| Some(format!("{:.3}", one.jct_ratio()?)),
        &|one| Some(format!("{:.3}", one.busbw()?)),
    ];
    for value in values {
        add(columns.applications, applications(value));
    }
    row
}

/// Aligns columns to the width of their widest cell; text to the left, numbers to the right.
pub(super) fn align(rows: &[Vec<String>]) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            rows.iter()
                .map(|row| cell(row, column).chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let numeric: Vec<bool> = (0..count)
        .map(|column| {
            let mut values = rows.iter().skip(1).map(|row| cell(row, column));
            values.all(|value| value == "-" || value.parse::<f64>().is_ok())
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for column in 0..count {
            let value = cell(row, column);
            let width = widths[column];
            if numeric[column] {
                line.push_str(&format!("{value:>width$}  "));
            } else {
                line.push_str(&format!("{value:<width$}  "));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

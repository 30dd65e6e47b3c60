//! Report of live runs: a table for the terminal and one picture, each naming the runs that were not fair.

use std::fmt::Write as _;

use npcc_sim::report::{Column, picture};
use npcc_sim::scenario::Scenario;

use super::LiveRun;

impl LiveRun {
    /// Returns the reasons why this run is not a fair one; empty for a clean one.
    #[must_use]
    pub fn blemishes(&self) -> Vec<String> {
        let mut found = Vec::new();
        let (late, ticks) = (self.totals.ticks_late, self.totals.ticks);
        if late > 0 {
            found.push(format!("{late} of {ticks} ticks late by more than half"));
        }
        let lost = self.totals.dropped + self.refused;
        if lost > 0 {
            found.push(format!("{lost} frames lost"));
        }
        if self.seen.repeated > 0 {
            found.push(format!("{} packets sent again", self.seen.repeated));
        }
        found
    }

    fn name(&self, label: &str) -> String {
        let what = match self.case.scheme.policy {
            None => "NPCC off",
            Some(_) => "NPCC on",
        };
        format!("{what}: {label}")
    }

    fn column(&self, label: &str) -> Column {
        let (seen, totals) = (&self.seen, &self.totals);
        let blemishes = self.blemishes();
        let verdict = if blemishes.is_empty() {
            "clean: no tick late by more than half, nothing lost".to_owned()
        } else {
            format!("NOT CLEAN: {}", blemishes.join(", "))
        };
        let notes = vec![
            format!(
                "peak {:.2} MB (simulated: {:.2} MB), {} frames marked",
                megabytes(totals.peak),
                megabytes(self.simulated.peak),
                totals.marked
            ),
            format!(
                "CNPs: {} of the switch, {} of the receivers, {} reached senders",
                totals.cnps, seen.cnps_host, seen.cnps_received
            ),
            format!(
                "link used {:.1} %, fairness {:.3}",
                seen.utilisation * 100.0,
                seen.jain
            ),
            verdict,
        ];
        Column {
            name: self.name(label),
            notes,
            samples: seen.samples.clone(),
        }
    }
}

/// Returns the names of runs in a report: their schemes, and how their connections start where that differs.
fn labels(runs: &[LiveRun]) -> Vec<String> {
    let starts = || runs.iter().map(|run| run.case.start);
    let differ = starts().any(|start| Some(start) != starts().next());
    let label = |LiveRun { case, .. }: &LiveRun| {
        if differ {
            format!("{} {}", case.scheme, case.start)
        } else {
            case.scheme.to_string()
        }
    };
    runs.iter().map(label).collect()
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Renders the table; `sim` columns are the same case in simulated time.
#[must_use]
pub fn table(runs: &[LiveRun]) -> String {
    let labels = labels(runs);
    let width = labels
        .iter()
        .map(|label| label.len() + 1)
        .fold(8, usize::max);
    let mut text = format!(
        "{:<width$}{:>9}{:>9}{:>9}{:>8}{:>12}{:>10}{:>10}{:>9}{:>7}{:>13}{:>16}\n",
        "scheme",
        "peak MB",
        "sim",
        "link",
        "sim",
        "CNP switch",
        "CNP host",
        "received",
        "goodput",
        "Jain",
        "hosts late",
        "ticks late"
    );
    for (run, label) in runs.iter().zip(&labels) {
        let (seen, totals, simulated) = (&run.seen, &run.totals, &run.simulated);
        // Infallible: the target is a string.
        let _ = writeln!(
            text,
            "{:<width$}{:>9.3}{:>9.3}{:>9.3}{:>8.3}{:>12}{:>10}{:>10}{:>9.3}{:>7.3}{:>10.0} us{:>9} of {}",
            label,
            megabytes(totals.peak),
            megabytes(simulated.peak),
            seen.utilisation,
            simulated.utilisation,
            totals.cnps,
            seen.cnps_host,
            seen.cnps_received,
            seen.goodput,
            seen.jain,
            seen.latest.0 as f64 / 1e3,
            totals.ticks_late,
            totals.ticks,
        );
    }
    for (run, label) in runs.iter().zip(&labels) {
        let blemishes = run.blemishes();
        if !blemishes.is_empty() {
            let _ = writeln!(
                text,
                "{label}: not a clean run: {}; on a quiet machine, or with a larger --time-scale, it is",
                blemishes.join(", ")
            );
        }
    }
    text
}

/// Renders the picture, as SVG.
#[must_use]
pub fn svg(scenario: &Scenario, time_scale: f64, runs: &[LiveRun]) -> String {
    let about = format!(
        "{}. Real switch process, model hosts, real time. time_scale {time_scale}: one ms here took {:.3} s, and 100 Gb/s here are {:.3} Gb/s on this machine.",
        scenario.about,
        time_scale / 1e3,
        100.0 / time_scale
    );
    let labels = labels(runs);
    let columns = runs.iter().zip(&labels);
    let columns: Vec<Column> = columns.map(|(run, label)| run.column(label)).collect();
    let title = format!("npcc-switch, {}: time_scale {time_scale}", scenario.name);
    picture(&title, &about, &columns)
}

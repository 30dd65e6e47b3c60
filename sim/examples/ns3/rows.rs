//! Rows of sim/tests/ns3, and their comparison with this simulator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use npcc_config::units::Nanos;
use npcc_sim::engine::Outcome;
use npcc_sim::scenario::Scenario;
use npcc_sim::sweep;
use serde::Deserialize;

/// A scenario and a CNP interval, and what ns-3 measures there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// Name of the scenario's file, without its extension.
    pub(super) scenario: String,
    /// Minimum time between two CNPs of the receiver.
    pub(super) cnp_interval: Nanos,
    /// Number of ns-3's seeds.
    pub(super) seeds: u64,
    /// Mean and standard deviation of each figure.
    figures: BTreeMap<Figure, [f64; 2]>,
}

/// A figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Figure {
    Peak,
    Mean,
    P99,
    Carried,
    Goodput,
    Jain,
    Marks,
    Cnps,
    Pauses,
    FctMean,
    FctMax,
}

impl Figure {
    fn of(self, run: &Outcome) -> f64 {
        let times = || run.groups.iter().flat_map(|group| &group.bursts);
        let ms = |time: &Nanos| time.0 as f64 / 1e6;
        match self {
            Figure::Peak => run.peak as f64 / 1e6,
            Figure::Mean => run.mean as f64 / 1e6,
            Figure::P99 => run.p99 as f64 / 1e6,
            Figure::Carried => run.utilisation,
            Figure::Goodput => run.goodput,
            Figure::Jain => run.jain,
            Figure::Marks => run.marked as f64,
            Figure::Cnps => run.cnps_host as f64,
            Figure::Pauses => run.pauses as f64,
            Figure::FctMean => times().map(ms).sum::<f64>() / times().count() as f64,
            Figure::FctMax => times().map(ms).fold(0.0, f64::max),
        }
    }
}

/// A figure of a row, of both simulators.
#[derive(Debug)]
pub(super) struct Line {
    name: String,
    ours: [f64; 2],
    theirs: [f64; 2],
    /// Largest difference that is allowed: three standard deviations of ns-3's runs, or 2 % of their mean.
    allowed: f64,
}

impl Line {
    /// Returns true if the two means are as close as they should be.
    pub(super) fn agrees(&self) -> bool {
        (self.ours[0] - self.theirs[0]).abs() <= self.allowed
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (
            Line {
                name,
                ours,
                theirs,
                allowed,
            },
            off,
        ) = (self, self.ours[0] - self.theirs[0]);
        let word = if self.agrees() { "ok" } else { "OFF" };
        write!(
            out,
            "{name:<20} {:>11.3} {:>9.3} {:>11.3} {:>9.3} {off:>10.3} {allowed:>10.3}  {word}",
            ours[0], ours[1], theirs[0], theirs[1]
        )
    }
}

fn path(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ns3");
    folder.join(name).with_extension("yaml")
}

/// Returns the rows of the file.
pub(super) fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(path("rows")).unwrap();
    serde_yaml::from_str(&text).unwrap()
}

/// Runs a row's scenario with so many seeds on `jobs` threads, and returns a line for each figure.
pub(super) fn compare(row: &Row, seeds: u64, jobs: usize) -> Vec<Line> {
    let mut scenario = Scenario::load(&path(&row.scenario)).unwrap();
    scenario.cnp_interval = Some(row.cnp_interval);
    let runs = sweep::seeded(&scenario, seeds, jobs, &|_, _| {}).unwrap();
    let outcomes: Vec<&Outcome> = runs.iter().flatten().map(|run| &run.outcome).collect();
    let line = |(figure, theirs): (&Figure, &[f64; 2])| {
        let values: Vec<f64> = outcomes.iter().map(|run| figure.of(run)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let ours = mean(&values);
        let squares = values
            .iter()
            .map(|value| (value - ours).powi(2))
            .sum::<f64>();
        let deviation = (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt();
        Line {
            name: format!("{} {} {figure:?}", row.scenario, row.cnp_interval),
            ours: [ours, deviation],
            theirs: *theirs,
            allowed: (3.0 * theirs[1]).max(0.02 * theirs[0]),
        }
    };
    row.figures.iter().map(line).collect()
}

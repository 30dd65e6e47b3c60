//! Cells of the rows: scenario files with changes.

use super::Row;
use super::rule::Rule;
use super::text::{Text, unkind, window};
use crate::matrix::Cell;
use crate::scenario::Scheme;

/// Returns the text of a scenario of the review.
macro_rules! review {
    ($name:literal) => {
        include_str!(concat!("../../../config/scenarios/review/", $name, ".yaml"))
    };
}

pub(super) use review;

/// Cards of the other rows: a cell has one by its place.
pub(super) const COMMON: [&str; 2] = ["hpcc-vendor", "mlx"];
/// Surroundings of a cell: what its window is computed from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) gbps: u64,
    pub(super) round_trip_us: u64,
    pub(super) queue_pairs: u64,
}

pub(super) const FAR: Path = Path {
    gbps: 100,
    round_trip_us: 1_000,
    queue_pairs: 1,
};

impl Path {
    pub(super) const fn with(self, queue_pairs: u64) -> Path {
        Path {
            queue_pairs,
            ..self
        }
    }
}

/// Makes a cell of a scenario file: its name is the file's, the sender's and the rest; `vary` are more axes of `vary`, with one value each.
pub(super) fn cell(file: Text, name: &str, sender: &str, vary: &str, path: Path) -> Cell {
    let window = window(path.gbps, path.round_trip_us, path.queue_pairs);
    let text = unkind(file, name, window).set("name", name).set(
        "vary",
        &format!("{{ scheme: [ecn], sender: [{sender}]{vary} }}"),
    );
    Cell {
        name: name.to_owned(),
        text: text.text(),
    }
}

pub(super) fn row(name: &'static str, wanted: &'static str, cases: Vec<(Cell, Rule)>) -> Row {
    let mut baselines: Vec<Scheme> = Vec::new();
    for scheme in cases.iter().flat_map(|(_, rule)| rule.baselines()) {
        if !baselines.contains(&scheme) {
            baselines.push(scheme);
        }
    }
    Row {
        name,
        wanted,
        both: false,
        cases,
        baselines,
    }
}

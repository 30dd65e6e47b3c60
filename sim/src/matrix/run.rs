//! Runs the cells of the matrix with several seeds and schemes, several runs at a time, and skips those already done.

use std::io;
use std::sync::Mutex;

use super::Cell;
use crate::engine::{self, BuildError};
use crate::figures::Figures;
use crate::results::{Key, Results};
use crate::scenario::{Case, Scenario, ScenarioError, Scheme};
use crate::sweep;

/// A series of runs: one scheme with several seeds, under the name of a law.
#[derive(Debug, Clone)]
pub struct Series {
    /// Scheme of the switches.
    pub scheme: Scheme,
    /// Seeds, as offsets from the scenario's own.
    pub seeds: std::ops::Range<u64>,
    /// Label of the law and simulator; see [`Key::law`].
    pub law: String,
}

impl Series {
    /// Returns a series of each scheme, all with the same seeds and law.
    #[must_use]
    pub fn of(schemes: &[Scheme], seeds: &std::ops::Range<u64>, law: &str) -> Vec<Series> {
        let series = |scheme: &Scheme| Series {
            scheme: *scheme,
            seeds: seeds.clone(),
            law: law.to_owned(),
        };
        schemes.iter().map(series).collect()
    }
}

/// Reason why a matrix stops.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// A cell is not a valid scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A scenario cannot be built into a simulation.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The file of results cannot be written.
    #[error("cannot write the results: {0}; make room, and start the same command again")]
    Write(#[from] io::Error),
}

/// Figures of every series of a cell, each in the order of its seeds.
pub type CellFigures = Vec<Vec<Figures>>;

/// Runs what is not in `results` yet, on `jobs` threads; `done` is called after each run with the number of runs done and the total.
///
/// # Errors
/// [`MatrixError`]; what was done before is in `results`.
pub fn run(
    cells: &[Cell],
    series: &[Series],
    results: &mut Results,
    jobs: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<CellFigures>, MatrixError> {
    let keys = |cell: &Cell| -> Vec<Vec<Key>> {
        let of = |series: &Series| {
            let seeds = series.seeds.clone();
            let key = |seed| cell.key(series.scheme, seed, &series.law);
            seeds.map(key).collect()
        };
        series.iter().map(of).collect()
    };
    let mut missing = Vec::new();
    for cell in cells {
        let of_scheme = keys(cell).into_iter().zip(series);
        let all =
            of_scheme.flat_map(|(keys, series)| keys.into_iter().map(|key| (key, series.scheme)));
        missing.extend(
            all.filter(|(key, _)| results.get(key).is_none())
                .map(|(key, scheme)| (cell, key, scheme)),
        );
    }
    let shared = Mutex::new((&mut *results, 0));
    let work = |(cell, key, scheme): &(&Cell, Key, Scheme)| -> Result<(), MatrixError> {
        let scenario = cell.scenario()?.with_seed(key.seed);
        let case = scenario.cases().into_iter().next();
        let Some(case) = case.map(|case| Case {
            scheme: *scheme,
            ..case
        }) else {
            return Ok(());
        };
        let gbps = scenario.watched_rate().0 as f64 / 1e9;
        let outcome = engine::run(&scenario, &case)?;
        let figures = Figures::of(&outcome, gbps).beside(&alone(&scenario, &case, gbps)?);
        let Ok(mut shared) = shared.lock() else {
            return Ok(());
        };
        shared.0.add(key, figures)?;
        shared.1 += 1;
        done(shared.1, missing.len());
        Ok(())
    };
    sweep::each(&missing, jobs, work)
        .into_iter()
        .try_for_each(|(_, done)| done)?;
    let of_cell = |cell: &Cell| -> CellFigures {
        let of = |keys: Vec<Key>| {
            keys.iter()
                .filter_map(|key| results.get(key).cloned())
                .collect()
        };
        keys(cell).into_iter().map(of).collect()
    };
    Ok(cells.iter().map(of_cell).collect())
}

/// Runs each application alone, if it shares the network in the scenario.
fn alone(scenario: &Scenario, case: &Case, gbps: f64) -> Result<Vec<Figures>, BuildError> {
    let applications = scenario.applications.len();
    if applications + scenario.flows.len() < 2 {
        return Ok(Vec::new());
    }
    let each = (0..applications).map(|application| {
        let outcome = engine::run(&scenario.alone(application), case)?;
        Ok(Figures::of(&outcome, gbps))
    });
    each.collect()
}

//! All runs of a scenario, several at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::{self, BuildError, Outcome};
use crate::scenario::{Case, Scenario};

/// A run and what came of it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Which.
    pub case: Case,
    /// What.
    pub outcome: Outcome,
}

/// Runs every case on `jobs` threads; `done` is told after each how many are. The order of the answer is that of the cases.
///
/// # Errors
/// The first case, in order, that could not be built.
pub fn all(
    scenario: &Scenario,
    jobs: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Run>, BuildError> {
    let cases = scenario.cases();
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<Result<Outcome, BuildError>>>> =
        cases.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cases.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(case), Some(slot)) = (cases.get(index), results.get(index)) else {
                        break;
                    };
                    let outcome = engine::run(scenario, case);
                    if let Ok(mut slot) = slot.lock() {
                        *slot = Some(outcome);
                    }
                    done(finished.fetch_add(1, Ordering::Relaxed) + 1, cases.len());
                }
            });
        }
    });
    let results = results
        .into_iter()
        .filter_map(|slot| slot.into_inner().ok().flatten());
    cases
        .into_iter()
        .zip(results)
        .map(|(case, outcome)| outcome.map(|outcome| Run { case, outcome }))
        .collect()
}

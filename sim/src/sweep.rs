//! Runs all cases of a scenario, several at a time.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::{self, BuildError, Outcome};
use crate::scenario::{Case, Scenario};

/// A run and its outcome.
#[derive(Debug, Clone)]
pub struct Run {
    /// Case that was run.
    pub case: Case,
    /// Outcome of the run.
    pub outcome: Outcome,
}

/// Runs every case on `jobs` threads; `done` is called after each with the number done and the total. Returns the runs in the order of
/// the cases.
///
/// # Errors
/// The first case, in order, that could not be built.
pub fn all(
    scenario: &Scenario,
    jobs: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Run>, BuildError> {
    let cases = scenario.cases().into_iter().map(|case| (scenario, case));
    let outcomes = run(&cases.collect::<Vec<_>>(), jobs, done)?;
    let runs = scenario.cases().into_iter().zip(outcomes);
    Ok(runs.map(|(case, outcome)| Run { case, outcome }).collect())
}

/// Runs every case of a scenario with one seed after the other: `runs[n]` are those of the n-th seed, counted from the scenario's.
///
/// # Errors
/// The errors are those of [`all`].
pub fn seeded(
    scenario: &Scenario,
    seeds: u64,
    jobs: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Vec<Run>>, BuildError> {
    let scenarios: Vec<Scenario> = (0..seeds).map(|seed| scenario.with_seed(seed)).collect();
    let cases = scenario.cases();
    let items = scenarios
        .iter()
        .flat_map(|scenario| cases.iter().map(move |case| (scenario, *case)));
    let mut outcomes = run(&items.collect::<Vec<_>>(), jobs, done)?.into_iter();
    let runs_of = |_: u64| {
        let runs = cases.iter().zip(outcomes.by_ref());
        let runs = runs.map(|(case, outcome)| Run {
            case: *case,
            outcome,
        });
        runs.collect()
    };
    Ok((0..seeds).map(runs_of).collect())
}

/// Runs each case of its scenario on `jobs` threads; returns outcomes in the order of the cases.
///
/// # Errors
/// The first case, in order, that could not be built.
pub fn run(
    cases: &[(&Scenario, Case)],
    jobs: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Outcome>, BuildError> {
    let finished = AtomicUsize::new(0);
    let results = each(cases, jobs, |(scenario, case)| {
        let outcome = engine::run(scenario, case);
        done(finished.fetch_add(1, Ordering::Relaxed) + 1, cases.len());
        outcome
    });
    results.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Does `work` on every item, on `jobs` threads, and returns each item with its result, in the order of the items.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<(&T, R)> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, work(item)))
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads = 0..jobs.clamp(1, items.len().max(1));
        let threads = threads.map(|_| scope.spawn(|| std::iter::from_fn(take).collect::<Vec<_>>()));
        let threads: Vec<_> = threads.collect();
        let results = threads.into_iter().flat_map(|thread| {
            let done = thread.join();
            done.unwrap_or_else(|panic| resume_unwind(panic))
        });
        results.collect()
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    let results = results.into_iter().map(|(_, result)| result);
    items.iter().zip(results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_stays_with_its_item() {
        let items: Vec<u64> = (0..500).collect();
        for jobs in [0, 1, 3, 1_000] {
            // The first take longest, so that threads overtake each other.
            let results = each(&items, jobs, |item| {
                (0..(500 - item) * 50).fold(*item, |sum, _| std::hint::black_box(sum))
            });
            assert_eq!(results.len(), items.len());
            assert!(results.iter().all(|(item, result)| *item == result));
        }
        assert!(each(&[] as &[u64], 4, |item| *item).is_empty());
    }

    #[test]
    #[should_panic(expected = "a run that panics")]
    fn a_missing_result_shifts_no_other() {
        each(&[1, 2, 3], 2, |item| {
            assert!(*item != 2, "a run that panics")
        });
    }
}

//! Trials of obedient hosts, and of a deaf one, in whole fleets.

use npcc_sim::covering;
use npcc_sim::matrix::{self, Half};
use npcc_sim::scenario::{Case, Scenario};
use npcc_sim::{engine, sweep};

/// Host runs of 40 ms: `NPCC_RUNS`, or 100. `scripts/test-long trials` makes 10,000.
fn wanted() -> usize {
    std::env::var("NPCC_RUNS").map_or(100, |text| text.parse().unwrap())
}

/// Law: no host that obeys gets a verdict, on any fleet of the matrices, where its trials follow each other from its first CNP on; and no more
/// than one trial of a hundred is failed, so that five in a row are one in ten thousand millions.
#[test]
fn no_host_that_obeys_is_unresponsive() {
    let obeys = |name: &str| {
        !["deaf", "rtt", "swift", "imperfect"]
            .iter()
            .any(|other| name.contains(other))
    };
    let points = covering::half(Half::Odd)
        .into_iter()
        .map(|point| point.cell());
    let cells: Vec<_> = points
        .chain(matrix::cells())
        .filter(|cell| obeys(&cell.name))
        .collect();
    let (mut hosts, mut trials, mut seed) = (0, [0, 0], 0);
    let mut failures = Vec::new();
    // Cells far apart in the list come one after the other, so that few runs are of many kinds.
    while hosts < wanted() {
        let batch: Vec<_> = (0..8)
            .map(|n| &cells[(seed * 8 + n) * 37 % cells.len()])
            .collect();
        let runs: Vec<(Scenario, Case)> = batch
            .iter()
            .map(|cell| {
                let mut scenario = cell.scenario().unwrap().with_seed(seed as u64);
                scenario.imperfections.trials_at_once = true;
                let case = *scenario.cases().first().unwrap();
                (
                    scenario,
                    Case {
                        scheme: "model".parse().unwrap(),
                        ..case
                    },
                )
            })
            .collect();
        let runs: Vec<(&Scenario, Case)> = runs
            .iter()
            .map(|(scenario, case)| (scenario, *case))
            .collect();
        let outcomes = sweep::run(&runs, 2, &|_, _| {}).unwrap();
        for ((cell, (scenario, _)), outcome) in batch.iter().zip(&runs).zip(outcomes) {
            hosts += scenario
                .hosts
                .iter()
                .map(|group| group.count as usize)
                .sum::<usize>()
                / 2;
            trials[0] += outcome.trials.passed;
            trials[1] += outcome.trials.failed;
            assert_eq!(
                outcome.trials.unresponsive, 0,
                "{} seed {seed}: {:?}",
                cell.name, outcome.trials
            );
            if outcome.trials.failed > 0 {
                failures.push(format!("{} seed {seed}: {:?}", cell.name, outcome.trials));
            }
        }
        seed += 1;
    }
    println!(
        "{hosts} host runs: {} trials passed, {} failed: {failures:#?}",
        trials[0], trials[1]
    );
    assert!(
        trials[0] >= 5 && trials[1] * 100 <= trials[0],
        "{trials:?}: {failures:#?}"
    );
}

/// Law: in the review's scenario of four hosts at 1 Gb/s the deaf one is moved after ten seconds of failed trials, and no other; the three others
/// then have their fair shares.
#[test]
fn the_deaf_host_is_moved_and_the_others_have_their_shares() {
    let path = format!(
        "{}/../config/scenarios/review/deaf-host-1g.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let scenario = Scenario::load(path.as_ref()).unwrap();
    let case = *scenario.cases().first().unwrap();
    let case = Case {
        scheme: "model".parse().unwrap(),
        ..case
    };
    let outcome = engine::run(&scenario, &case).unwrap();
    let trials = outcome.trials;
    assert_eq!((trials.unresponsive, trials.moved), (1, 1), "{trials:?}");
    let obedient = &outcome.groups[0];
    let share = obedient.goodput / obedient.fair;
    println!("{trials:?}, obedient {share:.3}");
    assert!(share >= 0.9, "{share}");
}

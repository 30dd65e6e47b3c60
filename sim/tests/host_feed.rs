//! Cold start over 100 km where the senders' hosts report their queue pairs: how deep the queue gets, by the delay of the reports.
//!
//! `cargo test -p npcc-sim --test host_feed -- --nocapture` prints the table in docs/evidence.md.

use std::path::Path;

use npcc_config::units::Nanos;
use npcc_sim::scenario::{Scenario, Start};
use npcc_sim::sweep;

/// Number of seeds of which the median counts.
const SEEDS: u64 = 5;
/// Time of the start: twice the time after which the first answers pass.
const START: Nanos = Nanos::from_millis(2);

/// Median peak of the watched queue in MB while connections start.
fn peak(scheme: &str, start: Start) -> f64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/scenarios/cold-start.yaml");
    let mut scenario = Scenario::load(&path).unwrap();
    scenario.vary.scheme.retain(|one| one.to_string() == scheme);
    (scenario.vary.warm, scenario.vary.host_feed) = match start {
        Start::Warm => (vec![true], vec![]),
        Start::Cold => (vec![false], vec![]),
        Start::Reported(delay) => (vec![], vec![delay]),
    };
    (scenario.duration, scenario.utilisation_over) = (START, START);
    // Neither pool nor pauses hide how much arrives.
    (scenario.pool, scenario.pfc) = (None, false);
    let runs = sweep::seeded(&scenario, SEEDS, 2, &|_, _| {}).unwrap();
    let mut peaks: Vec<u64> = runs.iter().flatten().map(|run| run.outcome.peak).collect();
    assert_eq!(peaks.len() as u64, SEEDS);
    peaks.sort_unstable();
    peaks[peaks.len() / 2] as f64 / 1e6
}

#[test]
fn reports_that_come_with_the_first_packets_keep_a_cold_start_within_twice_a_warm_one() {
    let delays = [0, 100, 1_000, 10_000, 100_000].map(Nanos::from_micros);
    println!("| policy | warm | 0 | 0.1 ms | 1 ms | 10 ms | 100 ms | no reports |");
    for scheme in ["npcc", "model"] {
        let (warm, cold) = (peak(scheme, Start::Warm), peak(scheme, Start::Cold));
        let fed = delays.map(|delay| peak(scheme, Start::Reported(delay)));
        let all = [&[warm], &fed[..], &[cold]].concat();
        let cells: Vec<String> = all.iter().map(|peak| format!("{peak:.1}")).collect();
        println!("| {scheme} | {} |", cells.join(" | "));
        assert!(cold > 4.0 * warm, "there is something to gain: {all:?}");
        let [at_once, soon, later @ ..] = fed;
        assert!(at_once.max(soon) <= 2.0 * warm, "{all:?}");
        // The first answers pass after 1 ms, and what arrived until then is the peak.
        let is_cold = |peak: f64| (peak - cold).abs() < 0.05 * cold;
        assert!(later.into_iter().all(is_cold), "{all:?}");
    }
}

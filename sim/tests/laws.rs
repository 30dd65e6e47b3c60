//! Invariants of every run: frames are conserved, rates are kept, a seed gives one outcome, lossless means lossless.

use std::path::{Path, PathBuf};

use npcc_config::units::Nanos;
use npcc_sim::engine;
use npcc_sim::host::rc::Recovery;
use npcc_sim::scenario::Scenario;
use npcc_sim::sweep::{self, Run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn small(name: &str) -> Scenario {
    Scenario::load(&root().join("tests/scenarios").join(name)).unwrap()
}

fn run(scenario: &Scenario) -> Vec<Run> {
    sweep::all(scenario, 2, &|_, _| {}).unwrap()
}

fn is_sound(scenario: &Scenario, run: &Run) {
    let outcome = &run.outcome;
    let name = format!("{}: {}", scenario.name, run.case);
    assert_eq!(outcome.audit.missing(), 0, "{name}: {:?}", outcome.audit);
    assert_eq!(outcome.audit.not_understood, 0, "{name}");
    assert!(outcome.audit.made > 100, "{name}: nothing happened");
    let line = scenario
        .links
        .iter()
        .map(|link| link.rate)
        .chain(scenario.hosts.iter().map(|group| group.rate));
    let line = line.map(|rate| rate.0).max().unwrap() as f64 / 1e9;
    let step = outcome.samples.first().unwrap().at.0 as f64;
    // A frame counts when it begins to leave.
    let frame = 8.0 * (f64::from(scenario.mtu) + 100.0) / step;
    for sample in &outcome.samples {
        assert!(
            sample.through <= line + frame,
            "{name}: {} at {:?}",
            sample.through,
            sample.at
        );
    }
    assert!(
        outcome.utilisation <= 1.0001 && outcome.jain <= 1.0 + 1e-9,
        "{name}"
    );
}

/// Scenarios of a folder of the repository.
fn shipped(folder: &str) -> Vec<Scenario> {
    let entries = std::fs::read_dir(root().join("..").join(folder)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    files
        .iter()
        .map(|path| Scenario::load(path).unwrap())
        .collect()
}

/// Guards the scenarios of the review: each runs: 200 us at 100G of the first and the last scheme each.
#[test]
fn every_scenario_of_the_review_runs() {
    let scenarios = shipped("config/scenarios/review");
    assert!(scenarios.len() >= 25, "{}", scenarios.len());
    for mut scenario in scenarios {
        // As many frames at any rate.
        let times = (100_000_000_000 / scenario.watched_rate().0).max(1);
        scenario.duration = Nanos::from_micros(200 * times);
        scenario.vary.sender.truncate(1);
        let last = scenario.vary.scheme.pop().unwrap();
        scenario.vary.scheme.truncate(1);
        scenario.vary.scheme.push(last);
        for done in run(&scenario) {
            is_sound(&scenario, &done);
        }
    }
}

/// Law: frames are conserved and no link exceeds its rate; checked on 2 ms of every shipped scenario, and on those of the tests.
#[test]
fn frames_are_conserved_and_no_link_is_faster_than_its_rate() {
    let mut scenarios: Vec<Scenario> = ["small.yaml", "lossy.yaml"].map(small).into();
    let all = ["config/scenarios", "config/scenarios/review"];
    for mut scenario in all.into_iter().flat_map(shipped) {
        scenario.duration = Nanos::from_millis(2);
        scenario.vary.sender.truncate(1);
        scenario.vary.length.truncate(3);
        for failure in &mut scenario.failures {
            failure.at = Nanos::from_micros(700);
            failure.rerouted_after = Nanos::from_micros(100);
        }
        scenarios.push(scenario);
    }
    assert!(scenarios.len() >= 10);
    for scenario in &scenarios {
        for done in run(scenario) {
            is_sound(scenario, &done);
        }
    }
}

#[test]
fn one_seed_gives_one_outcome_and_another_another() {
    let mut scenario = small("small.yaml");
    scenario.vary.scheme.truncate(3);
    let case = scenario.cases().pop().unwrap();
    let first = engine::run(&scenario, &case).unwrap();
    assert_eq!(first, engine::run(&scenario, &case).unwrap());
    scenario.seed += 1;
    assert_ne!(first, engine::run(&scenario, &case).unwrap());
}

/// Law: lossless means lossless. Three senders overload a link by 200G into 8 MB: with PFC nothing is dropped, in every scheme.
#[test]
fn with_pauses_nothing_is_lost() {
    let scenario = small("small.yaml");
    let runs = run(&scenario);
    for done in &runs {
        let outcome = &done.outcome;
        assert_eq!((outcome.dropped, outcome.repeated), (0, 0), "{}", done.case);
    }
    let paused = runs.iter().filter(|done| done.outcome.pauses > 0).count();
    assert!(paused >= 2, "the senders without any signal at least");
}

/// Law: retransmission delivers everything. Without pauses the buffer overflows; go-back-N and selective repeat both recover, the second
/// with fewer packets.
#[test]
fn what_is_lost_comes_again() {
    let scenario = small("lossy.yaml");
    for recovery in [Recovery::GoBackN, Recovery::Selective] {
        let scenario = Scenario {
            recovery,
            ..scenario.clone()
        };
        for done in run(&scenario) {
            assert!(done.outcome.dropped > 0, "{recovery:?} {}", done.case);
            for group in &done.outcome.groups {
                let name = &group.name;
                assert_eq!(group.bursts.len(), 4, "{recovery:?} {} {name}", done.case);
            }
        }
    }
    let repeated = |recovery| {
        let mut scenario = Scenario {
            recovery,
            ..scenario.clone()
        };
        // A READ is requested again from the gap on, whatever the recovery.
        scenario.flows.truncate(1);
        let runs = run(&scenario);
        runs.iter().map(|done| done.outcome.repeated).sum::<u64>()
    };
    let (all, missing) = (repeated(Recovery::GoBackN), repeated(Recovery::Selective));
    assert!(0 < missing && missing < all, "{missing} of {all}");
}

/// Law: depth is measured over time, not at arrivals. Two hosts send 2 MB each into one link of their rate: the queue rises for 160 us and
/// falls for 160, a triangle of 2 MB whose mean over 1 ms is 0.32 MB.
#[test]
fn depth_counts_by_time_while_a_queue_drains_too() {
    let text = "
version: 1
name: triangle
duration: 1ms
switches: [sw]
hosts:
  - { name: from, count: 2, switch: sw }
  - { name: to, count: 1, switch: sw }
flows: [{ from: from, to: to, burst: 2MB, every: 1s }]
watch: to
start_jitter: 1ns
vary: { scheme: [pfc], sender: [uncontrolled] }
";
    let scenario = Scenario::parse("triangle", text).unwrap();
    let outcome = engine::run(&scenario, &scenario.cases()[0]).unwrap();
    let off = |value: u64, of: f64| (value as f64 / of - 1.0).abs();
    assert!(off(outcome.peak, 2e6) < 0.05, "{}", outcome.peak);
    assert!(off(outcome.mean, 0.32e6) < 0.1, "{}", outcome.mean);
    for sample in &outcome.samples {
        let us = sample.at.0 as f64 / 1e3;
        // The maximum of an interval of 1.67 us, of a queue that loses 12.5 KB in 1 us.
        let due = 2e6 * (1.0 - (us - 163.0).abs() / 163.0).max(0.0);
        let depth = sample.depth as f64;
        assert!((depth - due).abs() < 0.1e6, "{us} us: {depth}, not {due}");
    }
}

/// Law: in every other respect equal, a notification point that owes a CNP for the marks within its interval sends more of them, and none
/// sooner than an interval after the last: fewer than one for each 50 us and flow.
#[test]
fn a_receiver_that_owes_cnps_sends_more_of_them() {
    let text = "
version: 1
name: owe
duration: 4ms
switches: [sw]
hosts:
  - { name: from, count: 8, switch: sw, cable: 400m }
  - { name: to, count: 1, switch: sw, cable: 400m }
flows: [{ from: from, to: to }]
watch: to
cnp_interval: 50us
vary: { scheme: [ecn], np: [forget, owe] }
";
    let scenario = Scenario::parse("owe", text).unwrap();
    let runs = run(&scenario);
    let cnps: Vec<u64> = runs.iter().map(|run| run.outcome.cnps_host).collect();
    assert_eq!(runs[0].case.to_string(), "hpcc-vendor ecn");
    assert_eq!(runs[1].case.to_string(), "hpcc-vendor ecn np owe");
    assert!(
        cnps[1] > cnps[0] && cnps[1] <= 8 * (4_000 / 50 + 1),
        "{cnps:?}"
    );
}

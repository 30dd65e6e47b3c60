use std::collections::BTreeSet;

use super::rule::{Runs, halvings};
use super::*;
use crate::figures::{Application, Figures};
use crate::scenario::{Scenario, Window};

fn scenarios() -> Vec<(String, Scenario)> {
    let all = rows().into_iter().flat_map(|row| row.cases);
    all.map(|(cell, _)| (cell.name.clone(), cell.scenario().unwrap()))
        .collect()
}

#[test]
fn every_cell_is_a_scenario_with_a_name_of_its_own() {
    let all = scenarios();
    let names: BTreeSet<&String> = all.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), all.len());
    for row in rows() {
        assert!(
            !row.cases.is_empty() && !row.baselines.is_empty(),
            "{}",
            row.name
        );
    }
    let old = rows().into_iter().find(|row| row.name == "the old table");
    assert_eq!(
        old.unwrap().cases.len(),
        10,
        "a cell of the old table is gone"
    );
}

/// Guards the unkind ends: every cell but the old ones has them, with windows and without in about equal parts.
#[test]
fn cells_have_the_unkind_ends_of_what_is_not_known() {
    let mut windows = [0, 0];
    for row in rows().into_iter().filter(|row| row.name != "the old table") {
        for (cell, _) in row.cases {
            let scenario = cell.scenario().unwrap();
            assert_eq!(scenario.limiter_burst.0, 64_000, "{}", cell.name);
            assert_eq!(scenario.reaction.0, 10_000, "{}", cell.name);
            assert!(!scenario.control_cost.is_zero(), "{}", cell.name);
            match scenario.window {
                Window::Unlimited => windows[0] += 1,
                Window::Bytes(bytes) => {
                    assert!(bytes.0 >= 4_000_000, "{}", cell.name);
                    windows[1] += 1;
                }
            }
        }
    }
    let [without, with] = windows;
    assert!(
        without * 3 > with && with * 3 > without,
        "{without} and {with}"
    );
}

/// Computed by hand: 63 limiters of 100G need six halvings, and the excess is 6,200, 3,050, 1,475, 687.5, 293.75, 96.875 Gb/s meanwhile.
#[test]
fn the_bound_is_the_excess_while_limiters_are_halved() {
    let incast = (6_200.0 + 3_050.0 + 1_475.0 + 687.5 + 293.75 + 96.875) * 4.0 * 125.0 / 1e6;
    assert!((halvings(63, 100.0, 6_300.0, 100.0) - incast).abs() < 1e-9);
    // The link of one host hides seven halvings of its 64 limiters: 25,600 Gb/s, and 200 at the eighth.
    let one_host = (7.0 * 300.0 + 100.0) * 4.0 * 125.0 / 1e6;
    assert!((halvings(64, 400.0, 400.0, 100.0) - one_host).abs() < 1e-9);
    assert!(halvings(1, 100.0, 100.0, 100.0) < 1e-9);
}

fn runs(of: &[(&str, Figures)]) -> Runs {
    let all = of.iter();
    all.map(|(scheme, figures)| ((*scheme).to_owned(), vec![figures.clone(); 8]))
        .collect()
}

fn is_met(rule: &Rule, runs: &Runs, today: Option<&[Figures]>) -> bool {
    let checks = rule.check(runs, "model", today);
    assert!(!checks.is_empty());
    checks.iter().all(|check| check.met != Some(false))
}

fn run() -> Figures {
    Figures {
        goodput: 1.0,
        jain: 1.0,
        worst: Some(1.0),
        ..Figures::default()
    }
}

fn beside(ecn: Figures, with: Figures) -> Runs {
    runs(&[("ecn", ecn), ("model", with)])
}

#[test]
fn rules_of_flows_are_met_at_their_bounds_and_not_beyond() {
    let shares = |worst: f64, peak: u64| {
        let with = Figures {
            worst: Some(worst),
            peak,
            ..run()
        };
        is_met(&Rule::Shares(3.0), &beside(run(), with), None)
    };
    assert!(shares(0.9, 3_000_000) && !shares(0.899, 0) && !shares(1.0, 3_000_100));
    let goodput = |goodput: f64, jain: f64| {
        let with = Figures {
            goodput,
            jain,
            ..run()
        };
        is_met(&Rule::Goodput, &beside(run(), with), None)
    };
    assert!(goodput(0.99, 0.98) && !goodput(0.989, 1.0) && !goodput(1.0, 0.979));
    let half = |peak: u64| {
        let of = |peak: u64| Figures { peak, ..run() };
        let runs = beside(of(10_000_000), of(peak));
        is_met(&Rule::HalfPeak(1.0), &runs, None)
    };
    assert!(half(5_000_000) && !half(5_100_000));
    let cnps = |cnps: u64| {
        let runs = beside(run(), Figures { cnps, ..run() });
        is_met(&Rule::NoCnps, &runs, None)
    };
    assert!(cnps(0) && !cnps(1));
    let adversary = |goodput: f64, pauses: u64| {
        let of = |goodput: f64, pauses: u64| Figures {
            goodput,
            pauses,
            ..run()
        };
        is_met(
            &Rule::Adversary,
            &beside(of(0.8, 9), of(goodput, pauses)),
            None,
        )
    };
    assert!(adversary(0.94, 9) && !adversary(0.939, 9) && !adversary(1.0, 10));
}

#[test]
fn short_flows_are_compared_with_the_better_baseline_and_the_law_before() {
    let mice = |p99: f64, before: f64| {
        let of = |p99: f64| Figures {
            slowdown: Some([1.0, p99]),
            ..run()
        };
        let all = [
            ("ecn", of(20.0)),
            ("ecn-tuned", of(10.0)),
            ("model", of(p99)),
        ];
        let before = Figures {
            goodput: before,
            ..run()
        };
        is_met(&Rule::ShortFlows, &runs(&all), Some(&vec![before; 8]))
    };
    assert!(mice(5.0, 1.0) && !mice(5.1, 1.0), "half of the better one");
    assert!(!mice(5.0, 1.1), "goodput was more before");
}

#[test]
fn rules_of_steps_are_met_at_their_bounds_and_not_beyond() {
    let step = |mean: f64, pauses: u64, dropped: u64| Figures {
        applications: vec![Application {
            name: "ring".to_owned(),
            mean,
            ..Application::default()
        }],
        pauses,
        dropped,
        ..Figures::default()
    };
    let steps = |rule: &Rule, with: Figures| {
        let of = [
            ("pfc", step(1.0, 500, 0)),
            ("ecn", step(1.2, 50, 0)),
            ("ecn-tuned", step(1.1, 5, 0)),
            ("model", with),
        ];
        is_met(rule, &runs(&of), None)
    };
    assert!(steps(&Rule::Steps, step(1.03, 5, 0)));
    assert!(!steps(&Rule::Steps, step(1.031, 5, 0)), "too slow");
    assert!(!steps(&Rule::Steps, step(1.0, 6, 0)), "pauses");
    assert!(!steps(&Rule::Steps, step(1.0, 0, 1)), "a drop");
    // With 4 pauses no baseline pauses as little; with 5 `ecn-tuned` does.
    assert!(steps(&Rule::Frontier, step(9.0, 4, 0)));
    assert!(!steps(&Rule::Frontier, step(1.2, 5, 0)));
    assert!(steps(&Rule::Frontier, step(1.13, 5, 0)));
}

/// Two applications may be on opposite sides of a trade: the best baseline is one of them, and not the best of each.
#[test]
fn the_best_baseline_of_two_applications_is_one_baseline() {
    let both = |first: f64, second: f64| {
        let one = |name: &str, mean: f64| Application {
            name: name.to_owned(),
            mean,
            ..Application::default()
        };
        Figures {
            applications: vec![one("requests", first), one("checkpoint", second)],
            ..Figures::default()
        }
    };
    let met = |first: f64, second: f64| {
        let of = [
            ("pfc", both(1.2, 11.0)),
            ("ecn", both(0.3, 17.0)),
            ("ecn-tuned", both(0.25, 17.5)),
            ("model", both(first, second)),
        ];
        is_met(&Rule::Steps, &runs(&of), None)
    };
    assert!(met(0.25, 18.0) && !met(0.25, 18.1) && !met(0.26, 11.0));
}

/// Guards the way from a row to its table: runs, congestion, the law before, and the line that counts.
#[test]
fn a_row_is_run_and_printed() {
    let text = "version: 1
name: small
duration: 2ms
switches: [a]
hosts: [{ name: tx, count: 2, switch: a }, { name: rx, count: 1, switch: a }]
flows: [{ name: all, from: tx, to: rx }]
watch: rx
vary: { scheme: [ecn] }
";
    let cell = crate::matrix::Cell {
        name: "small".to_owned(),
        text: text.to_owned(),
    };
    let row = Row {
        name: "small",
        wanted: "a small peak",
        both: false,
        cases: vec![(cell, Rule::Old(0.001))],
        baselines: Rule::Old(0.001).baselines(),
    };
    let mut results = crate::results::Results::in_memory();
    let judged = judge(&row, (2, "one"), &mut results, None, 1, &|_, _| {}).unwrap();
    assert_eq!(judged.len(), policies().len());
    assert!(judged[0].decides && !judged[1].decides);
    assert!(judged.iter().all(|one| one.counts && !one.is_met()));
    let text = table(&row, &judged);
    assert!(text.contains("small: a small peak\n"), "{text}");
    assert!(text.contains(" NO "), "{text}");
    assert!(text.contains("0 of   1 met;   1 count"), "{text}");
    // Beside itself a law is not worse.
    let before = results;
    let mut results = crate::results::Results::in_memory();
    let same = Some((&before, "one"));
    let judged = judge(&row, (2, "two"), &mut results, same, 1, &|_, _| {}).unwrap();
    let goodput = &judged[0].checks[1];
    assert_eq!(
        (goodput.what.as_str(), goodput.met),
        ("goodput", Some(true))
    );
}

/// Guards the law before: its file has eight runs of each policy for every cell whose rule compares with it, under the text of today.
#[test]
fn the_law_before_has_run_what_is_compared_with_it() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/measure/before.tsv");
    let results = crate::results::Results::read(file.as_ref()).unwrap();
    let cases = rows().into_iter().flat_map(|row| row.cases);
    let mut cells = 0;
    for (cell, _) in cases.filter(|(_, rule)| rule.needs_before()) {
        cells += 1;
        for (policy, seed) in policies()
            .iter()
            .flat_map(|policy| (0..8).map(move |seed| (policy, seed)))
        {
            let key = crate::results::Key {
                cell: cell.name.clone(),
                text: crate::hash::fnv(cell.text.as_bytes()),
                seed,
                scheme: policy.to_string(),
                law: "before".to_owned(),
            };
            assert!(results.get(&key).is_some(), "{key}: run `measure before`");
        }
    }
    assert_eq!(cells, 26);
}

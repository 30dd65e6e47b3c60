use std::collections::BTreeSet;

use super::*;
use crate::matrix::{Cell, Half};
use crate::measure::{Finding, Verdict};

/// Returns the values of a point, by axis.
fn words(point: &Point) -> Vec<String> {
    point.name().split(' ').map(str::to_owned).collect()
}

/// Law: every pair of values of two axes occurs in a cell of each half, but for those that a load excludes.
#[test]
fn every_pair_of_values_occurs_in_each_half() {
    for of in [Half::Odd, Half::Even] {
        every_pair_occurs(&half(of));
    }
}

fn every_pair_occurs(points: &[Point]) {
    let mut seen = BTreeSet::new();
    for point in points {
        let words = words(point);
        for (axis, word) in words.iter().enumerate() {
            for other in &words[axis + 1..] {
                seen.insert((word.clone(), other.clone()));
            }
        }
    }
    let axes = [
        Load::ALL.map(|load| load.name().to_owned()).to_vec(),
        CARDS.map(|cards| cards.name.to_owned()).to_vec(),
        Distance::ALL.map(Distance::name).to_vec(),
        Buffer::ALL.map(Buffer::name).to_vec(),
        QUEUE_PAIRS.map(|count| format!("{count}qp")).to_vec(),
    ];
    let mut excluded = BTreeSet::new();
    for (axis, values) in axes.iter().enumerate() {
        for one in values {
            for other in axes[axis + 1..].iter().flatten() {
                if !seen.contains(&(one.clone(), other.clone())) {
                    excluded.insert(format!("{one} {other}"));
                }
            }
        }
    }
    let excluded: Vec<String> = excluded.into_iter().collect();
    assert_eq!(
        excluded,
        [
            "all-to-all 64qp",
            "failover mixed-receivers",
            "failover mixed-senders",
            "incast 64qp",
            "incast mixed-receivers",
            "incast mixed-senders",
        ]
    );
}

#[test]
fn every_cell_is_a_scenario_with_a_name_of_its_own() {
    let cells: Vec<Cell> = points().iter().map(Point::cell).collect();
    let names: BTreeSet<&String> = cells.iter().map(|cell| &cell.name).collect();
    assert_eq!(names.len(), cells.len());
    assert!((208..=240).contains(&cells.len()), "{}", cells.len());
    for (cell, point) in cells.iter().zip(points()) {
        let scenario = cell.scenario().unwrap();
        assert_eq!(scenario.limiter_burst.0, 64_000, "{}", cell.name);
        assert_eq!(
            scenario.pool.map(|pool| pool.0 / 1_000_000),
            point.buffer.megabytes.map(u64::from)
        );
        let sends = scenario.flows.len() + scenario.applications.len();
        assert!(sends > 0, "{}", cell.name);
        // All run: 50 us of each.
        let mut short = scenario.clone();
        short.duration = npcc_config::units::Nanos::from_micros(50);
        let case = short.cases()[0];
        let outcome = crate::engine::run(&short, &case).unwrap();
        assert_eq!(
            (outcome.audit.missing(), outcome.audit.not_understood),
            (0, 0),
            "{}",
            cell.name
        );
    }
}

#[test]
fn the_table_counts_verdicts_beside_the_hardest_baseline() {
    let finding = |verdict: Verdict| Finding {
        verdict,
        figure: crate::measure::Figure::Goodput,
        baseline: crate::measure::Values {
            median: 0.5,
            worst: 0.5,
        },
        scheme: crate::measure::Values {
            median: 0.7,
            worst: 0.6,
        },
    };
    let judged = |cell: &str, counts: bool, verdicts: &[Verdict]| ComparedCell {
        cell: cell.to_owned(),
        scheme: "model".to_owned(),
        counts,
        findings: verdicts.iter().copied().map(finding).collect(),
    };
    let all = [
        judged("steady mlx", true, &[Verdict::Better, Verdict::Worse]),
        judged("steady paper", true, &[Verdict::Better, Verdict::Better]),
        judged("mice paper", false, &[Verdict::Worse, Verdict::Worse]),
    ];
    let text = table(&all);
    let line = |start: &str| {
        let line = text.lines().find(|line| line.starts_with(start));
        line.unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        line("steady mlx"),
        "steady mlx model +- worse: goodput 0.700 (0.600) against 0.500 (0.500)"
    );
    assert!(line("[mice paper]").contains(" -- "), "it does not count");
    assert_eq!(line("pfc"), "pfc model 2 0 0");
    assert_eq!(line("ecn "), "ecn model 1 0 1");
    assert_eq!(line("steady   "), "steady model 1 0 1");
    assert!(!text.contains("\nmice "), "{text}");
}

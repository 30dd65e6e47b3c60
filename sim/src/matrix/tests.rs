use super::*;
use crate::engine;
use crate::figures::Figures;
use crate::host::np::WithinInterval;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_cell_is_a_scenario_with_a_name_of_its_own() {
    let cells = cells();
    let names: BTreeSet<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names.len(), cells.len());
    assert!(SHORT.iter().all(|name| names.contains(name)));
    for cell in &cells {
        let scenario = cell.scenario().unwrap();
        assert_eq!(
            scenario.cases().len(),
            1 + PolicyName::COUNT,
            "{}",
            cell.name
        );
        // Senders to the reported queue; a host with two flows gives half of its link to each.
        let flows = |group: &str| {
            scenario
                .flows
                .iter()
                .filter(|flow| flow.from == group)
                .count() as u64
        };
        let hosts = scenario.hosts.iter().filter(|group| flows(&group.name) > 0);
        let offered: u64 = hosts
            .map(|group| group.rate.0 * u64::from(group.count) / flows(&group.name))
            .sum();
        let rate = scenario.watched_rate().0;
        assert!(offered * 100 >= rate * 105, "{}: no overload", cell.name);
    }
}

#[test]
fn both_kinds_of_notification_points_are_judged() {
    let mut cells = cells();
    let owing: Vec<Cell> = cells
        .extract_if(.., |cell| cell.name.ends_with(" owe"))
        .collect();
    let np = |cell: &Cell| cell.scenario().unwrap().cases()[0].np;
    assert!(cells.iter().all(|cell| np(cell) == WithinInterval::Forget));
    assert!(owing.iter().all(|cell| np(cell) == WithinInterval::Owe));
    let firsts = |cells: &[Cell], word: usize| -> BTreeSet<String> {
        let words = cells.iter().map(|cell| cell.name.split(' ').nth(word));
        words.map(|word| word.unwrap().to_owned()).collect()
    };
    // Every pattern, place and fleet has receivers of both kinds.
    assert_eq!(firsts(&owing, 0), firsts(&cells, 0));
    assert_eq!(firsts(&owing, 1), firsts(&cells, 1));
    assert_eq!(owing.len(), 204);
}

#[test]
fn both_halves_have_every_word() {
    let mut halves: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for cell in cells() {
        for word in cell.name.split(' ') {
            let count = halves.entry(word.to_owned()).or_default();
            count[usize::from(cell.half() == Half::Even)] += 1;
        }
    }
    let of_three = cells().into_iter().filter(|cell| cell.is_in_sample(3));
    let share = of_three.count() as f64 / cells().len() as f64;
    assert!((0.28..0.39).contains(&share), "{share}");
    for (word, [odd, even]) in halves {
        assert!(odd.min(even) * 4 >= odd + even, "{word}: {odd} and {even}");
    }
}

/// Guards the places: congestion is where the name says, and both classes are there; at 1 km with ECN alone, 8 ms each.
#[test]
fn every_place_has_congestion_and_its_classes() {
    let places = [
        ("near-leaf", ["inter", "local"].as_slice()),
        ("dci", &["inter", "local"]),
        ("far-host", &["inter", "local"]),
        ("mice", &["elephants", "mice"]),
        ("deaf-host", &["listening"]),
    ];
    for (place, classes) in places {
        let name = format!("{place} hpcc-vendor 100G x4.00 1km");
        let cell = cells().into_iter().find(|cell| cell.name == name).unwrap();
        let scenario = cell.scenario().unwrap();
        let case = scenario.cases()[0];
        let outcome = engine::run(&scenario, &case).unwrap();
        assert!(outcome.marked > 100, "{name}: {}", outcome.marked);
        let figures = Figures::of(&outcome, 100.0);
        let names = figures.classes.iter().map(|class| class.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), classes, "{name}");
        assert!(
            figures.classes.iter().all(|class| class.goodput > 0.001),
            "{name}: {figures:?}"
        );
        assert_eq!(figures.slowdown.is_some(), place == "mice", "{name}");
        // At `near-leaf` a switch without NPCC marks, and NPCC sees the marked frames pass.
        assert_eq!(
            scenario.npcc_queues().any(|queue| *queue == scenario.watch),
            place != "near-leaf"
        );
    }
}

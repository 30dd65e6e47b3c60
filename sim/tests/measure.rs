//! Measure of harm: its constants, its near-zero rate of false alarms in ECN against itself, and that it finds harm that is there.

use std::collections::BTreeMap;
use std::fmt::Write;

use npcc_sim::figures::Figures;
use npcc_sim::harm::{self, Calibration, Figure};
use npcc_sim::matrix::run::{self, Series};
use npcc_sim::matrix::{self, Half};
use npcc_sim::results::Results;

/// Results of ECN alone in a third of the even cells, with the seeds 21 to 28 and 121 to 128: cell, seed offset, figures. Made by
/// `scripts/evidence 8 calibration`.
const ECN: &str = include_str!("measure/ecn.tsv");

/// Law: the measure is frozen; a law is changed to do no harm by it, never the reverse. A commit that changes a number here says
/// why the old one was wrong, and regenerates every table of docs/evidence.md that was judged by it.
#[test]
fn the_measure_is_what_it_was() {
    let mut text = String::new();
    let class = Figure::Class(0, "x".to_owned());
    for figure in [
        Figure::Peak,
        Figure::Pauses,
        Figure::Goodput,
        Figure::Fairness,
        Figure::Slowdown(0),
        Figure::Slowdown(1),
        class,
    ] {
        let _ = writeln!(text, "{figure} {} in {}", figure.limit(), figure.pairs());
    }
    for rate in ["25G", "400G"] {
        let name = format!("steady hpcc-vendor {rate} x1.05 1km");
        let cell = matrix::cells().into_iter().find(|cell| cell.name == name);
        let allowance = harm::allowance(&cell.unwrap().scenario().unwrap());
        let _ = writeln!(text, "allowance at {rate} {allowance}");
    }
    for half in [Half::Odd, Half::Even] {
        let _ = writeln!(text, "{half:?} from seed {}", 1 + half.first_seed());
    }
    assert_eq!(
        text,
        "peak 0.05 in 0.82\n\
         pauses 0 in 0.82\n\
         goodput 0.01 in 0.82\n\
         fairness 0.05 in 0.9\n\
         slowdown p50 0.05 in 0.9\n\
         slowdown p99 0.05 in 0.9\n\
         class x 0.01 in 0.9\n\
         allowance at 25G 534784\n\
         allowance at 400G 534784\n\
         Odd from seed 1\n\
         Even from seed 21\n"
    );
}

#[test]
fn ecn_is_not_worse_than_itself_and_planted_harm_is_found() {
    let mut cells: BTreeMap<&str, BTreeMap<u64, Figures>> = BTreeMap::new();
    let none = Figures::default().to_line();
    let (seventh, _) = none.match_indices('\t').nth(6).unwrap();
    let later = &none[seventh..];
    for line in ECN.lines() {
        let mut fields = line.splitn(3, '\t');
        let cell = cells.entry(fields.next().unwrap()).or_default();
        let seed = fields.next().unwrap().parse().unwrap();
        // The table is older than the last fields of a line, which harm does not read.
        let line = format!("{}{later}", fields.next().unwrap());
        cell.insert(seed, Figures::from_line(&line).unwrap());
    }
    let known = matrix::cells();
    let mut calibration = Calibration::default();
    let mut wrong = String::new();
    for (name, runs) in cells {
        let cell = known.iter().find(|cell| cell.name == name).unwrap();
        assert_eq!((cell.half(), runs.len()), (Half::Even, 16), "{name}");
        assert!(cell.is_in_sample(3), "{name}");
        let allowance = harm::allowance(&cell.scenario().unwrap());
        let runs: Vec<Figures> = runs.into_values().collect();
        let (ecn, others) = runs.split_at(8);
        for line in calibration.add(ecn, others, allowance) {
            let _ = writeln!(wrong, "{name}: {line}");
        }
    }
    assert!(calibration.cells >= 120, "{calibration:?}");
    assert!(calibration.is_good(), "{calibration:?}\n{wrong}");
}

/// Guards the measure against missing real harm: a switch without any marks, in runs of its own.
#[test]
fn a_switch_that_does_not_mark_does_harm() {
    let cells = matrix::cells().into_iter();
    let cells: Vec<_> = cells
        .filter(|cell| cell.name == "steady hpcc-vendor 100G x2.00 1km")
        .collect();
    let series = ["ecn", "pfc"].map(|name| Series {
        scheme: name.parse().unwrap(),
        seeds: 0..3,
        law: String::new(),
    });
    let done = run::run(&cells, &series, &mut Results::in_memory(), 2, &|_, _| {}).unwrap();
    let allowance = harm::allowance(&cells[0].scenario().unwrap());
    let harms = harm::of(&done[0][0], &done[0][1], allowance);
    assert_eq!(harms.len(), 1, "{harms:?}");
    assert_eq!(harms[0].figure, Figure::Peak);
}

/// Guards resumption: an interrupted matrix runs only what is missing, whichever run that is, and one under another law runs everything.
#[test]
fn a_stopped_matrix_goes_on() {
    let cells = matrix::cells().into_iter();
    let cells: Vec<_> = cells
        .filter(|cell| cell.name == "steady hpcc-vendor 25G x1.05 1km")
        .collect();
    let series = |law: &str| {
        ["ecn", "npcc"].map(|name| Series {
            scheme: name.parse().unwrap(),
            seeds: 0..2,
            law: law.to_owned(),
        })
    };
    let path = std::env::temp_dir().join(format!("npcc-matrix-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let count = |_: usize, _: usize| {
        runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let go = |law: &str| {
        let mut results = Results::open(&path).unwrap();
        let before = runs.load(std::sync::atomic::Ordering::Relaxed);
        let figures = run::run(&cells, &series(law), &mut results, 2, &count).unwrap();
        let after = runs.load(std::sync::atomic::Ordering::Relaxed);
        (figures, after - before)
    };
    let (first, done) = go("one");
    assert_eq!(done, 4);
    let text = std::fs::read_to_string(&path).unwrap();
    let two: String = text
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&path, two + "steady hpcc-vendor 25G x1.").unwrap();
    assert_eq!(go("one"), (first.clone(), 2));
    assert_eq!(go("one"), (first.clone(), 0));
    assert_eq!(go("two"), (first, 4));
    std::fs::remove_file(&path).unwrap();
}

//! The standard scenarios' tables, a few ms of each. A change of a policy shows here: look at the difference, and if it is
//! meant, write the tables anew with `UPDATE_SNAPSHOTS=1 cargo test -p npcc-sim --test snapshots`.

use std::fmt::Write;
use std::path::Path;

use npcc_config::units::{Length, Nanos};
use npcc_sim::report;
use npcc_sim::scenario::Scenario;
use npcc_sim::sweep;

fn shortened(name: &str) -> Scenario {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/scenarios");
    let mut scenario = Scenario::load(&root.join(name).with_extension("yaml")).unwrap();
    scenario.duration = Nanos::from_millis(3);
    scenario.utilisation_over = Nanos::from_millis(3);
    scenario.goodput_from = Nanos::from_millis(1);
    scenario.vary.sender.truncate(2);
    if !scenario.vary.length.is_empty() {
        scenario.vary.length = vec![Length::from_metres(1_000), Length::from_metres(100_000)];
    }
    for failure in &mut scenario.failures {
        failure.at = Nanos::from_millis(1);
        failure.rerouted_after = Nanos::from_micros(200);
    }
    scenario
}

/// Lines that differ, as a reviewer wants to see them.
fn difference(old: &str, new: &str) -> String {
    let mut text = String::new();
    for (old, new) in old.lines().zip(new.lines()).filter(|(old, new)| old != new) {
        let _ = writeln!(text, "- {old}\n+ {new}");
    }
    text
}

fn check(name: &str) {
    let scenario = shortened(name);
    let runs = sweep::all(&scenario, 2, &|_, _| {}).unwrap();
    let new = report::table(&scenario, &runs);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(name)
        .with_extension("txt");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &new).unwrap();
    }
    let old = std::fs::read_to_string(&path).unwrap();
    assert!(old == new, "{name} differs:\n{}", difference(&old, &new));
    let page = report::html(&scenario, &runs);
    assert!(
        page.matches("<svg").count() >= 4 && !page.contains("http"),
        "one page, self-contained"
    );
    assert_eq!(
        report::csv(&scenario, std::slice::from_ref(&runs))
            .lines()
            .count(),
        runs.len() + 1
    );
}

macro_rules! scenarios {
    ($($test:ident = $name:literal,)+) => { $( #[test] fn $test() { check($name); } )+ };
}

scenarios! {
    targets = "targets",
    targets_cold = "targets-cold",
    targets_pfc = "targets-pfc",
    incast = "incast",
    storage = "storage",
    allreduce = "allreduce",
    microbursts = "microbursts",
    ecn_modes = "ecn-modes",
    victim = "victim",
    cold_start = "cold-start",
    cold_joiners = "cold-joiners",
    failover = "failover",
    targets_mlx = "targets-mlx",
}

//! Validation: the model reproduces known results within stated bounds.

use std::path::Path;

use npcc_sim::engine::Outcome;
use npcc_sim::host::params::Sender;
use npcc_sim::scenario::{Case, Scenario, Scheme};
use npcc_sim::sweep::{self, Run};

fn run(name: &str) -> Vec<Run> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/scenarios")
        .join(name);
    let scenario = Scenario::load(&path).unwrap();
    sweep::all(&scenario, 2, &|_, _| {}).unwrap()
}

fn find(runs: &[Run], wanted: impl Fn(&Case) -> bool) -> &Outcome {
    &runs.iter().find(|run| wanted(&run.case)).unwrap().outcome
}

/// Returns the mean depth over the last third of the run, in bytes.
fn settled(outcome: &Outcome) -> f64 {
    let late = &outcome.samples[outcome.samples.len() * 2 / 3..];
    late.iter().map(|sample| sample.depth as f64).sum::<f64>() / late.len() as f64
}

/// Reproduces SIGCOMM'15, sections 5 and 6: with g = 1/256 and the published timers, four flows share a 40G link evenly, keep it
/// busy, and the queue settles below Kmax.
#[test]
fn dcqcn_converges_to_a_fair_share() {
    let runs = run("fairness.yaml");
    let outcome = find(&runs, |_| true);
    assert!(outcome.jain > 0.98, "{}", outcome.jain);
    assert!(outcome.utilisation > 0.95, "{}", outcome.utilisation);
    assert!(settled(outcome) < 200_000.0, "{}", settled(outcome));
}

/// Reproduces DCQCN+'s observation: at 40G beyond some 160 flows DCQCN's queue runs away from Kmax, as every flow adds 40 Mb/s each
/// 55 us; timers and steps that follow the number of flows hold it.
#[test]
fn dcqcn_loses_the_queue_to_many_flows_and_dcqcn_plus_does_not() {
    let runs = run("collapse.yaml");
    let at = |sender, qps| {
        settled(find(&runs, |case| {
            case.sender == sender && case.qps == Some(qps)
        }))
    };
    let kmax = 200_000.0;
    let (few, many) = (at(Sender::Paper, 5), at(Sender::Paper, 20));
    assert!(few < 1.6 * kmax, "80 flows: {few}");
    assert!(many > 3.0 * kmax && many > 2.5 * few, "320 flows: {many}");
    assert!(at(Sender::DcqcnPlus, 20) < kmax, "DCQCN+, 320 flows");
}

/// Reproduces a fluid model of 4 x 25G into 25G, peak queue in MB by length. A packet model adds to the fluid one the rate increases of a
/// round trip.
#[test]
fn the_fluid_table_comes_out() {
    let runs = run("fluid.yaml");
    let of = |sender: Sender, scheme: Scheme, km: u64| {
        find(&runs, move |case| {
            let length = case.length.map(|length| length.millimetres());
            case.sender == sender && case.scheme == scheme && length == Some(km * 1_000_000)
        })
    };
    // The gate leaves a receiver at 1 km to ECN.
    let signalled_at = |km| Scheme {
        near: km == 1,
        ..Scheme::NPCC
    };
    for (km, fluid) in [(1, 0.86), (40, 4.5), (100, 10.1), (300, 28.9)] {
        let far = of(Sender::HpccVendor, Scheme::ECN, km).peak as f64 / 1e6;
        assert!(
            far > 0.9 * fluid && far < 1.05 * fluid + 1.0,
            "{km} km: {far} MB, fluid {fluid}"
        );
        let near = of(Sender::HpccVendor, signalled_at(km), km).peak as f64 / 1e6;
        assert!(near > 0.4 && near < 2.0 * 0.85, "{km} km: {near} MB near");
    }
    // Utilisation with the published parameters falls with the distance, where the fluid model has 0.994, 0.75, 0.76 and 0.78. The
    // means are of eight seeds, which scatter by 0.02 at 1 km, by 0.013 at 40 km and by less beyond; with a near switch none is below 0.981.
    for (km, mean) in [(1, 0.965), (40, 0.84), (100, 0.68), (300, 0.64)] {
        let far = of(Sender::Paper, Scheme::ECN, km).utilisation;
        assert!((far - mean).abs() < 0.02, "{km} km: {far}, not {mean}");
        let near = of(Sender::Paper, signalled_at(km), km).utilisation;
        assert!(near > 0.98, "{km} km: {near} near");
    }
}

/// Guards the baselines: at 100 km without windows, marking by thresholds of one and two bandwidth-delay products has most of the goodput that
/// the scenario's own lose, for a queue twenty times as deep as it need be. Measured by hand thresholds of 12 and 25 MB on 2026-11-27:
/// goodput 0.974 against 0.78, peak 63 MB.
#[test]
fn tuned_thresholds_have_the_goodput_and_the_queue_of_the_distance() {
    let text = "
version: 1
name: tuned
duration: 40ms
utilisation_over: 40ms
window: unlimited
switches: [edge, far]
hosts: [{ name: tx, count: 4, switch: edge }, { name: rx, count: 4, switch: far }]
links: [{ name: dci, from: edge, to: far, length: 100km }]
flows: [{ from: tx, to: rx }]
watch: dci
vary: { scheme: [ecn, ecn-nvidia, ecn-hpcc, ecn-tuned], sender: [hpcc-vendor] }
";
    let scenario = Scenario::parse("tuned", text).unwrap();
    let runs = sweep::all(&scenario, 2, &|_, _| {}).unwrap();
    let of = |name: &str| {
        let run = runs.iter().find(|run| run.case.scheme.to_string() == name);
        &run.unwrap().outcome
    };
    for shallow in ["ecn", "ecn-nvidia", "ecn-hpcc"] {
        assert!(
            of(shallow).goodput < 0.85,
            "{shallow}: {}",
            of(shallow).goodput
        );
        assert!(of(shallow).peak < of("ecn-tuned").peak, "{shallow}");
    }
    let tuned = of("ecn-tuned");
    assert!(tuned.goodput > 0.95, "{}", tuned.goodput);
    assert!(
        (50_000_000..75_000_000).contains(&tuned.peak),
        "{}",
        tuned.peak
    );
}

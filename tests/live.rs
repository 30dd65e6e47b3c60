//! Short closed loop in real time: model hosts around a real switch process over veth pairs, with NPCC off and on.
//!
//! Needs root; the network namespace is the process's own and goes with it.

use crate::common::{Lab, alone, assert_success};

/// Scenario like config/scenarios/demo.yaml, but with 40 km and 4 ms, without what it varies.
const SCENARIO: &str = "version: 1
name: short
about: a short one
duration: 4ms
window: unlimited
control_cost: { call: 0us, record: 0us, flow: 0us, cnp: 0us }
switches: [edge, far-edge]
hosts:
  - { name: senders, count: 4, switch: edge }
  - { name: receivers, count: 4, switch: far-edge }
links: [ { name: dci, from: edge, to: far-edge, rate: 100G, length: 40km } ]
flows: [ { from: senders, to: receivers } ]
watch: dci
cnp_interval: 4us
utilisation_over: 4ms
";

/// Runs the scenario with what it varies, so many times slower than life; returns the table.
fn live_run(lab: &Lab, scale: &str, vary: &str) -> String {
    std::fs::write(lab.path("short.yaml"), format!("{SCENARIO}vary: {vary}\n")).unwrap();
    let mut words = vec!["sim", "short.yaml", "--live", "--svg", "short.svg"];
    words.extend(["--time-scale", scale]);
    let output = lab.command(&words).output().unwrap();
    assert_success(&output);
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the figures of a run: peak, simulated peak, link use, simulated link use, CNPs of the switch, of the receivers, received.
fn row(text: &str, label: &str) -> Vec<f64> {
    let after = |line: &str| {
        let cells = line.strip_prefix(label)?.split_whitespace();
        let figures: Vec<f64> = cells.map_while(|cell| cell.parse().ok()).collect();
        (figures.len() >= 7).then_some(figures)
    };
    let found = text.lines().find_map(after);
    found.unwrap_or_else(|| panic!("no row of {label}: {text}"))
}

#[test]
fn the_switch_process_signals_model_senders() {
    let _alone = alone();
    let lab = Lab::new();
    // So slow that turns that come late on a busy machine, and are reported, hardly matter.
    let text = live_run(
        &lab,
        "2000",
        "{ scheme: [ecn, npcc], sender: [hpcc-vendor] }",
    );
    let (off, on) = (row(&text, "ecn"), row(&text, "npcc"));
    assert!(off[4] == 0.0 && off[6] > 0.0 && on[4] > 0.0, "{text}");
    // Every CNP of the switch reaches its sender, but those under way at the end.
    assert!(on[6] >= 0.9 * on[4], "{text}");
    // The peak is an eighth of ECN's alone, and the link is used as in simulated time.
    assert!(off[0] > 4.0 * on[0] && off[0] > 10.0, "{text}");
    for run in [off, on] {
        assert!(run[2] > 0.8 * run[3], "{text}");
    }
    let svg = std::fs::read_to_string(lab.path("short.svg")).unwrap();
    assert!(svg.contains("time_scale 2000") && svg.contains("NPCC on: npcc"));
}

/// Without reports the first answers, one round trip late, tell the switch process whom to signal.
#[test]
fn what_hosts_report_to_the_switch_process_spares_a_cold_start_its_queue() {
    let _alone = alone();
    let lab = Lab::new();
    let text = live_run(
        &lab,
        "2000",
        "{ scheme: [ecn, npcc], sender: [hpcc-vendor], warm: [false], host_feed: [0us] }",
    );
    let cold = row(&text, "npcc cold");
    let reported = row(&text, "npcc cold with reports after 0ns");
    assert!(reported[4] > 0.0 && reported[6] > 0.0, "{text}");
    // Reports do nothing without NPCC, and no harm.
    assert_eq!(row(&text, "ecn cold with reports after 0ns")[4], 0.0);
    // A busy machine makes both deeper.
    assert!(cold[0] > 2.0 * reported[0] && cold[0] > 10.0, "{text}");
}

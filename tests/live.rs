//! Short closed loop in real time: model hosts around a real switch process over veth pairs, with NPCC off and on.
//!
//! Needs root; the network namespace is the process's own and goes with it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by panicking"
)]

mod common;

use common::{Lab, alone, assert_success};

/// Scenario like config/scenarios/demo.yaml, but with 40 km and 4 ms.
const SCENARIO: &str = "version: 1
name: short
about: a short one
duration: 4ms
switches: [edge, far-edge]
hosts:
  - { name: senders, count: 4, switch: edge }
  - { name: receivers, count: 4, switch: far-edge }
links: [ { name: dci, from: edge, to: far-edge, rate: 100G, length: 40km } ]
flows: [ { from: senders, to: receivers } ]
watch: dci
cnp_interval: 4us
utilisation_over: 4ms
vary: { scheme: [ecn, npcc], sender: [hpcc-vendor] }
";

fn live_run(lab: &Lab) -> String {
    let output = lab
        .command(&[
            "sim",
            "short.yaml",
            "--live",
            "--time-scale",
            "500",
            "--svg",
            "short.svg",
        ])
        .output()
        .unwrap();
    assert_success(&output);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_switch_process_signals_model_senders() {
    let _alone = alone();
    let lab = Lab::new();
    std::fs::write(lab.path("short.yaml"), SCENARIO).unwrap();
    // A busy machine makes ticks late, and the run says so: such a run is repeated.
    let mut text = live_run(&lab);
    for _ in 0..2 {
        if !text.contains("not a clean run") {
            break;
        }
        text = live_run(&lab);
    }
    let row = |scheme: &str| -> Vec<f64> {
        let line = text.lines().find(|line| line.starts_with(scheme));
        let line = line.unwrap_or_else(|| panic!("no row of {scheme}: {text}"));
        let cells = line.split_whitespace().skip(1);
        cells.map_while(|cell| cell.parse().ok()).collect()
    };
    // Columns: peak, simulated peak, link use, simulated link use, CNPs of the switch, of the receivers, received.
    let (off, on) = (row("ecn "), row("npcc "));
    assert_eq!(off[4], 0.0, "{text}");
    assert!(
        off[6] > 0.0 && on[4] > 0.0 && on[6] >= on[4] / 2.0,
        "{text}"
    );
    // The simulation has 19 and 2.5 MB. A busy machine makes both deeper.
    assert!(off[0] > 2.0 * on[0] && off[0] > 10.0, "{text}");
    assert!(off[2] > 0.3 && on[2] > 0.3, "{text}");
    let svg = std::fs::read_to_string(lab.path("short.svg")).unwrap();
    assert!(svg.contains("time_scale 500") && svg.contains("NPCC on: npcc"));
}

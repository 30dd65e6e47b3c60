//! Captures of all frames, at full rate.

use std::process::Stdio;

use serde_json::Value;

use super::{Switch, roce, start};
use crate::common::net::run;
use crate::common::{Running, alone};

/// Two ports without a rate limit: every frame is forwarded, as fast as a worker can.
const FAST: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: \"net_pcap0,rx_pcap=in.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_null0,no-rx=1\", mac: \"02:00:00:00:02:01\", addresses: [10.0.12.1/24] }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
neighbors: [ { address: 10.0.12.2, port: wan0, mac: \"02:00:00:00:02:02\" } ]
qos: { profile: lossy }
buffer: { pool: 16MB }
";

#[test]
fn at_full_rate_captures_are_lost_and_counted_and_no_frame_is() {
    let _alone = alone();
    let frames: Vec<Vec<u8>> = (0..8).map(|_| roce("10.0.2.2", 26, 1024).frame()).collect();
    let mut switch = start(FAST, &frames, &[]);
    // Frames that came in, and frames that left: a capture of everything sees both.
    let sightings = |switch: &Switch| {
        let ports = switch.show("ports");
        let of = |port: usize, way: &str| ports[port][way]["packets"].as_u64().unwrap();
        of(0, "rx") + of(1, "tx")
    };
    let before = sightings(&switch);
    let mut capture = Running::of(
        switch
            .client(&["capture", "-w", "-"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    switch.until("it captures", || switch.captures());
    let begun = sightings(&switch);
    switch.until("frames go on while they are captured", || {
        sightings(&switch) > begun + 1_000_000
    });
    let ended = sightings(&switch);
    let child = capture.0.take().unwrap();
    run(&format!("kill -INT {}", child.id()));
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let after = sightings(&switch);
    println!("{} sightings in the meantime; {said}", ended - begun);
    let numbers: Vec<u64> = said
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let workers = switch.show("workers");
    let signalled = &workers[0]["capture"];
    assert_eq!(
        numbers[1],
        signalled["lost"].as_u64().unwrap(),
        "what is said is what was counted: {signalled}"
    );
    assert!(
        numbers[0] > 1_000 && numbers[1] > 0,
        "more than a ring takes: {said}"
    );
    // Each sighting is in the capture or counted as lost by it: those while it was on for certain, and none from before or after.
    let seen = numbers[0] + numbers[1];
    assert!(
        (ended - begun..=after - before).contains(&seen),
        "{seen}: {} to {}",
        ended - begun,
        after - before
    );
    // Every frame that came in left: none was dropped for the capture's sake.
    switch.stop();
    let stats: Value =
        serde_json::from_str(&std::fs::read_to_string(switch.path("stats.json")).unwrap()).unwrap();
    let (dc0, wan0) = (&stats["ports"][0], &stats["ports"][1]);
    assert_eq!(dc0["rx"]["packets"], wan0["tx"]["packets"], "{stats:#}");
    assert_eq!(
        stats["conservation"]["drops"]["packets"], 0,
        "{:#}",
        stats["conservation"]
    );
}

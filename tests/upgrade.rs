//! Upgrades: this version starts with the state that an older one left (`tests/upgrade/`).

use std::io::Read;
use std::path::PathBuf;

use crate::common::manager::Manager;
use crate::common::net::Space;
use crate::common::{Lab, alone, root};

/// Oldest version whose state must start this one.
const OLD: &str = "7c7eca1";

/// Configuration with ports named as those of the run that left the state.
const PORTS: &str = "version: 1
dpdk: { eal_args: [--no-pci], hugepages: off }
cores: { control: 0, workers: [1], idle: adaptive }
ports:
  - { name: dc0, device: \"net_null0,no-rx=1\", addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_null1,no-rx=1\", addresses: [10.0.2.1/24], speed: 10M, npcc: { queues: [3] } }
buffer: { pool: 4MB }
qos: { profile: lossy }
";

fn left(name: &str) -> PathBuf {
    root().join("tests/upgrade").join(OLD).join(name)
}

#[test]
fn counters_pairs_drain_and_recorder_of_the_old_version_are_taken_over() {
    let _alone = alone();
    let (lab, space) = (Lab::new(), Space::of("upgrade"));
    let linux = format!("linux: {{ integrate: true, netns: {} }}", space.0);
    lab.config(&(PORTS.to_owned() + &linux));
    let mut recorder = Vec::new();
    let file = std::fs::File::open(left("recorder.gz")).unwrap();
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut recorder)
        .unwrap();
    std::fs::write(lab.path("switch.recorder"), recorder).unwrap();
    let run = lab.command(&["run", "-c", "switch.yaml"]);
    let mut manager = Manager::start(lab.dir.path(), &run);
    lab.answers();

    // The recorder belongs to the run before this one.
    let text = lab.done(&["recorder", "--previous"]);
    assert!(text.contains("npcc-switch"), "{text}");

    for name in ["counters", "facts", "pairs"] {
        manager.seal(name, &left(&format!("{name}.gz")));
    }
    manager.kill();
    lab.answers();
    let ports = lab.show("ports");
    let received = |port: usize| ports[port]["rx"]["packets"].as_u64().unwrap();
    assert_eq!((received(0), received(1)), (867, 193), "{ports:#}");
    assert!(!lab.show("linux")["draining_s"].is_null());
    let said = manager.said();
    assert!(!said.contains("is not used"), "{said}");
    manager.stop();
}

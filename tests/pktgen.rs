//! Scripts for pktgen-dpdk, run by Lua against a stand-in that has pktgen's calls and nothing else.

use std::process::Command;

use crate::common::{assert_success, root};

/// Runs a script; returns the words of each line it prints.
fn run(script: &str, settings: &[(&str, &str)]) -> Vec<Vec<String>> {
    let output = Command::new("lua5.3")
        .current_dir(root())
        .env("LUA_PATH", "tests/pktgen/?.lua;scripts/pktgen/?.lua")
        .envs(settings.iter().copied())
        .arg(format!("scripts/pktgen/{script}.lua"))
        .output()
        .unwrap_or_else(|error| panic!("lua5.3 does not run ({error}): scripts/test installs it"));
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

#[test]
fn throughput_finds_the_rate_without_loss_and_confirms_it() {
    let settings = [("CAPACITY", "37.5"), ("SIZES", "64 pcap"), ("STEP", "0.1")];
    let lines = run("throughput", &settings);
    for size in ["64", "pcap"] {
        let line = lines.iter().find(|line| line[0] == size).unwrap();
        let rate: f64 = line[1].parse().unwrap();
        assert!(rate <= 37.5 && rate > 37.4, "{line:?}");
        assert_eq!(line[4], "yes", "{line:?}");
    }
    let whole = run("throughput", &[("CAPACITY", "100"), ("SIZES", "64")]);
    assert_eq!(whole[1][1], "100.000");
    let none = run("throughput", &[("CAPACITY", "0"), ("SIZES", "64")]);
    assert!(
        none.last()
            .unwrap()
            .join(" ")
            .contains("no rate without loss")
    );
}

#[test]
fn latency_and_incast_print_a_line_for_each_step() {
    let settings = [("CAPACITY", "50"), ("RATES", "10 90"), ("SECONDS", "1")];
    let lines = run("latency", &settings);
    assert_eq!((lines[1][0].as_str(), lines[1][3].as_str()), ("10", "6.25"));
    assert_eq!(lines[1][5], "0");
    assert_ne!(lines[2][5], "0", "at 90 % of the link half is lost");
    let bursts = run(
        "incast",
        &[("CAPACITY", "50"), ("BURSTS", "64 1024"), ("ROUNDS", "3")],
    );
    assert_eq!(bursts[1], ["64", "3", "192", "96", "96"]);
    assert_eq!(bursts[2], ["1024", "3", "3072", "1536", "1536"]);
}

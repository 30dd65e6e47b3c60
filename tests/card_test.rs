//! The card-test script on two ends of a cable that is a veth pair, with real runs of the switch on both.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by panicking"
)]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::net::{Net, run};
use common::{Lab, alone, root};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Ends of the cable, in a network namespace of their own.
struct Cable {
    net: Net,
    lab: Lab,
}

impl Cable {
    fn new() -> Cable {
        let net = Net::of(&["card"], &[]);
        let space = net.space("card");
        run(&format!("ip -n {space} link set lo up"));
        run(&format!(
            "ip -n {space} link add cable1 mtu 9200 type veth peer name cable2 mtu 9200"
        ));
        for end in ["cable1", "cable2"] {
            run(&format!("ip -n {space} link set {end} up"));
        }
        let lab = Lab::new();
        Cable { net, lab }
    }

    /// Returns the command of a card test between both ends. Frames go by the kernel's queueing, where tc sees them.
    fn test(&self) -> Command {
        let ring = "blocksz=73728,framesz=9216,framecnt=1024,qdisc_bypass=0";
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.net.space("card")])
            .arg(root().join("scripts/card-test"))
            .args([1, 2].map(|end| format!("net_af_packet{end},iface=cable{end},{ring}")))
            // Two switches share two cores here.
            .args(["--loop-time", "1ms", "--eal-args", "--no-pci --in-memory"])
            .args(["--output", "report"])
            .current_dir(self.lab.dir.path())
            .env("NPCC_SWITCH", env!("CARGO_BIN_EXE_npcc-switch"));
        command
    }

    /// Runs the card test; returns the text of its report, and the verdict of a row by its name.
    fn report(&self) -> (String, impl Fn(&str) -> String) {
        let output = self.test().output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}{errors}");
        let text = std::fs::read_to_string(self.lab.path("report.json")).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        let text = text + &std::fs::read_to_string(self.lab.path("report.txt")).unwrap();
        let verdict = move |name: &str| {
            let rows = report["rows"].as_array().unwrap().iter();
            let found = rows.clone().find(|row| row["row"] == name);
            let found = found.unwrap_or_else(|| panic!("no row {name}: {report:#}"));
            found["verdict"].as_str().unwrap().to_owned()
        };
        (text, verdict)
    }

    /// Asserts that the test left no process, namespace or link behind.
    fn is_clean(&self) {
        let space = self.net.space("card");
        let text = |command: &str| {
            let mut words = command.split_whitespace();
            let output = Command::new(words.next().unwrap())
                .args(words)
                .output()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(text(&format!("ip netns pids {space}")), "");
        assert!(!text("ip netns list").contains("card-test-"));
        let links = text(&format!("ip -n {space} -br link"));
        assert!(!links.lines().any(|link| link.starts_with("ct")), "{links}");
    }
}

#[test]
fn a_cable_that_carries_everything_has_a_report_without_addresses() {
    let _alone = alone();
    let cable = Cable::new();
    let (text, verdict) = cable.report();
    for row in [
        "starts with pfc: auto, port 1",
        "starts with pfc: auto, port 2",
        "links are up",
        "pause is sent, port 2",
        "pause is seen, port 1",
        "pause is obeyed, port 1",
        "pause stops one priority, port 1",
    ] {
        assert_eq!(verdict(row), "yes", "{row}: {text}");
    }
    for way in ["1 to 2", "2 to 1"] {
        for row in [
            "frames pass",
            "three rings of frames",
            "UDP 4791 reaches the switch",
            "MTU 9100",
            "LLDP passes",
        ] {
            assert_eq!(verdict(&format!("{row}, {way}")), "yes", "{row}: {text}");
        }
        // A packet socket has no link of its own.
        assert_eq!(verdict(&format!("link down is seen, {way}")), "no");
    }
    for port in [1, 2] {
        assert_eq!(
            verdict(&format!("ring's bound holds, port {port}")),
            "not reported"
        );
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for private in ["10.255.", "02:00:00", "cable1", host.trim()] {
        assert!(!text.contains(private), "{private}: {text}");
    }
    cable.is_clean();
}

/// A card that ends pause frames itself and does not obey them, as a filter on the cable plays it.
#[test]
fn pause_frames_that_do_not_arrive_are_neither_seen_nor_obeyed() {
    let _alone = alone();
    let cable = Cable::new();
    let space = cable.net.space("card");
    run(&format!(
        "ip netns exec {space} tc qdisc add dev cable2 clsact"
    ));
    run(&format!(
        "ip netns exec {space} tc filter add dev cable2 egress protocol 0x8808 u32 match u32 0 0 action mirred egress redirect dev lo"
    ));
    let (text, verdict) = cable.report();
    for (row, found) in [
        ("pause is sent, port 2", "yes"),
        ("pause is seen, port 1", "no"),
        ("pause is obeyed, port 1", "no"),
        ("pause stops one priority, port 1", "not known"),
        ("LLDP passes, 2 to 1", "yes"),
    ] {
        assert_eq!(verdict(row), found, "{row}: {text}");
    }
}

#[test]
fn a_card_test_that_is_interrupted_leaves_nothing_behind_and_a_report_of_what_it_knows() {
    let _alone = alone();
    let cable = Cable::new();
    let mut child = cable.test().stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("links are up")));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{rest:?}");
    let text = std::fs::read_to_string(cable.lab.path("report.txt")).unwrap();
    assert!(text.contains("links are up"), "{text}");
    cable.is_clean();
}

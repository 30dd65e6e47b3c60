//! The card-test script on two ends of a cable that is a veth pair, with real runs of the switch on both: on packet sockets, and on cards that
//! `dpdk-sys/double` plays.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::common::cards::plugin;
use crate::common::net::{Net, run};
use crate::common::{Lab, alone, root};
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

    /// Returns the command of a card test between two packet sockets. Frames go by the kernel's queueing, where tc sees them.
    fn sockets(&self) -> Command {
        let ring = "blocksz=73728,framesz=9216,framecnt=2048,qdisc_bypass=0";
        let device = |end| format!("net_af_packet{end},iface=cable{end},{ring}");
        self.test([1, 2].map(device), "--no-pci --in-memory")
    }

    /// Returns the command of a card test between two played cards of this profile.
    fn played(&self, profile: &str) -> Command {
        let device = |end| {
            let number = end - 1;
            format!("d0b1:00:00.{number},profile={profile},speed=1,iface=cable{end}")
        };
        let eal = format!("--no-pci --in-memory -d {}", plugin().display());
        self.test([1, 2].map(device), &eal)
    }

    /// Returns the command of a card test between two devices.
    ///
    /// The switches and their hosts share two cores. On a link of 100 Mb/s a pause lasts for 335 ms and is refreshed after 168 ms, and headroom
    /// takes what such a link sends in 100 ms besides: a worker that is away for so long loses nothing.
    fn test(&self, devices: [String; 2], eal: &str) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.net.space("card")])
            .arg(root().join("scripts/card-test"))
            .args(devices)
            // The controller of each is on the other's core, so that a worker which has a played card's lock goes on while it waits for that.
            .args([
                "--cores",
                "0,1,1,0",
                "--speed",
                "100M",
                "--loop-time",
                "50ms",
            ])
            .args(["--eal-args", eal, "--output", "report"])
            .current_dir(self.lab.dir.path())
            .env("NPCC_SWITCH", env!("CARGO_BIN_EXE_npcc-switch"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a card test and asserts that it leaves nothing behind.
    fn report(&self, mut test: Command) -> Report {
        let child = test.spawn().unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("{said}");
        assert!(output.status.success(), "{said}{errors}");
        self.is_clean(pid);
        let json = std::fs::read_to_string(self.lab.path("report.json")).unwrap();
        let text = std::fs::read_to_string(self.lab.path("report.txt")).unwrap();
        Report {
            json: serde_json::from_str(&json).unwrap(),
            text: json + &text,
        }
    }

    /// Asserts that the card test of this process ID left no process, namespace or link behind.
    fn is_clean(&self, pid: u32) {
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
        let spaces = text("ip netns list");
        assert!(!spaces.contains(&format!("card-test-{pid}-")), "{spaces}");
        let links = text(&format!("ip -n {space} -br link"));
        assert!(!links.lines().any(|link| link.starts_with("ct")), "{links}");
    }
}

/// Report of a card test.
struct Report {
    json: Value,
    /// Both files.
    text: String,
}

impl Report {
    /// Returns the row of this name.
    fn row(&self, name: &str) -> &Value {
        let rows = self.json["rows"].as_array().unwrap();
        let found = rows.iter().find(|row| row["row"] == name);
        found.unwrap_or_else(|| panic!("no row {name}: {}", self.text))
    }

    /// Asserts the verdicts of rows.
    fn says(&self, rows: &[(&str, &str)]) {
        for (name, verdict) in rows {
            let row = self.row(name);
            assert_eq!(row["verdict"], *verdict, "{name}: {row}: {}", self.text);
        }
    }

    /// Asserts the verdicts of rows that there are for both directions.
    fn says_both_ways(&self, rows: &[(&str, &str)]) {
        for (name, verdict) in rows {
            for way in ["1 to 2", "2 to 1"] {
                self.says(&[(&format!("{name}, {way}"), verdict)]);
            }
        }
    }

    /// Asserts that the report has no address and no name of an interface or of this host.
    fn is_anonymous(&self) {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        for private in ["10.255.", "02:00:00", "d0b1:", "cable1", host.trim()] {
            assert!(!self.text.contains(private), "{private}: {}", self.text);
        }
    }
}

/// Rows about frames that each card here passes.
const PASSES: [(&str, &str); 5] = [
    ("frames pass", "yes"),
    ("three rings of frames", "yes"),
    ("UDP 4791 reaches the switch", "yes"),
    ("MTU 9100", "yes"),
    ("LLDP passes", "yes"),
];

/// Rows about pause that works.
const LOSSLESS: [(&str, &str); 7] = [
    ("starts with pfc: auto, port 1", "yes"),
    ("starts with pfc: auto, port 2", "yes"),
    ("links are up", "yes"),
    ("pause is sent, port 2", "yes"),
    ("pause is seen, port 1", "yes"),
    ("pause is obeyed, port 1", "yes"),
    ("pause stops one priority, port 1", "yes"),
];

#[test]
fn a_cable_that_carries_everything_has_a_report_without_addresses() {
    let _alone = alone();
    let cable = Cable::new();
    let report = cable.report(cable.sockets());
    report.says(&LOSSLESS);
    report.says_both_ways(&PASSES);
    report.says_both_ways(&[("link down is seen", "not reported")]);
    for port in [1, 2] {
        report.says(&[(&format!("ring's bound holds, port {port}"), "not reported")]);
    }
    report.is_anonymous();
}

#[test]
fn a_card_that_passes_pause_frames_has_yes_in_every_row() {
    let _alone = alone();
    let cable = Cable::new();
    let report = cable.report(cable.played("ixgbe"));
    report.says(&LOSSLESS);
    report.says_both_ways(&PASSES);
    report.says_both_ways(&[("link down is seen", "yes")]);
    // Its driver's answers are rounded, so the bound is kept by time.
    for port in [1, 2] {
        let name = format!("ring's bound holds, port {port}");
        report.says(&[(&name, "yes")]);
        assert_eq!(report.row(&name)["tx_answers"], 0, "{}", report.text);
    }
    let rows = report.json["rows"].as_array().unwrap();
    let other = rows.iter().find(|row| row["verdict"] != "yes");
    assert_eq!(other, None, "{}", report.text);
    report.is_anonymous();
}

/// A card that ends pause frames itself and does not obey them: the switch refuses it, and what is sent behind a pause is lost.
#[test]
fn pause_frames_that_the_card_consumes_are_neither_seen_nor_obeyed() {
    let _alone = alone();
    let cable = Cable::new();
    let report = cable.report(cable.played("mlx5"));
    report.says(&[
        ("starts with pfc: auto, port 1", "no"),
        ("starts with pfc: send, port 1", "yes"),
        ("pause is sent, port 2", "yes"),
        ("pause is seen, port 1", "no"),
        ("pause is obeyed, port 1", "no"),
        ("pause stops one priority, port 1", "not known"),
    ]);
    assert!(report.row("pause is obeyed, port 1")["lost"].as_u64() > Some(0));
    report.says_both_ways(&PASSES);
    // Its driver's answers keep the bound.
    for port in [1, 2] {
        let name = format!("ring's bound holds, port {port}");
        report.says(&[(&name, "yes")]);
        assert_eq!(report.row(&name)["tx_answers"], 1, "{}", report.text);
    }
    report.is_anonymous();
}

/// The same where a filter on the cable takes the pause frames.
#[test]
fn pause_frames_that_the_cable_loses_are_neither_seen_nor_obeyed() {
    let _alone = alone();
    let cable = Cable::new();
    let space = cable.net.space("card");
    run(&format!(
        "ip netns exec {space} tc qdisc add dev cable2 clsact"
    ));
    run(&format!(
        "ip netns exec {space} tc filter add dev cable2 egress protocol 0x8808 u32 match u32 0 0 action mirred egress redirect dev lo"
    ));
    let report = cable.report(cable.sockets());
    report.says(&[
        ("pause is sent, port 2", "yes"),
        ("pause is seen, port 1", "no"),
        ("pause is obeyed, port 1", "no"),
        ("pause stops one priority, port 1", "not known"),
        ("LLDP passes, 2 to 1", "yes"),
    ]);
}

#[test]
fn a_card_test_that_is_interrupted_leaves_nothing_behind_and_a_report_of_what_it_knows() {
    let _alone = alone();
    let cable = Cable::new();
    let mut child = cable.sockets().spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("links are up")));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{rest:?}");
    let text = std::fs::read_to_string(cable.lab.path("report.txt")).unwrap();
    assert!(text.contains("links are up"), "{text}");
    cable.is_clean(child.id());
}

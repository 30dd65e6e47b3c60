//! Frames that were dropped: each reason that the switch counts is told with a frame.

use std::collections::BTreeSet;
use std::process::Command;

use super::common::{alone, assert_success};
use super::{LOSING, Switch, losing, pause, tshark, word};

fn reasons(lines: &[Vec<String>]) -> BTreeSet<String> {
    let reason = |line: &Vec<String>| word(&line[0], "reason").map(str::to_owned);
    lines.iter().filter_map(reason).collect()
}

#[test]
fn every_reason_for_which_frames_are_dropped_is_told_with_them_through_a_pipe() {
    let _alone = alone();
    let switch = Switch::start(LOSING, &losing(), &[pause()]);
    // The storm is found, and queues stand.
    switch.until("the storm", |switch| {
        switch.drops().contains_key("pfc_storm")
    });
    let script = format!(
        "'{}' capture --filter dropped --snaplen 100 --for 700ms --socket switch.sock -w - 2>said | tshark -r - -T fields -e frame.comment -e frame.interface_name -e frame.cap_len 2>/dev/null",
        env!("CARGO_BIN_EXE_npcc-switch")
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(switch.lab.dir.path())
        .output()
        .unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<String>> = text
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    let seen = reasons(&lines);
    let counted: BTreeSet<String> = switch.drops().into_keys().collect();
    assert_eq!(seen, counted, "as it counts, so it captures");
    let expected = [
        "runt",
        "oversize",
        "not_for_us",
        "multicast",
        "vlan_depth",
        "vlan_unknown",
        "not_ip",
        "ip_header",
        "ip_truncated",
        "ip_checksum",
        "martian",
        "ttl_expired",
        "no_route",
        "no_neighbor",
        "local_unserved",
        "mtu_exceeded",
        "headroom_full",
        "pfc_storm",
        "queue_full",
        "wred",
    ];
    for reason in expected {
        assert!(seen.contains(reason), "{reason}: {seen:?}");
    }
    lines.iter().for_each(|line| check(line));
    let full = lines
        .iter()
        .find(|line| word(&line[0], "reason") == Some("queue_full"));
    let depth: u64 = word(&full.unwrap()[0], "depth").unwrap().parse().unwrap();
    assert!(depth > 20_000, "a queue that is full is deep: {full:?}");
    goes_down(&switch);
}

/// A comment, the interface it stands with, and the bytes kept.
fn check(line: &[String]) {
    assert!(line[0].starts_with("dropped reason="), "{line:?}");
    assert!(line[2].parse::<u32>().unwrap() <= 100, "{line:?}");
    match word(&line[0], "out") {
        // A queue's own: where it stands, and how deep.
        Some(out) => {
            assert_eq!(line[1], out, "{line:?}");
            assert!(word(&line[0], "queue").is_some() && word(&line[0], "depth").is_some());
        }
        None => assert_eq!(word(&line[0], "in"), Some(line[1].as_str()), "{line:?}"),
    }
}

/// A link that goes down drops what waits for it.
fn goes_down(switch: &Switch) {
    let mut capture = switch
        .command(&[
            "capture",
            "--filter",
            "reason link_down",
            "--count",
            "20",
            "-w",
            "down.pcapng",
        ])
        .spawn()
        .unwrap();
    switch.until("it captures", Switch::captures);
    switch.done(&["port", "wan0", "down"]);
    assert!(capture.wait().unwrap().success());
    let down = tshark(&switch.lab.path("down.pcapng"), &["frame.comment"]);
    assert_eq!(down.len(), 20);
    assert_eq!(reasons(&down), BTreeSet::from(["link_down".to_owned()]));
    assert!(!switch.captures(), "nothing stays on");
}

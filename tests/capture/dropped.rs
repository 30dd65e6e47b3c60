//! Captures of dropped frames: each drop reason that the switch counts appears with a frame.

use std::collections::BTreeSet;
use std::process::Command;

use npcc_pipeline::wire::checksum;

use super::{LOSING, Switch, losing, pause, start, tshark, word};
use crate::common::net::Space;
use crate::common::{alone, assert_success};

fn reasons(lines: &[Vec<String>]) -> BTreeSet<String> {
    let reason = |line: &Vec<String>| word(&line[0], "reason").map(str::to_owned);
    lines.iter().filter_map(reason).collect()
}

#[test]
fn every_drop_reason_is_captured_with_its_frames_through_a_pipe() {
    let _alone = alone();
    let switch = start(LOSING, &losing(), &[pause()]);
    // A pause storm is detected, and queues are blocked.
    switch.until("the storm", || switch.drops().contains_key("pfc_storm"));
    let lines = piped(&switch);
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

/// Returns tshark's fields of dropped frames read through a pipe: comment, interface, bytes kept.
fn piped(switch: &Switch) -> Vec<Vec<String>> {
    let script = format!(
        "'{}' capture --filter dropped --snaplen 100 --for 700ms --socket switch.sock -w - 2>said | tshark -r - -T fields -e frame.comment -e frame.interface_name -e frame.cap_len 2>/dev/null",
        env!("CARGO_BIN_EXE_npcc-switch")
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(switch.dir.path())
        .output()
        .unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

/// Checks a line of [`piped`]: the comment, its interface, and the bytes kept.
fn check(line: &[String]) {
    assert!(line[0].starts_with("dropped reason="), "{line:?}");
    assert!(line[2].parse::<u32>().unwrap() <= 100, "{line:?}");
    match word(&line[0], "out") {
        // Dropped at a queue: the egress port, the queue and its depth.
        Some(out) => {
            assert_eq!(line[1], out, "{line:?}");
            assert!(word(&line[0], "queue").is_some() && word(&line[0], "depth").is_some());
        }
        None => assert_eq!(word(&line[0], "in"), Some(line[1].as_str()), "{line:?}"),
    }
}

/// Returns the configuration of a switch that punts one frame of each class per second to Linux.
fn miserly(space: &Space) -> String {
    format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"net_pcap0,rx_pcap=in.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\", mtu: 1500, addresses: [10.0.1.1/24] }}
  - {{ name: wan0, device: \"net_null1,no-rx=1\", mac: \"02:00:00:00:02:01\", mtu: 1500, addresses: [10.0.12.1/24] }}
buffer: {{ pool: 4MB }}
qos: {{ profile: lossy }}
linux: {{ integrate: true, netns: {}, punt: {{ bfd: 1, routing: 1, lldp: 1, arp_nd: 1, to_us: 1 }} }}
",
        space.0
    )
}

/// Returns a frame of each punt class.
fn for_linux() -> Vec<Vec<u8>> {
    let us = [2, 0, 0, 0, 1, 1];
    let ethernet = |dst: [u8; 6], ethertype: u16, payload: &[u8]| {
        let mut frame = [
            &dst[..],
            &[2, 0, 0, 0, 1, 3],
            &ethertype.to_be_bytes(),
            payload,
        ]
        .concat();
        frame.resize(frame.len().max(60), 0);
        frame
    };
    let to_us = |protocol: u8, ttl: u8, port: u16| {
        let mut packet = vec![0x45, 0, 0, 44, 0, 0, 0, 0, ttl, protocol, 0, 0];
        packet.extend([10, 0, 1, 3, 10, 0, 1, 1]);
        let sum = !checksum::sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(50_000_u16.to_be_bytes());
        packet.extend(port.to_be_bytes());
        packet.extend([0, 24]);
        packet.resize(44, 0);
        ethernet(us, 0x0800, &packet)
    };
    let who_has = [
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 1, 3, 10, 0, 1, 3, 0, 0, 0, 0, 0, 0, 10, 0, 1, 1,
    ];
    vec![
        to_us(17, 255, 3_784),
        to_us(6, 1, 179),
        ethernet(
            [1, 0x80, 0xc2, 0, 0, 0x0e],
            0x88cc,
            &[2, 7, 4, 2, 0, 0, 0, 1, 3],
        ),
        ethernet([0xff; 6], 0x0806, &who_has),
        to_us(17, 64, 9),
    ]
}

#[test]
fn frames_over_a_punt_rate_are_captured_with_their_class() {
    let _alone = alone();
    let space = Space::of("miserly");
    let switch = start(&miserly(&space), &for_linux(), &[]);
    let classes = ["arp_nd", "bfd", "lldp", "routing", "to_us"];
    let all: BTreeSet<String> = classes.map(|class| format!("punt_{class}")).into();
    switch.until("each class is over its rate", || {
        let counted: BTreeSet<String> = switch.drops().into_keys().collect();
        counted.is_superset(&all)
    });
    let lines = piped(&switch);
    assert_eq!(reasons(&lines), all, "as it counts, so it captures");
    for line in &lines {
        check(line);
        assert_eq!(
            (word(&line[0], "in"), word(&line[0], "out")),
            (Some("dc0"), None)
        );
    }
}

/// Checks that a link that goes down drops the frames queued for it.
fn goes_down(switch: &Switch) {
    let mut capture = switch
        .client(&[
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
    switch.until("it captures", || switch.captures());
    switch.done(&["port", "wan0", "down"]);
    assert!(capture.wait().unwrap().success());
    let down = tshark(&switch.path("down.pcapng"), &["frame.comment"]);
    assert_eq!(down.len(), 20);
    assert_eq!(reasons(&down), BTreeSet::from(["link_down".to_owned()]));
    assert!(!switch.captures(), "nothing stays on");
}

//! Captures of `gen-pcap`, read by scapy (ICRC and checksums recomputed) and tshark.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::common::{assert_success, python, root, switch};
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Group {
    opcode: u8,
    src: String,
    dst: String,
    qp: u32,
    port: u16,
    tos: u8,
    vlan: Option<u16>,
    len: usize,
    icrc_ok: bool,
    checksums_ok: bool,
    count: usize,
}

#[derive(Debug, Deserialize)]
struct Found {
    gaps: u32,
    groups: Vec<Group>,
}

fn generate(folder: &Path, args: &[&str]) {
    let output = switch()
        .current_dir(folder)
        .args(["gen-pcap", "--out", "out.pcap"])
        .args(args)
        .output()
        .unwrap();
    assert_success(&output);
}

/// Returns the groups of frames that scapy reads; every frame must be valid.
fn scapy(capture: &Path) -> Vec<Group> {
    let output = Command::new(python())
        .arg(root().join("tests/oracle/verify_roce.py"))
        .arg(capture)
        .output()
        .unwrap();
    assert_success(&output);
    let found: Found = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found.gaps, 0, "sequence numbers go on by one");
    for group in &found.groups {
        assert!(group.icrc_ok && group.checksums_ok, "{group:?}");
    }
    found.groups
}

fn opcodes(groups: &[Group]) -> Vec<(u8, usize)> {
    let all: BTreeSet<u8> = groups.iter().map(|group| group.opcode).collect();
    let count = |opcode: u8| {
        let same = groups.iter().filter(|group| group.opcode == opcode);
        (opcode, same.map(|group| group.count).sum())
    };
    all.into_iter().map(count).collect()
}

#[test]
fn every_operation_is_valid_both_ways_with_ports_by_the_hash() {
    let folder = tempfile::tempdir().unwrap();
    let ops = "write=2,send,read,ack,cnp";
    let args = [
        "--qps", "8", "--ops", ops, "--frames", "1082,122", "--count", "96",
    ];
    generate(
        folder.path(),
        &[&args[..], &["--reverse", "back.pcap"]].concat(),
    );
    let data = scapy(&folder.path().join("out.pcap"));
    assert_eq!(opcodes(&data), [(0x04, 16), (0x0a, 32), (0x10, 16)]);
    for group in &data {
        assert_eq!(
            (group.src.as_str(), group.dst.as_str()),
            ("10.0.1.3", "10.0.2.2")
        );
        assert_eq!((group.tos, group.vlan), (26 << 2 | 2, None));
        assert!([1082, 122].contains(&group.len), "{group:?}");
        let sender = Qpn::new(group.qp - 0x20_0000 + 0x10_0000);
        assert_eq!(group.port, port_of(sender, Qpn::new(group.qp)));
    }
    let back = scapy(&folder.path().join("back.pcap"));
    assert_eq!(opcodes(&back), [(0x0c, 16), (0x11, 16), (0x81, 16)]);
    assert!(back.iter().all(|group| group.dst == "10.0.1.3"));
    let qps: BTreeSet<u32> = back.iter().map(|group| group.qp).collect();
    assert_eq!(qps, (0x10_0000..0x10_0008).collect());
    // tshark reads the same opcodes, and nothing malformed.
    let output = Command::new("tshark")
        .args([
            "-T",
            "fields",
            "-e",
            "infiniband.bth.opcode",
            "-e",
            "_ws.malformed",
            "-r",
        ])
        .arg(folder.path().join("back.pcap"))
        .output()
        .unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut read: Vec<&str> = text.lines().map(str::trim_end).collect();
    read.sort_unstable();
    assert_eq!(read.len(), 48);
    assert_eq!((read[0], read[16], read[47]), ("12", "129", "17"));
}

#[test]
fn ipv6_vlans_and_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = [
        "--src",
        "2001:db8:1::3",
        "--senders",
        "3",
        "--dst",
        "2001:db8:2::1",
        "--receivers",
        "2",
    ];
    let rest = [
        "--vlan",
        "100",
        "--qps",
        "6",
        "--count",
        "60",
        "--ops",
        "send=3,cnp",
        "--frames",
        "102,590,1514",
        "--dscp",
        "10",
        "--ecn",
        "1",
    ];
    generate(folder.path(), &[&hosts[..], &rest].concat());
    let found = scapy(&folder.path().join("out.pcap"));
    assert!(found.iter().all(|group| group.vlan == Some(100)));
    let sources = |opcode: u8| {
        let of = found.iter().filter(|group| group.opcode == opcode);
        of.map(|group| group.src.clone())
            .collect::<BTreeSet<_>>()
            .len()
    };
    assert_eq!((sources(0x04), sources(0x81)), (3, 2));
    assert!(
        found
            .iter()
            .all(|group| group.tos == 41 || group.opcode == 0x81)
    );
}

#[test]
fn what_cannot_be_made_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (args, part) in [
        (&["--frames", "62"][..], "74 to 9216"),
        (&["--frames", "1081"], "steps of 4"),
        (&["--frames", "huge"], "no frame length"),
        (&["--ops", "write=3,put"], "no operation"),
        (&["--qps", "0"], "1 to 1048576"),
        (&["--count", "0"], "1 to 10000000"),
        (&["--dst", "2001:db8::1"], "different families"),
        (&["--vlan", "0"], "VLAN 0"),
        (&["--receivers", "0"], "receivers"),
        (&["--rate", "fast"], "rate"),
        (&["--src-mac", "zz"], "--src-mac"),
    ] {
        let output = switch()
            .current_dir(folder.path())
            .args(["gen-pcap", "--out", "out.pcap"])
            .args(args)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {part} in\n{text}");
    }
}

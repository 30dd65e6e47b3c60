//! Capture filters on real soft-RoCE traffic: they select the frames that tshark's display filters select.

use std::path::Path;
use std::process::Command;

use npcc_pipeline::capture::{Fields, Filter, Seen};
use npcc_testkit::capture::{self, Captured};

use crate::common::{assert_success, root};

/// Pairs of a filter of ours and tshark's for the same frames.
const PAIRS: [(&str, &str); 16] = [
    ("roce", "infiniband"),
    ("udp port 4791", "udp.port == 4791"),
    ("host 10.0.1.3", "ip.addr == 10.0.1.3"),
    (
        "src host 10.0.1.3 and roce",
        "ip.src == 10.0.1.3 && infiniband",
    ),
    ("net 10.0.1.0/30", "ip.addr == 10.0.1.0/30"),
    (
        "dst net 10.0.0.0/8 and not src host 10.0.1.3",
        "ip.dst == 10.0.0.0/8 && !(ip.src == 10.0.1.3)",
    ),
    ("dqpn 0x11", "infiniband.bth.destqp == 0x11"),
    (
        "dqpn 0x12 or dqpn 0x18",
        "infiniband.bth.destqp == 0x12 || infiniband.bth.destqp == 0x18",
    ),
    ("opcode 17", "infiniband.bth.opcode == 17"),
    ("class read-request", "infiniband.bth.opcode == 12"),
    (
        "class management",
        "infiniband.bth.opcode == 100 && infiniband.bth.destqp == 1",
    ),
    (
        "ecn ect0 or ecn ce",
        "ip.dsfield.ecn == 2 || ip.dsfield.ecn == 3",
    ),
    ("dscp 0 and ttl 64", "ip.dsfield.dscp == 0 && ip.ttl == 64"),
    ("arp or icmp or ip6", "arp || icmp || ipv6"),
    (
        "greater 500 and not (tcp or vlan)",
        "frame.len >= 500 && !(tcp || vlan)",
    ),
    (
        "qpn 1",
        "infiniband.bth.destqp == 1 || infiniband.deth.srcqp == 1",
    ),
];

/// Returns the frames and bytes that each of tshark's filters selects, in one reading of the file.
fn statistics(file: &Path) -> Vec<(u64, u64)> {
    let filters: Vec<&str> = PAIRS.iter().map(|(_, theirs)| *theirs).collect();
    let output = Command::new("tshark")
        .args(["-q", "-r", file.to_str().unwrap(), "-z"])
        .arg(format!("io,stat,0,{}", filters.join(",")))
        .output();
    let output = output
        .unwrap_or_else(|error| panic!("tshark does not run ({error}): scripts/test installs it"));
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().find(|line| line.contains("<>")).unwrap();
    let numbers = row
        .split('|')
        .skip(2)
        .filter_map(|cell| cell.trim().parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn filters_choose_what_tshark_chooses() {
    let mut chosen = 0;
    for name in ["cm-send", "read-4qp", "write-4qp"] {
        let path = root().join(format!("tests/captures/softroce-{name}.pcap"));
        let frames = capture::read(&path).unwrap();
        let theirs = statistics(&path);
        assert_eq!(theirs.len(), PAIRS.len());
        for ((ours, text), expected) in PAIRS.iter().zip(theirs) {
            let filter = Filter::parse(ours).unwrap();
            let wanted =
                |one: &&Captured| filter.matches(&Fields::of(&one.frame), Seen::Received, None);
            let frames = frames.iter().filter(wanted);
            let sum = frames.fold((0, 0), |(count, bytes), one| {
                (count + 1, bytes + one.frame.len() as u64)
            });
            assert_eq!(sum, expected, "{name}: `{ours}` and `{text}`");
            chosen += usize::from(sum.0 > 0);
        }
    }
    assert!(chosen > 12, "most of them choose something: {chosen}");
}

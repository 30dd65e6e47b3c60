//! Real soft-RoCE traffic of Linux 6.1 through the flow cache and the control core: every connection is paired, with the
//! evidence its manner of set-up must give.

use std::collections::BTreeMap;
use std::path::Path;

use npcc_cnp::control::ControlCore;
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::units::{BitRate, Nanos};
use npcc_roce::pair::Evidence;
use npcc_testkit::npcc::{self, World};

/// Frames of a capture with their times.
fn frames(file: &str) -> Vec<(Nanos, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/captures")
        .join(file);
    let bytes = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let unit = match word(0) {
        0xa1b2_c3d4 => 1_000,
        0xa1b2_3c4d => 1,
        _ => unreachable!("no capture"),
    };
    let (mut at, mut all, begin) = (24, Vec::new(), word(24));
    while at < bytes.len() {
        let seconds = u64::from(word(at) - begin);
        let time = Nanos(seconds * 1_000_000_000 + u64::from(word(at + 4)) * unit);
        let len = word(at + 8) as usize;
        all.push((time, bytes[at + 16..at + 16 + len].to_vec()));
        at += 16 + len;
    }
    all
}

/// Evidence by receiver's and sender's QPN.
type Known = BTreeMap<(u32, u32), Evidence>;

/// Runs a capture; `sender` is the last octet of the address that sends the bulk. Returns the best evidence of each flow, and that
/// at the end.
fn pairs(file: &str, sender: u8) -> (Known, Known) {
    let mut best = Known::new();
    let drain = BitRate(10_000_000_000);
    let settings = npcc::settings([1, 2, 3], drain, PolicyName::Npcc.defaults());
    let mut world = World::new(settings, 1_024);
    for (time, frame) in frames(file) {
        world.now = Nanos::from_millis(10) + time;
        // The source address of an IPv4 packet without tags.
        world.pass(&frame, frame[29] == sender);
        world.tick(0, |_| {});
        for (pair, evidence) in known(&world.core) {
            if evidence > Evidence::None {
                let so_far = best.entry(pair).or_default();
                *so_far = evidence.max(*so_far);
            }
        }
    }
    assert_eq!(
        world.core.status().cm.damaged.get(),
        0,
        "every ICRC is right"
    );
    (best, known(&world.core))
}

fn known(core: &ControlCore) -> Known {
    let flows = core.flows();
    let all = flows.flows().map(|flow| {
        let pair = (flow.flow.key.dest_qp().get(), flow.sender_qpn.get());
        (pair, flow.evidence)
    });
    all.collect()
}

#[test]
fn writes_pair_by_the_hash_of_both_qp_numbers() {
    let expected: Known = (0..4)
        .map(|n| ((0x11 + n, 0x18 + n), Evidence::PortHash))
        .collect();
    let (best, last) = pairs("softroce-write-4qp.pcap", 3);
    assert_eq!((&best, &last), (&expected, &expected));
}

#[test]
fn reads_pair_with_their_roles_reversed() {
    let expected: Known = (0x11..=0x14)
        .map(|n| ((n, n), Evidence::PortHash))
        .collect();
    let (best, last) = pairs("softroce-read-4qp.pcap", 2);
    assert_eq!((&best, &last), (&expected, &expected));
}

#[test]
fn connections_of_the_connection_manager_are_known_exactly_until_they_end() {
    let (best, last) = pairs("softroce-cm-send.pcap", 3);
    let named = |n| best.get(&(n, n)) == Some(&Evidence::Cm);
    // perftest exchanges its parameters over 0x11 and measures on 0x12.
    assert!(named(0x11) && named(0x12), "{best:?}");
    assert!(best.keys().all(|(b, a)| a == b), "{best:?}");
    let left = last.get(&(0x12, 0x12)).copied().unwrap_or_default();
    assert!(left < Evidence::Cm, "DREQ passed: {last:?}");
}

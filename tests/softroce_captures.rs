//! pcap in, pcap out: real soft-RoCE traffic, split by direction onto two `net_pcap` ports, a 10 Mb/s WAN egress with NPCC.
//! The CNPs that come out are read by scapy (ICRC and checksums recomputed) and by tshark. Live soft-RoCE guests are in
//! `tests/softroce/`.

use std::collections::{BTreeMap, BTreeSet};

use npcc_api::model::Snapshot;

use crate::common::switch::Switch;
use crate::common::{Lab, alone, root, scapy_cnps, tshark_cnps};
use npcc_testkit::capture;

/// Splits a capture: the frames that `sender` sends come in by dc0, the rest by wan0; DSCP 0 is priority 3.
///
/// A capture does not slow down, so its host is configured as one that does: it would soon count as unresponsive.
fn lab(file: &str, sender: (&str, &str), receiver: (&str, &str), wan_speed: &str) -> Lab {
    let lab = Lab::new();
    let source = root().join("tests/captures").join(file);
    let mac = capture::mac(sender.1).unwrap();
    capture::split(
        &source,
        mac,
        30,
        &lab.path("dc-in.pcap"),
        &lab.path("wan-in.pcap"),
    )
    .unwrap();
    let ((sender, sender_mac), (receiver, receiver_mac)) = (sender, receiver);
    lab.config(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"net_pcap0,rx_pcap=dc-in.pcap,tx_pcap=dc-out.pcap\", mac: \"{receiver_mac}\", mtu: 1500 }}
  - {{ name: wan0, device: \"net_pcap1,rx_pcap=wan-in.pcap,tx_pcap=wan-out.pcap\", mac: \"{sender_mac}\", mtu: 1500, speed: {wan_speed},
       npcc: {{ enable: true, queues: [3] }} }}
routes:
  - {{ prefix: {sender}/32, via: {sender} }}
  - {{ prefix: {receiver}/32, via: {receiver} }}
neighbors:
  - {{ address: {sender}, port: dc0, mac: \"{sender_mac}\" }}
  - {{ address: {receiver}, port: wan0, mac: \"{receiver_mac}\" }}
qos: {{ profile: roce-semi-lossless, dscp_to_priority: {{ 0: 3 }} }}
buffer: {{ pool: 32MB }}
npcc: {{ shallow: 20KB, deep: 100KB, gate: off, hosts: {{ answering: [{sender}/32] }} }}
"
    ));
    lab
}

/// Asserts what every run of a capture must show; returns the number of CNPs by QP.
fn check(
    lab: &Lab,
    snapshot: &Snapshot,
    sender: &str,
    receiver: &str,
    qps: &[u32],
) -> BTreeMap<u32, usize> {
    let cnps = scapy_cnps(&lab.path("dc-out.pcap"));
    let mut by_qp = BTreeMap::new();
    for cnp in &cnps {
        cnp.assert_well_formed();
        assert_eq!((cnp.src.as_str(), cnp.dst.as_str()), (receiver, sender));
        *by_qp.entry(cnp.dqpn).or_insert(0) += 1;
    }
    let signalled: BTreeSet<u32> = by_qp.keys().copied().collect();
    let senders: BTreeSet<u32> = qps.iter().copied().collect();
    assert_eq!(signalled, senders, "{by_qp:x?}");
    assert_eq!(snapshot.npcc.cnps_sent, cnps.len() as u64);
    assert_eq!(snapshot.npcc.paired.named("port-hash"), Some(&4));
    let theirs = tshark_cnps(&lab.path("dc-out.pcap"));
    assert_eq!(theirs.len(), cnps.len());
    assert!(
        theirs
            .iter()
            .zip(&cnps)
            .all(|((dst, qp), cnp)| *dst == cnp.dst && *qp == cnp.dqpn)
    );
    assert!(
        scapy_cnps(&lab.path("wan-out.pcap")).is_empty(),
        "nothing goes to the far side"
    );
    by_qp
}

#[test]
fn writes_of_four_qps_are_signalled_and_explained() {
    let _alone = alone();
    let lab = lab(
        "softroce-write-4qp.pcap",
        ("10.0.1.3", "02:00:00:00:01:03"),
        ("10.0.1.2", "02:00:00:00:01:02"),
        "10M",
    );
    let mut switch = Switch::start(lab);
    switch.until("every queue pair is signalled", || switch.signalled() == 4);
    let flows = switch.done(&["show", "flows", "--json"]);
    let [log, hosts] = ["log", "hosts"].map(|table| switch.done(&["show", table]));
    let snapshot = switch.stop();
    check(
        &switch,
        &snapshot,
        "10.0.1.3",
        "10.0.1.2",
        &[0x18, 0x19, 0x1a, 0x1b],
    );

    // Every CNP can be explained, and is counted for its host.
    assert!(
        log.contains("of 10.0.1.3 got CNP") && log.contains("known by port-hash"),
        "{log}"
    );
    assert!(hosts.contains("10.0.1.3"));

    // Each sender's QP is matched to the right flow: soft-RoCE numbers both ends in the order of creation.
    let flows: Vec<npcc_api::model::Flow> = serde_json::from_str(&flows).unwrap();
    let pairs: BTreeSet<_> = flows
        .iter()
        .map(|flow| (flow.dest_qp, flow.sender_qp))
        .collect();
    let expected = (0x11..0x15).zip((0x18..0x1c).map(Some)).collect();
    assert_eq!(pairs, expected);
    assert!(
        flows.iter().all(|flow| flow.evidence == "port-hash")
            && flows.iter().any(|flow| flow.cnps > 0),
        "{flows:?}"
    );
}

#[test]
fn reads_of_four_qps_are_signalled_at_the_responder() {
    let _alone = alone();
    // Most frames are READ RESPONSES: 10.0.1.2 is the sender of data, and dc0 is on its side.
    let lab = lab(
        "softroce-read-4qp.pcap",
        ("10.0.1.2", "02:00:00:00:01:02"),
        ("10.0.1.3", "02:00:00:00:01:03"),
        "10M",
    );
    let snapshot = lab.run_until("every queue pair is signalled", |switch| {
        switch.signalled() == 4
    });
    check(
        &lab,
        &snapshot,
        "10.0.1.2",
        "10.0.1.3",
        &[0x11, 0x12, 0x13, 0x14],
    );
}

#[test]
fn what_goes_in_comes_out_unchanged_but_for_the_headers_a_router_changes() {
    let _alone = alone();
    let lab = lab(
        "softroce-cm-send.pcap",
        ("10.0.1.3", "02:00:00:00:01:03"),
        ("10.0.1.2", "02:00:00:00:01:02"),
        "1G",
    );
    let sent = capture::read(&lab.path("dc-in.pcap")).unwrap();
    lab.run_until("all have passed", |switch| switch.has_passed(&[sent.len()]));
    let got = capture::read(&lab.path("wan-out.pcap")).unwrap();
    assert_eq!(
        sent.len(),
        got.len(),
        "the connection manager's packets too"
    );
    for (sent, got) in sent.iter().zip(&got) {
        let (sent, got) = (&sent.frame, &got.frame);
        assert_eq!(got[..6], [2, 0, 0, 0, 1, 2]);
        assert_eq!(got[22], sent[22] - 1, "TTL");
        assert_eq!(
            (&got[12..22], &got[23..24], &got[26..]),
            (&sent[12..22], &sent[23..24], &sent[26..])
        );
    }
}

//! Two workers as one switch: real soft-RoCE data into one worker's port and out of the other's, on two cores that the control
//! thread shares with a wide tick. Floods into a full channel are laws of `switch/tests/world_handoff.rs`, pauses across workers of
//! `switch/tests/world_pauses.rs`.

use std::time::{Duration, Instant};

use crate::common::switch::Switch;
use crate::common::{Lab, alone, root, seconds};
use npcc_api::model::Snapshot;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::Mac;
use npcc_testkit::capture::{self, Captured};

const SENDER: (&str, &str) = ("10.0.1.3", "02:00:00:00:01:03");
const RECEIVER: (&str, &str) = ("10.0.1.2", "02:00:00:00:01:02");

/// Creates a lab with `dc0` and `wan0` with these settings; the sender's frames come in by `dc0`, in `queues` captures.
fn lab(cores: &str, queues: usize, dc: &str, wan: &str, (pool, ecn): (&str, &str)) -> Lab {
    let lab = Lab::new();
    let source = root().join("tests/captures/softroce-write-4qp.pcap");
    let mac = capture::mac(SENDER.1).unwrap();
    capture::split(
        &source,
        mac,
        1,
        &lab.path("dc-in.pcap"),
        &lab.path("wan-in.pcap"),
    )
    .unwrap();
    let rx = "rx_pcap=dc-in.pcap,".repeat(queues);
    let ((sender, sender_mac), (receiver, receiver_mac)) = (SENDER, RECEIVER);
    lab.config(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
cores: {cores}
ports:
  - {{ name: dc0, device: \"net_pcap0,{rx}tx_pcap=dc-out.pcap\", mac: \"{receiver_mac}\", mtu: 1500, {dc} }}
  - {{ name: wan0, device: \"net_pcap1,rx_pcap=wan-in.pcap,tx_pcap=wan-out.pcap\", mac: \"{sender_mac}\", mtu: 1500, {wan} }}
routes:
  - {{ prefix: {sender}/32, via: {sender} }}
  - {{ prefix: {receiver}/32, via: {receiver} }}
neighbors:
  - {{ address: {sender}, port: dc0, mac: \"{sender_mac}\" }}
  - {{ address: {receiver}, port: wan0, mac: \"{receiver_mac}\" }}
qos: {{ dscp_to_priority: {{ 0: 3 }}, priorities: {{ 3: {{ ecn: {ecn} }} }} }}
buffer: {{ pool: {pool} }}
npcc: {{ tick: 2ms, recovery: 4ms, evidence: port-hash, gate: off, cnp: {{ earned: 0B }} }}
"
    ));
    lab
}

/// Pool and thresholds that no queue comes near.
const DEEP: (&str, &str) = ("64MB", "{ kmin: 4MB, kmax: 8MB }");

const TWO: &str = "{ control: 0, workers: [1, 0] }";

fn frames(lab: &Lab, name: &str) -> Vec<Vec<u8>> {
    let captured = capture::read(&lab.path(name)).unwrap();
    captured
        .into_iter()
        .map(|captured| captured.frame)
        .collect()
}

/// Returns the frames of a capture without pause frames: a worker that falls behind sends some.
fn data(lab: &Lab, name: &str) -> Vec<Vec<u8>> {
    let mut frames = frames(lab, name);
    frames.retain(|frame| frame[12..14] != [0x88, 0x08]);
    frames
}

/// Runs the switch until all frames of both captures have passed; returns the totals.
fn passed(lab: &Lab) -> Snapshot {
    let counts = ["dc-in.pcap", "wan-in.pcap"].map(|name| frames(lab, name).len());
    lab.run_until("all have passed", |switch| switch.has_passed(&counts))
}

fn drops(snapshot: &Snapshot) -> u64 {
    snapshot.conservation.drops.packets
}

/// Guards the hand-over between workers: every frame crosses once, none is lost or reordered, and the far side sees what one worker would have
/// sent.
#[test]
fn two_workers_forward_what_one_does() {
    let _alone = alone();
    let outputs: Vec<_> = ["{ control: 0, workers: [1] }", TWO]
        .into_iter()
        .map(|cores| {
            let lab = lab(
                cores,
                1,
                "speed: 100G, pfc: send",
                "speed: 400G, pfc: off, npcc: { queues: [3] }",
                DEEP,
            );
            let snapshot = passed(&lab);
            (
                data(&lab, "wan-out.pcap"),
                data(&lab, "dc-out.pcap"),
                snapshot,
            )
        })
        .collect();
    let [(one_wan, one_dc, one), (two_wan, two_dc, two)] = &outputs[..] else {
        panic!("two runs");
    };
    assert!(one_wan.len() > 100 && !one_dc.is_empty());
    assert!(
        one_wan == two_wan,
        "the same frames in the same order toward the WAN"
    );
    assert!(one_dc == two_dc, "and back");
    assert_eq!((drops(one), drops(two)), (0, 0));
    let [first, second] = &two.workers[..] else {
        panic!("two workers: {:?}", two.workers);
    };
    assert_eq!((first.core, second.core), (1, 0));
    assert_eq!(
        (&first.owns[..], &second.owns[..]),
        (&["dc0".to_owned()][..], &["wan0".to_owned()][..])
    );
    assert_eq!(first.handoff.handed_over, two.ports[0].rx.packets);
    assert_eq!(second.handoff.taken_over, first.handoff.handed_over);
    assert_eq!(second.handoff.handed_over, two.ports[1].rx.packets);
    assert_eq!(one.workers[0].handoff.handed_over, 0);
    assert_eq!(
        two.npcc.flows, one.npcc.flows,
        "one flow table over all caches"
    );
    assert_eq!(two.npcc.paired, one.npcc.paired);
}

/// Guards idle workers: workers that sleep when nothing comes forward what one does that polls, as a hand-over wakes the other.
#[test]
fn two_workers_that_sleep_lose_nothing() {
    let _alone = alone();
    let sleepers = "{ control: 0, workers: [1, 0], idle: adaptive }";
    let outputs = ["{ control: 0, workers: [1] }", sleepers].map(|cores| {
        let lab = lab(
            cores,
            1,
            "speed: 100G, pfc: off",
            "speed: 400G, pfc: off, npcc: { queues: [3] }",
            ("64MB", "{ kmin: 4MB, kmax: 8MB }, lossless: false"),
        );
        // All may have passed before the workers have slept often.
        let counts = ["dc-in.pcap", "wan-in.pcap"].map(|name| frames(&lab, name).len());
        let rests = |switch: &Switch| {
            let workers = switch.snapshot().workers;
            workers.iter().all(|worker| worker.naps > 10)
        };
        let snapshot = lab.run_until("all have passed, and workers that may sleep do", |switch| {
            switch.has_passed(&counts) && (cores != sleepers || rests(switch))
        });
        assert_eq!(drops(&snapshot), 0);
        let out = ["wan-out.pcap", "dc-out.pcap"].map(|name| data(&lab, name));
        assert_eq!(out.each_ref().map(Vec::len), counts);
        (out, snapshot)
    });
    let [(one, _), (two, snapshot)] = outputs;
    assert!(one == two, "the same frames in the same order, both ways");
    for worker in &snapshot.workers {
        assert!(worker.slept_us > 0, "{worker:?}");
    }
}

/// Guards ownership: a port with two receive queues is polled by both workers, and owned by the one configured.
#[test]
fn a_port_with_two_queues_is_shared() {
    let _alone = alone();
    let lab = lab(
        TWO,
        2,
        "speed: 100G, pfc: send, worker: 0",
        "speed: 400G, pfc: off, worker: 0",
        DEEP,
    );
    let mut switch = Switch::start(lab);
    let table = switch.done(&["show", "workers"]);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..3], ["CORE", "OWNS", "RECEIVES"]);
    assert_eq!(rows[2][..5], ["0", "dc0", "wan0", "dc0", "wan0"], "{table}");
    let each = frames(&switch, "dc-in.pcap").len() as u64;
    switch.until("all frames have left", || {
        switch.show("ports")[1]["tx"]["packets"] == 2 * each
    });
    let snapshot = switch.stop();
    assert_eq!(snapshot.ports[0].workers, [0, 1]);
    assert_eq!(
        (snapshot.ports[0].rx.packets, drops(&snapshot)),
        (2 * each, 0)
    );
    assert_eq!(
        snapshot.workers[0].handoff.handed_over, each,
        "all that core 1 receives leaves by core 0's port"
    );
    assert_eq!(snapshot.ports[1].tx.packets, 2 * each);
}

/// Guards a long overload of the channels, both ways and in a lossless and a lossy class, for a second or `NPCC_SECONDS`: nobody panics, the switch
/// answers, and the account closes. Earlier defect: a worker that found the channel full panicked within six seconds.
#[test]
fn two_workers_go_on_under_full_channels() {
    let _alone = alone();
    let lab = Lab::with(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
cores: {TWO}
ports:
  - {{ name: dc0, device: \"net_pcap0,rx_pcap=dc-in.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\", speed: 400G, addresses: [10.0.1.1/24] }}
  - {{ name: wan0, device: \"net_pcap1,rx_pcap=wan-in.pcap,infinite_rx=1\", mac: \"02:00:00:00:02:01\", speed: 400G, addresses: [10.0.2.1/24] }}
neighbors:
  - {{ address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: 10.0.2.3, port: wan0, mac: \"02:00:00:00:02:03\" }}
npcc: {{ tick: 2ms, recovery: 4ms, action: observe }}
"
    ));
    for (name, from, to) in [("dc-in.pcap", 1, 2), ("wan-in.pcap", 2, 1)] {
        let [src, dst] = [from, to].map(|net| [10, 0, net, 3].into());
        let frame = |dscp: u8| Craft {
            dst_mac: Mac([2, 0, 0, 0, from, 1]),
            tos: dscp << 2,
            ..Craft::roce(src, dst, 0x0a, 0x11, 64)
        };
        // Runs of some length of the lossless class, of a lossy one, and of both by turns.
        let dscps = [[26; 16], [0; 16]].concat();
        let dscps = dscps.into_iter().chain([26, 0].repeat(8));
        let captured = |dscp| Captured {
            time: 0,
            frame: frame(dscp).frame(),
        };
        let all: Vec<Captured> = dscps.map(captured).collect();
        capture::write(&lab.path(name), all.iter(), 1).unwrap();
    }
    let mut switch = Switch::start(lab);
    let full = |snapshot: &Snapshot| {
        let workers = snapshot.workers.iter();
        let stalls: u64 = workers.map(|worker| worker.handoff.stalls).sum();
        let ports = snapshot.ports.iter();
        let lost: u64 = ports
            .map(|port| port.counts.drops[DropReason::XringFull.index()])
            .sum();
        (stalls, lost)
    };
    switch.until("both classes find the channels full", || {
        let (stalls, lost) = full(&switch.snapshot());
        stalls > 0 && lost > 0
    });
    // The length of the overload is the stimulus.
    let until = Instant::now() + Duration::from_secs(seconds(1));
    while Instant::now() < until {
        let before = switch.snapshot().conservation.rx.packets;
        switch.until("frames are received", || {
            switch.snapshot().conservation.rx.packets > before
        });
        std::thread::sleep(Duration::from_millis(100));
    }
    let snapshot = switch.stop();
    let (stalls, lost) = full(&snapshot);
    println!(
        "{:?}, {stalls} stalls, {lost} dropped as xring_full",
        snapshot.conservation
    );
    let handoff = snapshot.workers.iter().map(|worker| &worker.handoff);
    let [given, taken] = handoff.fold([0; 2], |[given, taken], one| {
        [given + one.handed_over, taken + one.taken_over]
    });
    // At the stop, what is in a channel is dropped.
    assert!(
        given >= taken && taken > 0,
        "{given} handed over, {taken} taken over"
    );
    assert_eq!(snapshot.conservation.held.packets, 0);
}

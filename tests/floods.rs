//! A flood of new flows that a real port plays while a client captures everything. The laws of floods are on the world:
//! `switch/tests/world_floods.rs`.
//!
//! `NPCC_SECONDS` makes it last longer. Needs root. Touches only namespaces and links of its own.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use npcc_api::model::Snapshot;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::icrc;
use npcc_pipeline::units::Mac;

use crate::common::forge::{self, Packet, RECEIVER, SENDER, Script};
use crate::common::net::Net;
use crate::common::switch::Switch;
use crate::common::{Lab, Running, alone, seconds};
use npcc_testkit::capture::{self, Captured};
use npcc_testkit::wait;

/// MAC address of the port that a flood comes in by.
const FLOOD: Mac = Mac([2, 0, 0, 0, 3, 1]);

/// Returns the length of a flood that is played from a file, in seconds: at most four, as the file is made in memory.
fn played() -> u32 {
    seconds(2).min(4) as u32
}

/// Number of source addresses of the flood.
const SOURCES: u32 = 10_000;

/// Builds data of a connection that does not exist.
fn new_flow(n: u32) -> Vec<u8> {
    let [.., high, low] = (n % SOURCES).to_be_bytes();
    let mut frame = Craft {
        dst_mac: FLOOD,
        ..Craft::roce(
            [10, 9, high, low.max(2)].into(),
            [10, 0, 4, 2].into(),
            0x0a,
            0x1000 + n,
            24,
        )
    }
    .frame();
    icrc::seal(&mut frame);
    frame
}

/// Creates the lab of `crate::common::forge`, with a port that plays a file once, as fast as it can, to an idle port that NPCC watches.
fn lab(net: &Net) -> Lab {
    let lab = forge::lab(net, "earned: 0B }, hosts: { answering: [10.0.1.0/24]");
    let captured = (0..3_000_000 * played()).map(|n| Captured {
        time: 0,
        frame: new_flow(n),
    });
    let all: Vec<Captured> = captured.collect();
    capture::write(&lab.path("flood.pcap"), all.iter(), 1).unwrap();
    let path = lab.path("switch.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let ports = "neighbors:
  - { address: 10.0.4.2, port: spare, mac: \"02:00:00:00:04:02\" }";
    let text = text.replace("neighbors:", ports).replace(
        "neighbors:\n  - { address: 10.0.4.2",
        "  - { name: flood, device: \"net_pcap2,rx_pcap=flood.pcap,tx_pcap=/dev/null\", mac: \"02:00:00:00:03:01\", addresses: [10.9.0.1/16] }
  - { name: spare, device: \"net_null3,no-rx=1\", mac: \"02:00:00:00:04:01\", speed: 10G, addresses: [10.0.4.1/24], npcc: { queues: [3] } }
neighbors:\n  - { address: 10.0.4.2",
    );
    std::fs::write(&path, text).unwrap();
    lab
}

/// Returns the number of frames received by the port of the flood.
fn flooded(lab: &Lab) -> u64 {
    let ports = lab.show("ports");
    let port = ports
        .as_array()
        .unwrap()
        .iter()
        .find(|port| port["name"] == "flood")
        .unwrap();
    port["rx"]["packets"].as_u64().unwrap()
}

/// Waits until the flood has gone on.
fn goes_on(lab: &Lab) {
    let before = flooded(lab);
    wait::until("the flood goes on", wait::LONG, || flooded(lab) > before);
}

/// Plays a script during the flood, which must outlast it, and stops the switch; returns the queue pairs that were signalled.
fn play_in_flood(
    net: &Net,
    lab: &Lab,
    mut switch: Switch,
    script: Script,
) -> (BTreeSet<u32>, Snapshot) {
    let before = flooded(lab);
    let signalled = script.play(net);
    let after = flooded(lab);
    goes_on(lab);
    let snapshot = switch.stop();
    println!(
        "{} frames meanwhile, {} CNPs, {} records lost",
        after - before,
        snapshot.npcc.cnps_sent,
        snapshot.npcc.caches.sample_drops
    );
    (signalled, snapshot)
}

/// Starts a client that captures all frames to a pipe that nobody reads.
fn captures(lab: &Lab) -> Child {
    let mut capture = lab.command(&["capture", "-w", "-", "--socket", "switch.sock"]);
    capture.stdout(Stdio::piped()).stderr(Stdio::null());
    capture.spawn().unwrap()
}

/// Guards against flow-table starvation: new connections had no CNP while 131,072 forged flows came at two million frames a second.
#[test]
fn new_connections_are_signalled_in_a_flood_that_is_captured() {
    let _alone = alone();
    let net = forge::net();
    let lab = lab(&net);
    let switch = Switch::start(lab.clone());
    let _capture = Running::of(captures(&lab));
    let mut script = Script::default();
    // Six begin, one a round; all of them go on for three rounds more.
    for round in 0..9 {
        for n in 0..200 {
            let flow = n % (round + 1).min(6);
            let pair = (SENDER + flow, RECEIVER + flow);
            let data = Packet::data(pair, 200 * round + n);
            script.packet(&data);
            script.packet(&data.answer(pair.0));
            if n % 4 == 3 {
                script.wait(1);
            }
        }
    }
    let (signalled, snapshot) = play_in_flood(&net, &lab, switch, script);
    let senders = (SENDER..SENDER + 6).collect();
    let npcc = &snapshot.npcc;
    assert_eq!(
        signalled,
        senders,
        "flows by evidence {:?}; {} of {} data bytes cold; {} records lost; {} CNPs, not sent {:?}",
        npcc.paired.each_named().collect::<Vec<_>>(),
        npcc.counts.cold_bytes,
        npcc.health.data_bytes,
        npcc.caches.sample_drops,
        npcc.cnps_sent,
        npcc.cnps_suppressed.each_named().collect::<Vec<_>>(),
    );
}

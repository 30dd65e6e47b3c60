//! Floods through the real process, by a port of their own: new connections go on being signalled, and a neighbour on another port keeps its
//! LLDP, ARP, ping, BFD and BGP, and its path MTU discovery.
//!
//! `NPCC_SECONDS` has each last longer. Needs root. Touches nothing but namespaces and links of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "a test says what is wrong by panicking, and its numbers are small"
)]

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::forge::{self, Packet, RECEIVER, SENDER, Script, Switch};
use common::net::{Net, Space, strange_hosts};
use common::rack::Rack;
use common::{Lab, alone, assert_success, root};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::icrc;
use npcc_pipeline::units::Mac;
use npcc_testkit::capture::{self, Captured};
use serde_json::Value;

/// The port that a flood comes in by.
const FLOOD: Mac = Mac([2, 0, 0, 0, 3, 1]);

fn seconds(least: u64) -> u64 {
    std::env::var("NPCC_SECONDS").map_or(least, |text| text.parse().unwrap())
}

/// Frame `n` of a flood, made up in the name of one of so many sources.
type Frame = fn(n: u32, sources: u32) -> Vec<u8>;

fn source(n: u32, sources: u32) -> [u8; 4] {
    let [.., high, low] = (n % sources).to_be_bytes();
    [10, 9, high, low.max(2)]
}

/// Data of a connection that nobody has.
fn new_flow(n: u32, sources: u32) -> Vec<u8> {
    let mut frame = Craft {
        dst_mac: FLOOD,
        ..Craft::roce(
            source(n, sources).into(),
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

/// A request of the connection manager.
fn request(n: u32, sources: u32) -> Vec<u8> {
    let fields = [(0, 0x100 + n), (32, (0x1000 + n) << 8), (88, 0x1234_5000)];
    let packet = Packet::management(source(n, sources), [10, 0, 4, 2], 0x10, &fields);
    let mut frame = packet.frame(true);
    frame[..6].copy_from_slice(&FLOOD.0);
    frame
}

/// The switch of `common::forge`, with a port that plays a file once, as fast as it can, to an idle port that NPCC watches.
fn lab(net: &Net, frame: Frame, frames: u32, sources: u32) -> Lab {
    let lab = forge::lab(net, "earned: 0B }, hosts: { answering: [10.0.1.0/24]");
    let captured = (0..frames).map(|n| Captured {
        time: 0,
        frame: frame(n, sources),
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

/// Frames that came in by the port of the flood.
fn flooded(lab: &Lab) -> u64 {
    let args = ["show", "ports", "--json", "--socket", "switch.sock"];
    let output = lab.command(&args).output().unwrap();
    assert_success(&output);
    let ports: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ports = ports.as_array().unwrap().clone();
    let port = ports.iter().find(|port| port["name"] == "flood").unwrap();
    port["rx"]["packets"].as_u64().unwrap()
}

/// The flood goes on.
fn goes_on(lab: &Lab) -> bool {
    let before = flooded(lab);
    std::thread::sleep(Duration::from_millis(50));
    flooded(lab) > before
}

/// New connections had no CNP while 131,072 made-up names came at two million frames a second.
#[test]
fn new_connections_are_signalled_in_a_flood_of_new_flows() {
    let _alone = alone();
    let net = forge::net();
    for sources in [1, 10_000] {
        let lab = lab(&net, new_flow, 1_500_000 * seconds(2) as u32, sources);
        let switch = Switch::start(&lab);
        let mut script = Script::default();
        for round in 0..6 {
            for n in 0..200 {
                let pair = (SENDER + n % (round + 1), RECEIVER + n % (round + 1));
                let data = Packet::data(pair, 200 * round + n);
                script.packet(&data);
                script.packet(&data.answer(pair.0));
                if n % 4 == 3 {
                    script.wait(2);
                }
            }
        }
        let before = flooded(&lab);
        let signalled = script.play(&net);
        let after = flooded(&lab);
        assert!(goes_on(&lab), "too short a flood: {after}");
        let snapshot = switch.stop();
        println!(
            "{sources} sources: {} frames meanwhile, {} CNPs, {} records lost",
            after - before,
            snapshot.npcc.cnps_sent,
            snapshot.npcc.caches.sample_drops
        );
        let senders = (SENDER..SENDER + 6).collect();
        assert_eq!(signalled, senders, "{sources} sources: {:?}", snapshot.npcc);
    }
}

/// A connection whose REP came after its REQ was pushed out was never paired.
#[test]
fn a_connection_is_paired_in_a_flood_of_requests() {
    let _alone = alone();
    let net = forge::net();
    let lab = lab(&net, request, 700_000 * seconds(2) as u32, 10_000);
    let switch = Switch::start(&lab);
    let mut script = Script::default();
    let [req, rep] = forge::connect(7, SENDER, RECEIVER);
    script.packet(&req);
    script.wait(100);
    script.packet(&rep);
    script.wait(20);
    // No answers: nothing but the connection manager's word pairs it.
    for psn in 0..400 {
        script.packet(&Packet::data((SENDER, RECEIVER), psn));
        if psn % 10 == 9 {
            script.wait(3);
        }
    }
    let before = flooded(&lab);
    let signalled = script.play(&net);
    let after = flooded(&lab);
    assert!(goes_on(&lab), "too short a flood: {after}");
    let snapshot = switch.stop();
    println!(
        "{} requests meanwhile, {} CNPs",
        after - before,
        snapshot.npcc.cnps_sent
    );
    assert_eq!(signalled, [SENDER].into(), "{:?}", snapshot.npcc);
}

/// What Linux has to answer, from everywhere, and packets whose TTL ends here.
fn punts() -> Vec<Captured> {
    let ethernet = |kind: [u8; 2], body: &[u8], n: u8| {
        let macs = [[2, 0, 0, 0, 3, 1], [2, 0, 0, 0, 3, 2 + n]];
        [macs.as_flattened(), &kind, body].concat()
    };
    let ip = |n: u8, protocol: u8, ttl: u8, payload: &[u8]| {
        let len = 20 + payload.len() as u8;
        let mut header = vec![0x45, 0xc0, 0, len, 0, 0, 0x40, 0, ttl, protocol, 0, 0];
        header.extend([10, 0, 3, 2 + n, 10, 0, 3, 1]);
        let sum = !npcc_pipeline::wire::checksum::sum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        ethernet([8, 0], &[&header, payload].concat(), n)
    };
    let frame = |n: u16| {
        let host = (n / 7 % 128) as u8;
        match n % 7 {
            0 => {
                let mut lldp = ethernet(
                    [0x88, 0xcc],
                    &[
                        2, 7, 4, 2, 0, 0, 0, 3, host, 4, 2, 7, 49, 6, 2, 0, 120, 0, 0,
                    ],
                    host,
                );
                lldp[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0x0e]);
                lldp
            }
            1 => {
                let question = [
                    0,
                    1,
                    8,
                    0,
                    6,
                    4,
                    0,
                    1,
                    2,
                    0,
                    0,
                    0,
                    3,
                    2 + host,
                    10,
                    0,
                    3,
                    2 + host,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    10,
                    0,
                    3,
                    1,
                ];
                let mut arp = ethernet([8, 6], &question, host);
                arp[..6].copy_from_slice(&[0xff; 6]);
                arp
            }
            2 => ip(host, 1, 64, &[8, 0, 0xf7, 0xfe, 0, 0, 0, 1]),
            // Of hosts that answer no ARP.
            5 => ip(200 + host % 8, 1, 64, &[8, 0, 0xf7, 0xfe, 0, 0, 0, 1]),
            3 => ip(
                host,
                17,
                255,
                &[0xc0, 0, 0x0e, 0xc8, 0, 12, 0, 0, 0, 0, 0, 0],
            ),
            4 => ip(
                host,
                6,
                64,
                &[
                    0xc0, 0, 0, 179, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0,
                ],
            ),
            _ => {
                let mut ends = ip(host, 17, 1, &[0xc0, 0, 0xc0, 1, 0, 12, 0, 0, 0, 0, 0, 0]);
                // To a host behind another port.
                ends[30..34].copy_from_slice(&[10, 0, 2, 3]);
                ends[24..26].copy_from_slice(&[0, 0]);
                let sum = !npcc_pipeline::wire::checksum::sum(&ends[14..34]);
                ends[24..26].copy_from_slice(&sum.to_be_bytes());
                ends
            }
        }
    };
    let mut all: Vec<Captured> = (0..7 * 128)
        .map(|n| Captured {
            time: 0,
            frame: frame(n),
        })
        .collect();
    all.iter_mut()
        .for_each(|one| one.frame.resize(one.frame.len().max(60), 0));
    all
}

fn rack(is_flooded: bool) -> Rack {
    let net = strange_hosts();
    let space = Space::of("floods");
    let lab = Lab::new();
    capture::write(&lab.path("flood.pcap"), punts().iter(), 1).unwrap();
    let device = if is_flooded {
        "net_pcap2,rx_pcap=flood.pcap,infinite_rx=1,tx_pcap=/dev/null"
    } else {
        "net_null2,no-rx=1"
    };
    lab.config(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"{}\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24] }}
  - {{ name: wan0, device: \"{}\", mac: \"02:00:00:00:02:01\", mtu: 1500, addresses: [10.0.2.1/24] }}
  - {{ name: flood, device: \"{device}\", mac: \"02:00:00:00:03:01\", addresses: [10.0.3.1/24] }}
qos: {{ profile: lossy }}
buffer: {{ pool: 8MB }}
linux: {{ integrate: true, netns: {} }}
",
        net.jumbo_device(0, "dc"),
        net.jumbo_device(1, "wan"),
        space.0
    ));
    let rack = Rack {
        switch: lab.start(&["--stats-json", "stats.json"]),
        net,
        space,
        lab,
    };
    rack.until("it answers", |rack| rack.show("ports").is_array());
    rack
}

/// Runs `tests/peer/neighbor.py` in a namespace.
fn neighbor(space: &str, args: &[&str]) -> std::process::Child {
    Command::new("ip")
        .args(["netns", "exec", space, "/usr/bin/python3"])
        .arg(root().join("tests/peer/neighbor.py"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn said(child: std::process::Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert_success(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One host's frames to the switch ended LLDP, ARP, ping, BFD and BGP of neighbours on other ports, and its packets of TTL 1 their path MTU
/// discovery.
#[test]
fn a_neighbor_keeps_its_control_traffic_in_a_flood_of_another_port() {
    let _alone = alone();
    for is_flooded in [false, true] {
        let rack = rack(is_flooded);
        rack.until("hosts are resolved", |rack| {
            rack.pings("dc", "10.0.2.3") && rack.pings("wan", "10.0.2.1")
        });
        let time = seconds(2).to_string();
        let linux = neighbor(&rack.space.0, &["hear", "wan0", &time]);
        let host = neighbor(
            &rack.net.space("wan"),
            &["talk", &rack.net.link("hwan"), &time],
        );
        let large = neighbor(
            &rack.net.space("dc"),
            &["discover", &rack.net.link("hdc"), &time],
        );
        let (heard, answered, large) = (said(linux), said(host), said(large));
        let (_, stats) = rack.end();
        println!("flooded {is_flooded}: {heard} {answered} {large}");
        let sent = answered["sent"].as_f64().unwrap();
        let shares = [
            ("lldp", &heard["lldp"]),
            ("bfd", &heard["bfd"]),
            ("bgp", &heard["bgp"]),
            ("arp", &answered["arp"]),
            ("ping", &answered["ping"]),
        ]
        .map(|(name, count)| (name, count.as_f64().unwrap() / sent));
        for (name, share) in shares {
            assert!(share >= 0.95, "flooded {is_flooded}: {name} {share}");
        }
        let (told, of) = (
            large["told"].as_f64().unwrap(),
            large["sent"].as_f64().unwrap(),
        );
        assert!(told >= 0.95 * of, "flooded {is_flooded}: too big: {large}");
        let ports = stats["ports"].as_array().unwrap();
        let flood = ports.iter().find(|port| port["name"] == "flood").unwrap();
        let came = flood["rx"]["packets"].as_u64().unwrap();
        assert_eq!(came > 100_000, is_flooded, "{came}");
    }
}

//! Flood of punted frames by a port of its own, with Linux and a real neighbour: LLDP, ARP, ping, BFD and BGP of another port come through it,
//! and path MTU discovery. The shares are laws of `pipeline/src/datapath/shares_tests.rs`.
//!
//! Needs root. Touches only namespaces and links of its own.

use std::process::Child;

use crate::common::net::{Space, peer, strange_hosts};
use crate::common::rack::Rack;
use crate::common::{Lab, alone, assert_success};
use npcc_pipeline::wire::checksum;
use npcc_testkit::capture::{self, Captured};
use npcc_testkit::wait;
use serde_json::Value;

/// Returns the flood: frames that Linux must answer, from many hosts, and packets whose TTL expires here.
fn punts() -> Vec<Captured> {
    let ethernet = |kind: [u8; 2], body: &[u8], n: u8| {
        let macs = [[2, 0, 0, 0, 3, 1], [2, 0, 0, 0, 3, 2 + n]];
        [macs.as_flattened(), &kind, body].concat()
    };
    let ip = |n: u8, protocol: u8, ttl: u8, payload: &[u8]| {
        let len = 20 + payload.len() as u8;
        let mut header = vec![0x45, 0xc0, 0, len, 0, 0, 0x40, 0, ttl, protocol, 0, 0];
        header.extend([10, 0, 3, 2 + n, 10, 0, 3, 1]);
        let sum = !checksum::sum(&header);
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
                let head = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 3, 2 + host];
                let question = [&head[..], &[10, 0, 3, 2 + host], &[0; 6], &[10, 0, 3, 1]].concat();
                let mut arp = ethernet([8, 6], &question, host);
                arp[..6].copy_from_slice(&[0xff; 6]);
                arp
            }
            2 => ip(host, 1, 64, &[8, 0, 0xf7, 0xfe, 0, 0, 0, 1]),
            // From hosts that do not answer ARP.
            5 => ip(200 + host % 8, 1, 64, &[8, 0, 0xf7, 0xfe, 0, 0, 0, 1]),
            3 => {
                let bfd = [0xc0, 0, 0x0e, 0xc8, 0, 12, 0, 0, 0, 0, 0, 0];
                ip(host, 17, 255, &bfd)
            }
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
                let sum = !checksum::sum(&ends[14..34]);
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

fn rack() -> Rack {
    let net = strange_hosts();
    let space = Space::of("punts");
    let lab = Lab::new();
    capture::write(&lab.path("flood.pcap"), punts().iter(), 1).unwrap();
    let device = "net_pcap2,rx_pcap=flood.pcap,infinite_rx=1,tx_pcap=/dev/null";
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
    Rack::start(net, space, lab)
}

/// Runs `tests/peer/neighbor.py` in a namespace.
fn neighbor(space: &str, args: &[&str]) -> Child {
    peer(space, "neighbor.py").args(args).spawn().unwrap()
}

fn said(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert_success(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Guards punt limits per port: one host's frames to the switch ended LLDP, ARP, ping, BFD and BGP of neighbours on other ports, and its
/// packets of TTL 1 ended their path MTU discovery.
#[test]
fn a_neighbor_keeps_its_control_traffic_in_a_flood_of_another_port() {
    const TIME: &str = "2";
    let _alone = alone();
    let rack = rack();
    rack.until("hosts are resolved", |rack| {
        rack.pings("dc", "10.0.2.3") && rack.pings("wan", "10.0.2.1")
    });
    wait::until(
        "half of each kind of a neighbour's frames come",
        wait::LONG,
        || {
            let linux = neighbor(&rack.space.0, &["hear", "wan0", TIME]);
            let talk = ["talk", &rack.net.link("hwan"), TIME];
            let host = neighbor(&rack.net.space("wan"), &talk);
            let discover = ["discover", &rack.net.link("hdc"), TIME];
            let large = neighbor(&rack.net.space("dc"), &discover);
            let (heard, answered, large) = (said(linux), said(host), said(large));
            println!("{heard} {answered} {large}");
            // Linux and the hosts share the machine with the flood, so a round loses some; nearly all were lost before.
            let comes = |name: &str, by: &Value, of: &Value| {
                by[name].as_f64() >= of["sent"].as_f64().map(|sent| sent / 2.0)
            };
            ["lldp", "bfd", "bgp"]
                .iter()
                .all(|name| comes(name, &heard, &answered))
                && ["arp", "ping"]
                    .iter()
                    .all(|name| comes(name, &answered, &answered))
                && comes("told", &large, &large)
        },
    );
    let (_, stats) = rack.end();
    let ports = stats["ports"].as_array().unwrap();
    let flood = ports.iter().find(|port| port["name"] == "flood").unwrap();
    assert!(flood["rx"]["packets"].as_u64() > Some(100_000), "{flood}");
}

//! Flood of punted frames by a port of its own, with Linux and a real neighbour on another port, whose ARP and pings Linux answers. The shares of
//! all classes and of ICMP errors are laws of `pipeline/src/datapath/shares_tests.rs`; BGP and BFD stay up in `tests/control_plane.rs`.
//!
//! Needs root. Touches only namespaces and links of its own.

use crate::common::net::{Space, peer, strange_hosts};
use crate::common::rack::Rack;
use crate::common::{Lab, alone, assert_success};
use npcc_pipeline::wire::checksum;
use npcc_testkit::capture::{self, Captured};
use npcc_testkit::wait;
use serde_json::Value;

/// Returns the flood: ARP requests and pings of 128 hosts, and pings of eight that do not answer ARP.
fn punts() -> Vec<Captured> {
    let ethernet = |kind: [u8; 2], body: &[u8], n: u8| {
        let macs = [[2, 0, 0, 0, 3, 1], [2, 0, 0, 0, 3, 2 + n]];
        [macs.as_flattened(), &kind, body].concat()
    };
    let ping = |n: u8| {
        let echo = [8, 0, 0xf7, 0xfe, 0, 0, 0, 1];
        let mut header = vec![0x45, 0xc0, 0, 28, 0, 0, 0x40, 0, 64, 1, 0, 0];
        header.extend([10, 0, 3, 2 + n, 10, 0, 3, 1]);
        let sum = !checksum::sum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        ethernet([8, 0], &[&header[..], &echo].concat(), n)
    };
    let frame = |n: u16| {
        let host = (n / 3 % 128) as u8;
        let mut frame = match n % 3 {
            0 => {
                let head = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 3, 2 + host];
                let question = [&head[..], &[10, 0, 3, 2 + host], &[0; 6], &[10, 0, 3, 1]].concat();
                let mut arp = ethernet([8, 6], &question, host);
                arp[..6].copy_from_slice(&[0xff; 6]);
                arp
            }
            1 => ping(host),
            _ => ping(200 + host % 8),
        };
        frame.resize(60, 0);
        Captured { time: 0, frame }
    };
    (0..3 * 128).map(frame).collect()
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

/// Guards Linux's own answers in a flood: pings of hosts that do not answer ARP took all the room that the kernel has for packets whose
/// neighbour is not known, and nobody's ping was answered.
#[test]
fn linux_answers_a_neighbor_in_a_flood_of_another_port() {
    const TIME: &str = "2";
    let _alone = alone();
    let rack = rack();
    rack.until("hosts are resolved", |rack| {
        rack.pings("dc", "10.0.2.3") && rack.pings("wan", "10.0.2.1")
    });
    wait::until(
        "half of a neighbour's questions are answered",
        wait::LONG,
        || {
            let mut host = peer(&rack.net.space("wan"), "neighbor.py");
            host.arg(rack.net.link("hwan")).arg(TIME);
            let output = host.output().unwrap();
            assert_success(&output);
            let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
            println!("{counts}");
            // Linux and the host share the machine with the flood, so a round loses some; nearly all were lost before.
            let half = counts["sent"].as_f64().map(|sent| sent / 2.0);
            ["arp", "ping"]
                .iter()
                .all(|name| counts[name].as_f64() >= half)
        },
    );
    let (_, stats) = rack.end();
    let ports = stats["ports"].as_array().unwrap();
    let flood = ports.iter().find(|port| port["name"] == "flood").unwrap();
    assert!(flood["rx"]["packets"].as_u64() > Some(100_000), "{flood}");
}

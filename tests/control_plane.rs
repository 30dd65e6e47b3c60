//! Control plane under load: BGP and BFD stay up while a port is congested and paused and the switch is flooded with frames it must answer.

use std::time::Duration;

use crate::common::frr::{Frr, bgp_host};
use crate::common::net::{Space, python, strange_hosts};
use crate::common::rack::Rack;
use crate::common::{Lab, Running, alone, seconds};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;
use npcc_testkit::capture::{self, Captured};
use npcc_testkit::wait;
use serde_json::Value;

/// MAC address of the port the flood comes in by.
const FLOOD: Mac = Mac([2, 0, 0, 0, 3, 1]);

/// Returns the flood. Of 1,000 frames, 100 have a TTL that expires here, 10 are ARP requests for the port's address, and 445 each are of a
/// lossless and a lossy class to a port that lets a fraction of them out.
fn flood() -> Vec<Captured> {
    let craft = |dst: &str, tos, ttl, len| {
        let frame = Craft {
            dst_mac: FLOOD,
            tos,
            ttl,
            ..Craft::roce(
                "10.0.3.9".parse().unwrap(),
                dst.parse().unwrap(),
                0x0a,
                0x11,
                len,
            )
        };
        frame.frame()
    };
    let question = [
        &[0xff; 6][..],
        &[2, 0, 0, 0, 3, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
        &[2, 0, 0, 0, 3, 9, 10, 0, 3, 9, 0, 0, 0, 0, 0, 0, 10, 0, 3, 1],
        &[0; 18],
    ]
    .concat();
    let frame = |n: usize| match n % 100 {
        0 => question.clone(),
        1..=10 => craft("10.0.2.3", 0, 1, 64),
        n if n % 2 == 0 => craft("10.0.2.3", 26 << 2 | 2, 64, 1_024),
        _ => craft("10.0.2.3", 0, 64, 1_024),
    };
    (0..1_000)
        .map(|n| Captured {
            time: 0,
            frame: frame(n),
        })
        .collect()
}

/// Script of a host that pauses priority 3 without end.
const PAUSER: &str = "
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
pause = bytes.fromhex('0180c2000001020000000203 8808 0101 0008'.replace(' ', '')) + bytes(6) + b'\\xff\\xff' + bytes(8 + 28)
while True:
    s.send(pause)
    time.sleep(0.005)
";

fn switch() -> Rack {
    let net = strange_hosts();
    let space = Space::of("flood");
    let lab = Lab::new();
    capture::write(&lab.path("flood.pcap"), flood().iter(), 1).unwrap();
    lab.config(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"{}\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24, \"2001:db8:1::1/64\"] }}
  - {{ name: wan0, device: \"{}\", mac: \"02:00:00:00:02:01\", mtu: 1500, speed: 100M, link_speed: 1G, addresses: [10.0.2.1/24, \"2001:db8:2::1/64\"] }}
  - {{ name: flood, device: \"net_pcap2,rx_pcap=flood.pcap,infinite_rx=1,tx_pcap=/dev/null\", mac: \"02:00:00:00:03:01\", addresses: [10.0.3.1/24], pfc: off }}
neighbors: [ {{ address: 10.0.3.9, port: flood, mac: \"02:00:00:00:03:09\" }} ]
buffer: {{ pool: 32MB }}
linux: {{ integrate: true, netns: {} }}
",
        net.jumbo_device(0, "dc"),
        net.jumbo_device(1, "wan"),
        space.0
    ));
    Rack::start(net, space, lab)
}

/// Guards the control plane's isolation from data and floods, for 5 s or `NPCC_SECONDS`: BGP holds a session for 3 s.
#[test]
fn bgp_and_bfd_stay_up_on_a_port_that_is_congested_and_paused_under_a_flood() {
    let _alone = alone();
    let seconds = seconds(5);
    let rack = switch();
    let bgpd = "router bgp 65000
 bgp router-id 10.0.1.1
 no bgp ebgp-requires-policy
 timers bgp 1 3
 neighbor 10.0.1.3 remote-as 65101
 neighbor 10.0.1.3 bfd
 neighbor 10.0.1.3 timers connect 1
 neighbor 10.0.2.3 remote-as 65102
 neighbor 10.0.2.3 bfd
 neighbor 10.0.2.3 timers connect 1
";
    let own = Frr::start(&rack.space.0, "! none\n", bgpd, "");
    let _dc = bgp_host(&rack, "dc", 101, "10.0.1.1", "remote-as 65000");
    let _wan = bgp_host(&rack, "wan", 102, "10.0.2.1", "remote-as 65000");
    let mut pauser = python(&rack.net.space("wan"), PAUSER);
    let mut pauser = Running::of(pauser.arg(rack.net.link("hwan")).spawn().unwrap());
    let peers = ["10.0.1.3", "10.0.2.3"];
    wait::until("BGP is established under load", wait::LONG, || {
        own.established(&peers)
    });
    wait::until("BFD is up under load", wait::LONG, || own.bfd_up(2));
    let class = |name: &str, key: &str| {
        let punt = rack.show("punt");
        let all = punt["classes"].as_array().cloned().unwrap_or_default();
        let class = all
            .into_iter()
            .find(|class| class["name"] == name)
            .unwrap_or_default();
        class[key].as_u64().unwrap_or_default()
    };
    let shown = rack.show("punt");
    let worker = |shown: &Value| {
        let of = |key: &str| shown["workers"][key].as_u64().unwrap();
        of("time_exceeded") + of("icmp_over_rate")
    };
    let arp = || class("arp_nd", "punted") + class("arp_nd", "over_rate") + class("arp_nd", "full");
    // Frames that the congested port dropped, and pauses of priority 3 that it heard.
    let load = || {
        let port = &rack.show("ports")[1];
        let drops = port["drops"].as_object().unwrap().values();
        let dropped: u64 = drops.filter_map(Value::as_u64).sum();
        [dropped, port["pfc"]["rx"][3].as_u64().unwrap()]
    };
    let load_before = load();
    let before = (
        peers.map(|peer| own.times(peer)),
        own.downs(),
        worker(&shown),
        arp(),
    );
    // The stimulus: sessions are held for so long, and until a flood has come.
    std::thread::sleep(Duration::from_secs(seconds));
    let flood = || {
        let frames = worker(&rack.show("punt")) - before.2;
        [
            frames,
            arp() - before.3,
            load()[0] - load_before[0],
            load()[1] - load_before[1],
        ]
    };
    // It pauses 200 times a second, each time for 33 ms of a link of 1 Gb/s.
    let least = [10_000 * seconds, 1_000 * seconds, 1, 1];
    let awaited = || {
        format!(
            "frames with TTL 1, ARP requests, drops, pauses: {:?}",
            flood()
        )
    };
    wait::value(wait::LONG, awaited, || {
        let all = flood()
            .into_iter()
            .zip(least)
            .all(|(came, least)| came >= least);
        all.then_some(())
    });
    println!(
        "{seconds} s: frames with TTL 1, ARP requests, drops, pauses: {:?}",
        flood()
    );
    let shown = rack.show("punt");
    assert_eq!(
        (peers.map(|peer| own.times(peer)), own.downs()),
        (before.0, before.1),
        "no session was lost: {shown:#}"
    );
    assert!(own.established(&peers) && own.bfd_up(2));
    assert_eq!(pauser.try_wait().unwrap(), None, "its peer has ended");
    assert_eq!(
        class("bfd", "full")
            + class("bfd", "over_rate")
            + class("routing", "full")
            + class("routing", "over_rate"),
        0,
        "{shown:#}"
    );
    drop(own);
    rack.end();
}

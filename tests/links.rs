//! A link that goes down and comes up under traffic: two uplinks that share flows, one of them cut. TAP devices in a network
//! namespace of the test's own; a TAP whose kernel side is taken down is a link that is down.
//!
//! Needs root.

use std::process::{Command, Stdio};

use npcc_api::events::Kind;
use npcc_api::model::Snapshot;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::Mac;

use crate::common::fifty;
use crate::common::net::{Net, python, run};
use crate::common::switch::Switch;
use crate::common::{Lab, alone, assert_success, root};
use npcc_testkit::wait;
use serde::Deserialize;

/// Configuration with one prefix behind two uplinks; priority 3 is lossless and paused by frames.
const CONFIG: &str = "version: 1
ports:
  - { name: dc0, device: 'net_tap0,iface=dc0', mac: '02:00:00:00:01:01', mtu: 1500, addresses: [10.0.1.1/24], speed: 10G }
  - { name: wan0, device: 'net_tap1,iface=wan0', mac: '02:00:00:00:01:02', mtu: 1500, addresses: [10.0.12.1/24], speed: 10G }
  - { name: wan1, device: 'net_tap2,iface=wan1', mac: '02:00:00:00:01:03', mtu: 1500, addresses: [10.0.13.1/24], speed: 10G, link_speed: 25G }
routes:
  - { prefix: 10.0.2.0/24, via: [10.0.12.2, 10.0.13.2] }
neighbors:
  - { address: 10.0.12.2, port: wan0, mac: '02:00:00:00:02:01' }
  - { address: 10.0.13.2, port: wan1, mac: '02:00:00:00:02:02' }
dpdk: { eal_args: [--in-memory, --no-pci], link_wait: 2s }
buffer: { pool: 16MB }
";

/// Starts the switch with these variables in its environment.
fn start_with(lab: Lab, variables: &[(&str, &str)]) -> Switch {
    lab.config(CONFIG);
    Switch::start_with(lab, variables)
}

impl Switch {
    /// Waits until a port is up, or down.
    fn wait(&self, port: &str, up: bool) -> Snapshot {
        let awaited = || format!("{port} up {up}: {:?}", self.snapshot().ports);
        wait::value(wait::LONG, awaited, || {
            let snapshot = self.snapshot();
            let row = snapshot.ports.iter().find(|row| row.name == port).unwrap();
            (row.up == up).then_some(snapshot)
        })
    }
}

/// Results of `tests/peer/link_cut.py`.
#[derive(Debug, Deserialize)]
#[expect(
    dead_code,
    reason = "times are printed, as they differ with the machine"
)]
struct Seen {
    flows_on_a: u64,
    flows_on_b: u64,
    /// Flows of the link that was cut, when all of them had moved to the other.
    moved: u64,
    moved_after_ms: f64,
    /// Flows of the other link that took no other way.
    stayed: u64,
    /// Flows that take the way again that they took before the cut.
    came_back: u64,
    came_back_after_ms: f64,
}

/// Returns a data frame of the flow of this number, to the prefix behind both uplinks.
fn flow_frame(flow: u16) -> Vec<u8> {
    let craft = Craft {
        dst_mac: Mac([2, 0, 0, 0, 1, 1]),
        tos: 26 << 2 | 2,
        src_port: 49_152 + flow * 7,
        ..Craft::roce(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.3".parse().unwrap(),
            0x0a,
            0x11 + u32::from(flow),
            64,
        )
    };
    craft.frame()
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Cuts the second of these interfaces: takes it down and up again.
fn cut(lab: &Lab, space: &str, interfaces: [&str; 3]) -> Seen {
    let lines: Vec<String> = (0..64).map(|flow| hex(&flow_frame(flow))).collect();
    std::fs::write(lab.path("frames.txt"), lines.join("\n")).unwrap();
    let output = Command::new("ip")
        .args(["netns", "exec", space, "/usr/bin/python3"])
        .arg(root().join("tests/peer/link_cut.py"))
        .args(interfaces)
        .arg(lab.path("frames.txt"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_success(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Cuts the second of these interfaces: its flows move to the third and come back, and the others take no other way.
fn cut_moves_flows(lab: &Lab, space: &str, interfaces: [&str; 3]) {
    let seen = cut(lab, space, interfaces);
    println!("{seen:?}");
    assert!(seen.flows_on_a >= 16 && seen.flows_on_b >= 16, "{seen:?}");
    assert_eq!(
        (seen.moved, seen.stayed, seen.came_back),
        (seen.flows_on_a, seen.flows_on_b, 64),
        "{seen:?}"
    );
}

/// Earlier defect: a dead link kept its flows, and the frames waiting for it paused all lossless traffic for ever.
#[test]
fn a_cut_uplink_moves_its_own_flows_and_pauses_nobody() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let space = net.space("sw");
    let mut switch = start_with(Lab::inside(space.clone()), &[]);
    for uplink in ["wan0", "wan1"] {
        switch.wait(uplink, true);
    }
    cut_moves_flows(&switch.lab, &space, ["dc0", "wan0", "wan1"]);
    // That no frame of the other way is lost: `flows_of_the_other_uplink_do_not_notice_a_cut` of the pipeline.
    let snapshot = switch.wait("wan0", true);
    let row = &snapshot.ports[1];
    assert_eq!(
        (row.flaps, row.admin.as_str(), row.down_reason.as_str()),
        (1, "up", "")
    );
    // A busy machine sometimes keeps the worker from its core.
    let all = snapshot.events.iter().map(|event| event.kind);
    let events: Vec<Kind> = all.filter(|kind| *kind != Kind::SlowTurn).collect();
    assert_eq!(
        events,
        [Kind::LinkDown, Kind::LinkUp],
        "{:?}",
        snapshot.events
    );
    assert!(
        snapshot
            .events
            .iter()
            .all(|event| event.wall.ends_with('Z'))
    );
    for port in &snapshot.ports {
        assert!(port.flow.asserted == 0, "{} is paused", port.name);
        assert_eq!(port.counts.lossless_lost, 0, "{}", port.name);
    }
    assert_eq!(snapshot.buffer.frames, 0);
    assert_eq!(switch.stop().conservation.held.packets, 0);
}

/// Frames that came between the start of a device and that of its worker are old. Earlier defect: they were forwarded, seconds late, and
/// what the ring had lost meanwhile was shown as lost lossless frames.
#[test]
fn what_came_before_the_workers_ran_is_not_forwarded() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let space = net.space("sw");
    // The kernel's own frames on a new device (IPv6 router solicitations, MLD) would be counted as ours.
    run(&format!(
        "ip netns exec {space} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
    ));
    let lab = Lab::inside(space.clone());
    let go = lab.path("go");
    let mut switch = start_with(
        lab,
        &[
            ("NPCC_FAULT", "ready"),
            ("NPCC_FAULT_UNTIL", go.to_str().unwrap()),
        ],
    );
    let send = |frames: u32| {
        let script = format!(
            "import socket\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\ns.bind(('dc0', 0))\nfor _ in range({frames}): s.send(bytes.fromhex('{}'))",
            hex(&flow_frame(0))
        );
        assert_success(&python(&space, &script).output().unwrap());
    };
    send(100);
    assert_eq!(switch.snapshot().ports[0].counts.rx.packets, 0, "not yet");
    std::fs::write(&go, "").unwrap();
    // The first frame sent afterwards may come while the workers still discard.
    let mut sent = 0;
    let awaited = || "the first frame".to_owned();
    let row = wait::value(wait::LONG, awaited, || {
        send(1);
        sent += 1;
        let row = switch.snapshot().ports.swap_remove(0);
        (row.counts.rx.packets > 0).then_some(row)
    });
    let rx = row.counts.rx.packets;
    assert!((1..=sent).contains(&rx), "{rx} of {sent}, and none of 100");
    assert_eq!(row.counts.lossless_lost, 0);
    switch.stop();
}

/// Earlier defect: a port that was taken down forwarded what arrived on it, with a device that goes on receiving.
#[test]
fn a_port_that_is_down_forwards_nothing_that_arrives_on_it() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let space = net.space("sw");
    let lab = fifty::lab(&space);
    lab.config(fifty::CONFIG);
    let mut switch = Switch::start(lab);
    let passed = || fifty::passed(&space);
    let down = |snapshot: &Snapshot| snapshot.ports[0].counts.drops[DropReason::LinkDown.index()];
    assert_eq!(passed(), 50);
    switch.done(&["port", "dc0", "down"]);
    let before = switch.wait("dc0", false);
    assert_eq!(fifty::passed_within(&space, "1"), 0);
    let after = switch.snapshot();
    assert_eq!(down(&after) - down(&before), 50);
    assert_eq!(after.ports[0].down_reason, "admin");
    switch.done(&["port", "dc0", "up"]);
    switch.wait("dc0", true);
    assert_eq!(passed(), 50);
    // The account of all frames closes.
    switch.stop();
}

/// Configuration with one prefix behind two uplinks, on packet sockets.
const SOCKETS: &str = "version: 1
ports:
  - { name: dc0, device: 'net_af_packet0,iface=dc0', mac: '02:00:00:00:01:01', mtu: 1500, addresses: [10.0.1.1/24], speed: 10G }
  - { name: wan0, device: 'net_af_packet1,iface=wan0', mac: '02:00:00:00:01:02', mtu: 1500, addresses: [10.0.12.1/24], speed: 10G }
  - { name: wan1, device: 'net_af_packet2,iface=wan1', mac: '02:00:00:00:01:03', mtu: 1500, addresses: [10.0.13.1/24], speed: 10G }
routes:
  - { prefix: 10.0.2.0/24, via: [10.0.12.2, 10.0.13.2] }
neighbors:
  - { address: 10.0.12.2, port: wan0, mac: '02:00:00:00:02:01' }
  - { address: 10.0.13.2, port: wan1, mac: '02:00:00:00:02:02' }
cores: { idle: adaptive }
qos: { profile: lossy }
dpdk: { eal_args: [--in-memory, --no-pci], link_wait: 2s }
buffer: { pool: 16MB }
";

/// Creates veth pairs `dc0`, `wan0` and `wan1` in a namespace, whose other ends have an `h` before the name; all are up.
fn three_pairs(space: &str) {
    run(&format!(
        "ip netns exec {space} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
    ));
    for port in ["dc0", "wan0", "wan1"] {
        pair(space, port);
    }
}

fn pair(space: &str, port: &str) {
    run(&format!(
        "ip -n {space} link add {port} up type veth peer name h{port}"
    ));
    run(&format!("ip -n {space} link set h{port} up"));
}

/// Earlier defect: a port of packet sockets was "up" whatever its interface did, so that half of the flows were lost.
#[test]
fn a_packet_socket_whose_peer_goes_down_moves_its_flows() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let space = net.space("sw");
    three_pairs(&space);
    let lab = Lab::inside(space.clone());
    lab.config(SOCKETS);
    let mut switch = Switch::start(lab);
    for uplink in ["wan0", "wan1"] {
        switch.wait(uplink, true);
    }
    // The script takes the other ends of the uplinks down and up.
    cut_moves_flows(&switch.lab, &space, ["hdc0", "hwan0", "hwan1"]);
    let snapshot = switch.wait("wan0", true);
    assert_eq!(snapshot.ports[1].flaps, 1);
    // So does the interface itself.
    run(&format!("ip -n {space} link set wan1 down"));
    let snapshot = switch.wait("wan1", false);
    assert_eq!(snapshot.ports[2].down_reason, "link");
    run(&format!("ip -n {space} link set wan1 up"));
    switch.wait("wan1", true);
    switch.stop();
}

/// The peer of one port is down at the start. Earlier defect: with the interface of a port deleted, the port stayed "up", and stayed a black
/// hole when the interface was back.
#[test]
fn a_packet_socket_whose_interface_is_deleted_is_down_for_its_device() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let space = net.space("sw");
    three_pairs(&space);
    run(&format!("ip -n {space} link set hdc0 down"));
    let lab = Lab::inside(space.clone());
    lab.config(SOCKETS);
    let mut switch = Switch::start(lab);
    let row = switch.snapshot().ports.swap_remove(0);
    assert_eq!(
        (row.up, row.down_reason.as_str(), row.flaps),
        (false, "link", 0)
    );
    run(&format!("ip -n {space} link del wan0"));
    let gone = |snapshot: &Snapshot| {
        let row = &snapshot.ports[1];
        (!row.up && row.down_reason == "device").then_some(())
    };
    let awaited = || format!("wan0 is gone: {:?}", switch.snapshot().ports[1]);
    wait::value(wait::LONG, awaited, || gone(&switch.snapshot()));
    pair(&space, "wan0");
    // The workers sleep as before, though the socket has an error.
    switch.forwards();
    let snapshot = switch.snapshot();
    assert_eq!(
        gone(&snapshot),
        Some(()),
        "the new interface is not the port's"
    );
    let events = snapshot.events.iter().filter(|event| event.port == "wan0");
    let said: Vec<String> = events.map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].ends_with("wan0: link down"), "{said:?}");
    assert!(said[1].contains("restart the switch"), "{said:?}");
    switch.stop();
}

/// net_af_packet and net_tap set the kernel interface's MTU when they are asked to: only PCI devices are asked.
#[test]
fn a_kernel_interface_under_a_port_keeps_its_mtu() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let space = net.space("sw");
    run(&format!(
        "ip -n {space} link add veth0 mtu 9200 up type veth peer name veth1 mtu 9200"
    ));
    let lab = Lab::inside(space.clone());
    lab.config(
        "version: 1
ports:
  - { name: dc0, device: 'net_tap0,iface=tap0', mtu: 1400, addresses: [10.0.1.1/24], speed: 10G }
  - { name: wan0, device: 'net_af_packet0,iface=veth0', mtu: 1400, addresses: [10.0.2.1/24], speed: 10G }
dpdk: { eal_args: [--in-memory, --no-pci], link_wait: 2s }
buffer: { pool: 16MB }
",
    );
    let mut switch = Switch::start_with(lab, &[]);
    let mtu = |interface: &str| {
        let script = format!("print(open('/sys/class/net/{interface}/mtu').read())");
        let output = python(&space, &script).output().unwrap();
        assert_success(&output);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(
        (mtu("tap0"), mtu("veth0")),
        ("1500".to_owned(), "9200".to_owned())
    );
    switch.stop();
}

/// Guards `port down` and `up` by an operator: the state and its reason are shown.
#[test]
fn a_port_goes_down_and_up_by_order() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let mut switch = start_with(Lab::inside(net.space("sw")), &[]);
    let row = &switch.snapshot().ports[2];
    assert_eq!(
        (row.link_speed, row.link_speed_from.as_str(), row.rate),
        (25_000_000_000, "link_speed", Some(10_000_000_000)),
        "the shaper is not the link"
    );
    switch.done(&["port", "wan1", "down"]);
    let snapshot = switch.wait("wan1", false);
    assert_eq!(snapshot.ports[2].down_reason, "admin");
    let shown = switch.done(&["show", "ports"]);
    assert!(shown.contains("down (admin)"), "{shown}");
    switch.done(&["port", "wan1", "up"]);
    let snapshot = switch.wait("wan1", true);
    assert_eq!(snapshot.ports[2].flaps, 1);
    assert!(!switch.ask(&["port", "wan7", "up"]).status.success());
    switch.stop();
}

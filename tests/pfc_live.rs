//! PFC on a live wire: a host, two switch processes in a chain, a host; veth pairs and `net_af_packet`. The far host pauses
//! priority 3, the switches propagate the pause hop by hop, and the near host obeys it.
//!
//! Needs root. Touches only namespaces and links of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use npcc_api::model::Snapshot;

use crate::common::net::{Net, peer, run};
use crate::common::switch::Switch;
use crate::common::{Lab, alone, assert_success};
use npcc_testkit::{capture, wait};
use serde::Deserialize;

/// Creates a chain of machines, each a namespace, and its links by their ends: near (the host) - a0, a1 - b0, b1 - far. Two switches in
/// one namespace could be refused their sockets: see dpdk-sys/safe/tests/packet_socket.rs.
fn net() -> Net {
    let net = Net::of(&["near", "a", "b", "far"], &[]);
    for [(space, end), (other_space, other_end)] in [
        [("near", "near"), ("a", "a0")],
        [("a", "a1"), ("b", "b0")],
        [("b", "b1"), ("far", "far")],
    ] {
        let (here, there) = (net.space(space), net.space(other_space));
        let (end, other_end) = (net.link(end), net.link(other_end));
        run(&format!(
            "ip -n {here} link add {end} type veth peer name {other_end} netns {there}"
        ));
        for (space, end, faces) in [(&here, &end, &there), (&there, &other_end, &here)] {
            // Keep the kernel's own IPv6 traffic from the switches; each keeps it off its own ends, but only while it runs itself.
            if [net.space("a"), net.space("b")].contains(faces) {
                run(&format!(
                    "ip netns exec {space} sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1"
                ));
            }
            run(&format!("ip -n {space} link set {end} up"));
        }
    }
    net
}

fn host(net: &Net, side: &str, args: &[&str]) -> Child {
    let mut command = peer(&net.space(side), "pfc_hosts.py");
    command.args(args).stdin(Stdio::piped()).spawn().unwrap()
}

/// Returns the number of packet sockets in the namespace of a machine.
fn sockets(net: &Net, side: &str) -> usize {
    let output = Command::new("ip")
        .args(["netns", "exec", &net.space(side), "cat", "/proc/net/packet"])
        .output()
        .unwrap();
    // After a line of headings.
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .skip(1)
        .count()
}

/// Capture of the MAC control frames that *arrive* at one end: what a switch sends there itself bypasses the kernel's taps.
struct Tap {
    child: Child,
}

impl Tap {
    fn start(space: &str, interface: &str, to: &Path) -> Tap {
        let mut child = Command::new("ip")
            .args(["netns", "exec", space, "dumpcap", "-q", "-P"])
            .args(["-i", interface, "-f", "ether proto 0x8808", "-w"])
            .arg(to)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("dumpcap does not run ({error}): scripts/test installs it with tshark")
            });
        // dumpcap prints its file name when it listens.
        let stderr = child.stderr.take().unwrap();
        let listens = BufReader::new(stderr)
            .lines()
            .map_while(Result::ok)
            .any(|line| line.starts_with("File:"));
        assert!(listens, "dumpcap did not start on {interface}");
        Tap { child }
    }

    fn stop(mut self) {
        run(&format!("kill -INT {}", self.child.id()));
        self.child.wait().unwrap();
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // Gone already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Results of the near host.
#[derive(Debug, Deserialize)]
struct Sender {
    sent: [u64; 2],
    xoffs: u64,
    xons: u64,
    held_s: f64,
    resumed_at_s: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Class {
    got: u64,
    disorder: u64,
    /// Datagrams that arrived while priority 3 was paused and had fallen silent.
    paused: u64,
}

/// Results of the far host.
#[derive(Debug, Deserialize)]
struct Receiver {
    lossless: Class,
    lossy: Class,
}

fn said<T: serde::de::DeserializeOwned>(host: Child) -> T {
    let output = host.wait_with_output().unwrap();
    assert_success(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Starts one of the two lossless hops: a pool whose first pause comes at about 130 KB, and headroom for a peer that a busy machine may keep
/// from its core for 100 ms. The hosts send a tenth of the ports' speed: a worker that gets a tenth of a core still keeps up.
fn switch(net: &Net, space: &str, ports: [(&str, &str, &str); 2], routes: &str) -> Switch {
    let lab = Lab::inside(net.space(space));
    let mut text = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
"
    .to_owned();
    for (index, (name, end, mac)) in ports.iter().enumerate() {
        text.push_str(&format!(
            "  - {{ name: {name}, device: \"net_af_packet{index},iface={},blocksz=65536,framesz=2048,framecnt=1024\", mac: \"{mac}\", mtu: 1500, speed: 100M, peer_response: 100ms }}\n",
            net.link(end)
        ));
    }
    text.push_str(routes);
    text.push_str(
        "pfc: { watchdog: { action: alert } }
qos: { priorities: { 3: { ecn: { kmin: 20KB, kmax: 60KB } } } }
buffer: { pool: 3100KB }
",
    );
    lab.config(&text);
    Switch::start(lab)
}

const A0: &str = "02:00:00:00:0a:00";
const A1: &str = "02:00:00:00:0a:01";
const B0: &str = "02:00:00:00:0b:00";
const B1: &str = "02:00:00:00:0b:01";
const NEAR: &str = "02:00:00:00:00:01";
const FAR: &str = "02:00:00:00:00:02";

/// Asserts that every MAC control frame of a capture is an XOFF or XON of priority 3 alone from `source`, octet by octet as 802.1Qbb
/// lays it out; returns the quanta, in order.
fn quanta(path: &Path, source: &str) -> Vec<u16> {
    let frames = capture::read(path).unwrap();
    let quanta = |frame: &capture::Captured| {
        let bytes = &frame.frame;
        let quanta = u16::from_be_bytes([bytes[24], bytes[25]]);
        let mut want = vec![0x01, 0x80, 0xc2, 0, 0, 0x01];
        want.extend(capture::mac(source).unwrap());
        want.extend([0x88, 0x08, 0x01, 0x01, 0x00, 0x08, 0, 0, 0, 0, 0, 0]);
        want.extend(quanta.to_be_bytes());
        want.resize(60, 0);
        assert_eq!(bytes[..], want[..], "a PFC frame of 802.1Qbb");
        quanta
    };
    frames.iter().map(quanta).collect()
}

/// Returns tshark's own count of PFC frames that name class 3 alone, either with quanta (`xoff`) or with 0.
fn tshark_counts(path: &Path, xoff: bool) -> usize {
    let operator = if xoff { ">" } else { "==" };
    let filter = format!(
        "macc.opcode == 0x0101 && macc.cbfc.enbv == 0x0008 && macc.cbfc.pause_time.c3 {operator} 0"
    );
    let output = Command::new("tshark")
        .args(["-Y", &filter, "-r"])
        .arg(path)
        .output()
        .unwrap();
    assert_success(&output);
    String::from_utf8(output.stdout).unwrap().lines().count()
}

/// Guards SONiC's docs/testplan/pfc, PAUSE_LOSSLESS, over two hops: while the far host pauses priority 3, nothing of it
/// arrives and the other priority goes on; each switch pauses the one before it, the near host stops; after XON everything
/// that was ever sent arrives, in order. No pause frame is forwarded. Durations are laws of `pipeline/tests/pfc_honour.rs`.
#[test]
fn a_pause_travels_back_hop_by_hop_and_loses_nothing() {
    let _alone = alone();
    let net = net();
    let mut a = switch(
        &net,
        "a",
        [("dc0", "a0", A0), ("wan0", "a1", A1)],
        &format!(
            "routes: [{{ prefix: 10.0.2.0/24, via: 10.9.0.2 }}]\nneighbors: [{{ address: 10.9.0.2, port: wan0, mac: \"{B0}\" }}]\n"
        ),
    );
    let mut b = switch(
        &net,
        "b",
        [("wan0", "b0", B0), ("dc0", "b1", B1)],
        &format!(
            "routes: [{{ prefix: 10.0.2.0/24, via: 10.0.2.2 }}]\nneighbors: [{{ address: 10.0.2.2, port: dc0, mac: \"{FAR}\" }}]\n"
        ),
    );
    let lab = Lab::new();
    let taps = [("near", "near"), ("a", "a1"), ("b", "b0"), ("far", "far")].map(|(space, end)| {
        Tap::start(
            &net.space(space),
            &net.link(end),
            &lab.path(&format!("{end}.pcap")),
        )
    });
    let before = sockets(&net, "far");
    let mut receiver = host(
        &net,
        "far",
        &["receive", &net.link("far"), FAR, "60", "0.5"],
    );
    wait::until("the far host listens", wait::LONG, || {
        sockets(&net, "far") == before + 2
    });
    let sender = host(&net, "near", &["send", &net.link("near"), NEAR, A0, "2.5"]);
    let count = |port: usize, way: &str| a.show("ports")[port]["pfc"][way][3].as_u64().unwrap();
    a.until("b pauses a", || count(1, "rx") > 0);
    // A switch that is kept from its core pauses the near host before, too.
    let before = count(0, "tx");
    a.until("a pauses the near host", || count(0, "tx") > before);
    receiver.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let sender: Sender = said(sender);
    let receiver: Receiver = said(receiver);
    taps.into_iter().for_each(Tap::stop);
    let (a, b) = (a.stop(), b.stop());

    // Printed when the test fails.
    for port in a.ports.iter().chain(&b.ports) {
        println!("{}: {:?}", port.name, port.flow.priorities[3]);
    }

    // The hosts' view.
    assert!(
        receiver.lossy.paused > 0,
        "the other priority: {receiver:?}"
    );
    assert_eq!(receiver.lossless.paused, 0, "{receiver:?}");
    let said = format!("{receiver:?} {sender:?}");
    assert_eq!(receiver.lossless.got, sender.sent[0], "{said}");
    assert_eq!(receiver.lossless.disorder, 0, "{said}");
    // A veth loses frames on a busy machine, so these are not compared; that the switches drop none is checked below.
    assert!(receiver.lossy.got > 0, "{said}");
    assert!(sender.xoffs >= 1 && sender.xons >= 1, "{sender:?}");
    assert!(
        sender.held_s > 0.0 && sender.resumed_at_s.is_some(),
        "{sender:?}"
    );

    // The wire's view.
    for (end, source) in [("near", A0), ("a1", B0)] {
        let path = lab.path(&format!("{end}.pcap"));
        let quanta = quanta(&path, source);
        assert_eq!(quanta.first(), Some(&0xffff), "{end}: {quanta:?}");
        assert_eq!(quanta.last(), Some(&0), "{end}: {quanta:?}");
        let xoffs = quanta.iter().filter(|quanta| **quanta > 0).count();
        assert_eq!(tshark_counts(&path, true), xoffs);
        assert_eq!(tshark_counts(&path, false), quanta.len() - xoffs);
    }
    // The far host's own frames do not bypass its tap.
    let own = capture::mac(FAR).unwrap();
    for end in ["b0", "far"] {
        let arrived = capture::read(&lab.path(&format!("{end}.pcap"))).unwrap();
        let handed_on = arrived.iter().filter(|frame| frame.frame[6..12] != own);
        assert_eq!(handed_on.count(), 0, "{end}");
    }

    both_were_paused_and_lost_nothing(&a, &b);
}

/// Checks the switches' view: both were paused and lost nothing.
fn both_were_paused_and_lost_nothing(a: &Snapshot, b: &Snapshot) {
    for (name, snapshot) in [("a", a), ("b", b)] {
        let (heard, signalled) = (&snapshot.ports[1], &snapshot.ports[0]);
        assert!(snapshot.ports.iter().all(|port| port.lossless_lost == 0));
        assert!(
            snapshot
                .ports
                .iter()
                .all(|port| port.drops.iter().all(|count| *count == 0))
        );
        let (heard, signalled) = (&heard.flow.priorities[3], &signalled.flow.priorities[3]);
        assert!(heard.rx_pauses >= 1 && signalled.tx_pauses >= 1, "{name}");
        assert!(
            heard.rx_paused_ns > 0 && signalled.tx_paused_ns > 0,
            "{name}: {heard:?} {signalled:?}"
        );
        for port in &snapshot.ports {
            assert!(port.flow.paused == 0 && port.flow.asserted == 0);
            assert_eq!(port.flow.invalid, 0);
            assert_eq!(
                (port.flow.backend.as_str(), port.flow.self_test.as_str()),
                ("software", "sent")
            );
        }
    }
}

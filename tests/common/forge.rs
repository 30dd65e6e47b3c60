//! A switch between two veth pairs (`net_af_packet`), with hosts that send frames with valid ICRCs from raw sockets and report the CNPs that
//! arrive at the senders' side. Needs root.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::Stdio;

use npcc_pipeline::craft::Craft;
use npcc_pipeline::icrc::icrc;
use npcc_pipeline::parse::L3;
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;
use npcc_testkit::capture::Captured;
use npcc_testkit::cnps;

use super::net::{Net, peer, run};
use super::{Lab, assert_success};

/// Address of the host behind the near port; [`B`] is the one behind the far port.
pub const A: [u8; 4] = [10, 0, 1, 3];
pub const B: [u8; 4] = [10, 0, 2, 2];
/// Queue pair of the sender of a connection; [`RECEIVER`] is the other one.
pub const SENDER: u32 = 0x18;
pub const RECEIVER: u32 = 0x11;
/// Queue pair of [`A`] that has no part in the connection.
pub const BYSTANDER: u32 = 0x999;

pub const WRITE_ONLY: u8 = 0x0a;
pub const ACKNOWLEDGE: u8 = 0x11;
pub const UD_SEND: u8 = 0x64;

/// Creates the links: the switch's ends `dc` and `wan`, and the hosts' ends in one namespace.
pub fn net() -> Net {
    links(&["dc", "wan"])
}

/// Creates links with these ends of switches; the hosts' ends, named with an `h` before, are in one namespace, `hosts`.
pub fn links(ends: &'static [&'static str]) -> Net {
    let net = Net::of(&["hosts"], ends);
    let space = net.space("hosts");
    for (place, side) in (1_u32..).zip(ends) {
        let (inside, outside) = (net.link(&format!("h{side}")), net.link(side));
        // net_af_packet joins the fanout group `process id ^ interface index`, 16 bits. Two switches whose processes and interfaces have
        // neighbouring numbers would meet in one, so each interface has upper bits of its own.
        let index = place << 13 | std::process::id() & 0x1fff;
        run(&format!(
            "ip link add {outside} index {index} type veth peer name {inside} netns {space}"
        ));
        // Keep the host kernel's own IPv6 traffic off the link; the switch sees to its end.
        run(&format!(
            "ip netns exec {space} sysctl -qw net.ipv6.conf.{inside}.disable_ipv6=1"
        ));
        run(&format!("ip link set {outside} up"));
        run(&format!("ip -n {space} link set {inside} up"));
    }
    net
}

/// Creates a lab with the switch's configuration; `cnp` are settings of `npcc.cnp`.
pub fn lab(net: &Net, cnp: &str) -> Lab {
    let npcc = format!("{{ shallow: 20KB, deep: 100KB, gate: off, cnp: {{ {cnp} }} }}");
    Lab::with(&config(net, ["dc", "wan"], &npcc))
}

/// Returns the configuration of a switch with these ends of links, near and far; `npcc` is the value of that key.
pub fn config(net: &Net, [near, far]: [&str; 2], npcc: &str) -> String {
    let device = |index: u8, end: &str| {
        let link = net.link(end);
        format!("net_af_packet{index},iface={link},blocksz=65536,framesz=2048,framecnt=1024")
    };
    format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"{}\", mac: \"02:00:00:00:01:01\", mtu: 1500, addresses: [10.0.1.1/24] }}
  - {{ name: wan0, device: \"{}\", mac: \"02:00:00:00:02:01\", mtu: 1500, speed: 10M, addresses: [10.0.2.1/24],
       npcc: {{ queues: [3] }} }}
neighbors:
  - {{ address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: 10.0.2.2, port: wan0, mac: \"02:00:00:00:02:02\" }}
qos: {{ profile: roce-semi-lossless }}
buffer: {{ pool: 32MB }}
npcc: {npcc}
",
        device(0, near),
        device(1, far)
    )
}

/// Frames the hosts send, in order.
#[derive(Default)]
pub struct Script(String);

impl Script {
    /// Adds a packet sent through a given port, whatever its source address.
    pub fn packet_by(&mut self, side: &str, packet: &Packet) {
        self.frame_by(side, &packet.frame(side == "near"));
    }

    pub fn frame_by(&mut self, side: &str, frame: &[u8]) {
        write!(self.0, "{side} ").unwrap();
        for octet in frame {
            write!(self.0, "{octet:02x}").unwrap();
        }
        self.0.push('\n');
    }

    pub fn wait(&mut self, millis: u32) {
        writeln!(self.0, "wait {millis}").unwrap();
    }

    /// Adds a packet sent through the port that its source is behind.
    pub fn packet(&mut self, packet: &Packet) {
        self.packet_by(if packet.from == A { "near" } else { "far" }, packet);
    }

    /// Adds a connection's data and their acknowledgements for a while, more than the far port can take.
    pub fn congest(&mut self, (sender, receiver): (u32, u32)) {
        for psn in 0..600 {
            let data = Packet::data((sender, receiver), psn);
            self.packet(&data);
            if psn % 10 == 9 {
                self.packet(&data.answer(sender));
                self.wait(3);
            }
        }
        // Time for the queue to drain.
        self.wait(700);
    }

    /// Sends the script, and returns the queue pairs at the near side that were sent a CNP.
    pub fn play(self, net: &Net) -> BTreeSet<u32> {
        let mut peer = peer(&net.space("hosts"), "send_frames.py")
            .args([net.link("hdc"), net.link("hwan")])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut orders = peer.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            orders.write_all(self.0.as_bytes()).unwrap();
            orders.write_all(b"end\n").unwrap();
        });
        let output = peer.wait_with_output().unwrap();
        writer.join().unwrap();
        assert_success(&output);
        let text = String::from_utf8(output.stdout).unwrap();
        let frames: Vec<Captured> = text.lines().map(captured).collect();
        let signalled = cnps::find(&frames).filter(|cnp| cnp.src == IpAddr::from(B));
        signalled.map(|cnp| cnp.dest_qp).collect()
    }
}

fn captured(hex: &str) -> Captured {
    let octets = (0..hex.len()).step_by(2);
    Captured {
        time: 0,
        frame: octets
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect(),
    }
}

/// A RoCEv2 packet between the two hosts.
#[derive(Clone)]
pub struct Packet {
    pub from: [u8; 4],
    pub to: [u8; 4],
    pub port: u16,
    pub opcode: u8,
    pub qpn: u32,
    pub psn: u32,
    pub payload: Vec<u8>,
}

impl Packet {
    /// Returns data of a connection from A to B that requests an acknowledgement; the UDP port is Linux's hash.
    pub fn data((sender, receiver): (u32, u32), psn: u32) -> Packet {
        Packet {
            from: A,
            to: B,
            port: port_of(Qpn::new(sender), Qpn::new(receiver)),
            opcode: WRITE_ONLY,
            qpn: receiver,
            psn,
            payload: vec![0; 16 + 1_024],
        }
    }

    /// Returns the acknowledgement of the packet, to this queue pair.
    pub fn answer(&self, sender: u32) -> Packet {
        Packet {
            from: self.to,
            to: self.from,
            opcode: ACKNOWLEDGE,
            qpn: sender,
            payload: vec![0, 0, 0, 1],
            ..self.clone()
        }
    }

    /// Returns a datagram to a queue pair with a given source queue pair.
    pub fn datagram(from: [u8; 4], to: [u8; 4], qpn: u32, source: u32) -> Packet {
        let mut payload = vec![0; 8 + 64];
        payload[4..8].copy_from_slice(&source.to_be_bytes());
        Packet {
            from,
            to,
            port: 50_000,
            opcode: UD_SEND,
            qpn,
            psn: 0,
            payload,
        }
    }

    /// Returns a message of the connection manager.
    pub fn management(
        from: [u8; 4],
        to: [u8; 4],
        attribute: u8,
        fields: &[(usize, u32)],
    ) -> Packet {
        let mut packet = Packet::datagram(from, to, 1, 1);
        let mut mad = vec![0; 264];
        mad[..12].copy_from_slice(&[0x80, 1, 0, 0, 0, 0, 0, 1, 1, 7, 2, 3]);
        mad[25] = attribute;
        for (offset, value) in fields {
            mad[32 + offset..36 + offset].copy_from_slice(&value.to_be_bytes());
        }
        packet.payload = mad;
        packet
    }

    /// Returns the packet as a frame addressed to the near or the far port.
    pub fn frame(&self, near: bool) -> Vec<u8> {
        let mut craft = Craft::roce(self.from.into(), self.to.into(), self.opcode, self.qpn, 0);
        let macs = |side: u8, host: u8| ([2, 0, 0, 0, side, 1], [2, 0, 0, 0, side, host]);
        let (switch, host) = if near { macs(1, 3) } else { macs(2, 2) };
        (craft.dst_mac.0, craft.src_mac.0) = (switch, host);
        craft.src_port = self.port;
        craft.payload.clone_from(&self.payload);
        let bth = craft.bth.as_mut().unwrap();
        (bth.psn, bth.ack_req) = (self.psn, true);
        let mut frame = craft.frame();
        let end = frame.len() - 4;
        let crc = icrc(L3::V4, 20, &frame[14..end]).unwrap();
        frame[end..].copy_from_slice(&crc);
        frame
    }
}

/// Returns REQ and REP of a connection; `id` is the requester's communication ID.
pub fn connect(id: u32, sender: u32, receiver: u32) -> [Packet; 2] {
    // With a flow label, as rdma_cm sets it: the UDP port does not identify the queue pairs.
    let req = [(0, id), (32, sender << 8), (88, 0x1234_5000)];
    let rep = [(0, id + 100), (4, id), (12, receiver << 8)];
    [
        Packet::management(A, B, 0x10, &req),
        Packet::management(B, A, 0x13, &rep),
    ]
}

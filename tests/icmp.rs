//! ICMP errors of a switch with Linux integrated: bytes read by scapy, and kernels that obey them.

use std::process::Command;

use crate::common::net::{self as netns, Space, two_hosts};
use crate::common::switch::Switch;
use crate::common::{Lab, alone, assert_success, python, root};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;
use npcc_testkit::capture::{self, Captured};
use serde_json::{Value, json};

const DC_MAC: Mac = Mac([2, 0, 0, 0, 1, 1]);

/// Returns the ICMP errors that scapy finds in a capture.
fn errors(lab: &Lab, name: &str) -> Vec<Value> {
    let script = root().join("tests/oracle/verify_icmp.py");
    let read = Command::new(python())
        .arg(script)
        .arg(lab.path(name))
        .output();
    let read = read.unwrap();
    assert_success(&read);
    serde_json::from_slice(&read.stdout).unwrap()
}

/// Returns source, destination, type, code and MTU of an error, and asserts that the rest is correct.
fn gist(error: &Value) -> Value {
    assert_eq!(error["sums_ok"], true, "{error}");
    assert_eq!(error["ttl"], 64, "{error}");
    assert_eq!(error["eth_src"], "02:00:00:00:01:01", "{error}");
    assert_eq!(error["eth_dst"], "02:00:00:00:01:03", "{error}");
    assert_eq!(error["dst"], error["about"][0], "{error}");
    json!([
        error["src"],
        error["dst"],
        error["type"],
        error["code"],
        error["mtu"]
    ])
}

/// Configuration with a port on captures, and one whose link has a smaller MTU.
const CAPTURES: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: \"net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap\", mac: \"02:00:00:00:01:01\", mtu: 4200,
      addresses: [10.0.1.1/24, \"2001:db8:1::1/64\"], vlans: [ { id: 100, addresses: [10.0.100.1/24] } ] }
  - { name: wan0, device: \"net_null0,no-rx=1\", mtu: 1500, addresses: [10.0.2.1/24, \"2001:db8:2::1/64\"] }
neighbors:
  - { address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }
  - { address: \"2001:db8:1::3\", port: dc0, mac: \"02:00:00:00:01:03\" }
  - { address: 10.0.100.3, port: dc0, mac: \"02:00:00:00:01:03\" }
  - { address: 10.0.2.2, port: wan0, mac: \"02:00:00:00:02:02\" }
  - { address: \"2001:db8:2::2\", port: wan0, mac: \"02:00:00:00:02:02\" }
qos: { profile: lossy }
buffer: { pool: 8MB }
linux: { integrate: true, netns: SPACE }
";

/// Returns the number of ICMP errors about unreachable ports that the kernel of a namespace has sent.
fn errors_of_linux(space: &Space) -> u64 {
    let text = space.says("cat /proc/net/snmp");
    let mut rows = text.lines().filter(|line| line.starts_with("Icmp: "));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let mut all = names.split(' ').zip(values.split(' '));
    let (_, count) = all.find(|(name, _)| *name == "OutDestUnreachs").unwrap();
    count.parse().unwrap()
}

/// Guards the way of frames between a device and Linux through a VLAN, and the octets of the switch's own errors, by another reader than that of
/// `pipeline/src/datapath/icmp_tests.rs`, which has the laws: who gets which error, and how much it quotes.
#[test]
fn errors_of_the_switch_and_of_linux_leave_by_the_vlan_of_the_packet() {
    let _alone = alone();
    let lab = Lab::new();
    let craft = |src: &str, dst: &str, ttl, len| Craft {
        dst_mac: DC_MAC,
        ttl,
        ..Craft::roce(src.parse().unwrap(), dst.parse().unwrap(), 0x0a, 0x11, len)
    };
    let tagged = |craft| Craft {
        tags: vec![100],
        ..craft
    };
    let (four, six, in_vlan) = ("10.0.1.3", "2001:db8:1::3", "10.0.100.3");
    let frames = [
        craft(four, "10.0.2.2", 64, 3000),
        craft(six, "2001:db8:2::2", 1, 2000),
        tagged(craft(in_vlan, "10.0.2.2", 1, 64)),
        // For the switch itself.
        craft(four, "10.0.1.1", 64, 64),
        tagged(craft(in_vlan, "10.0.100.1", 64, 64)),
    ];
    let frames = frames.map(|craft| Captured {
        time: 0,
        frame: craft.frame(),
    });
    capture::write(&lab.path("in.pcap"), frames.iter(), 1).unwrap();
    let space = Space::of("icmp");
    lab.config(&CAPTURES.replace("SPACE", &space.0));
    let snapshot = lab.run_until("each frame has its answer", |switch| {
        let drops = &switch.snapshot().ports[0].drops;
        let of = |reason: &str| drops.named(reason).copied().unwrap_or(0);
        ["ttl_expired", "mtu_exceeded"].map(of) == [2, 1] && errors_of_linux(&space) >= 2 && {
            // The kernel's answers are on their way to the port.
            switch.turn("linux thread", 50);
            switch.snapshot().conservation.held.packets == 0
        }
    });
    let signalled = errors(&lab, "out.pcap");
    let gists: Vec<Value> = signalled.iter().map(gist).collect();
    let all = json!([
        ["10.0.1.1", four, 3, 4, 1500],
        ["2001:db8:1::1", six, 3, 0, 0],
        ["10.0.100.1", in_vlan, 11, 0, 0],
        // From Linux itself: no process listens there.
        ["10.0.1.1", four, 3, 3, 0],
        ["10.0.100.1", in_vlan, 3, 3, 0],
    ]);
    assert_eq!(json!(gists), all);
    let vlans: Vec<&Value> = signalled.iter().map(|error| &error["vlan"]).collect();
    assert_eq!([vlans[2], vlans[4]], [&json!(100); 2], "{vlans:?}");
    assert_eq!(snapshot.conservation.punted.packets, 2);
}

/// Script of traceroute and path MTU discovery through the kernel, which believes only a sound ICMP error about a packet of its own.
const HOST: &str = "
import errno, socket, sys, time
IP_RECVERR, IPV6_RECVERR, IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, DO, IP_MTU, IPV6_MTU = 11, 25, 10, 23, 2, 14, 24
FAMILIES = ((socket.AF_INET, '10.0.2.3', '10.0.1.1', '192.0.2.1', socket.IPPROTO_IP, socket.IP_TTL, IP_RECVERR, (11, 0), (3, 0)),
    (socket.AF_INET6, '2001:db8:2::3', '2001:db8:1::1', '2001:db8:77::1', socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, IPV6_RECVERR, (3, 0), (1, 0)))

def error(family, level, option, recverr, ttl, address):
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.setsockopt(level, recverr, 1)
        s.setsockopt(level, option, ttl)
        s.connect((address, 33434))
        s.send(b'where are you?')
        # The switch may still be starting.
        time.sleep(0.1)
        try:
            _, extra, _, _ = s.recvmsg(2000, 2000, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
        data = extra[0][2]
        # struct sock_extended_err, and the address of its sender.
        kind, code = data[5], data[6]
        error = data[16:]
        who = socket.inet_ntop(family, error[4:8] if family == socket.AF_INET else error[8:24])
        return who, (kind, code)
    sys.exit(f'no ICMP error about {address} with TTL {ttl}')

for family, host, gateway, nowhere, level, ttl, recverr, exceeded, unreachable in FAMILIES:
    hop = error(family, level, ttl, recverr, 1, host)
    assert hop == (gateway, exceeded), hop
    no = error(family, level, ttl, recverr, 64, nowhere)
    assert no == (gateway, unreachable), no
for family, address, level, discover, mtu in ((socket.AF_INET, '10.0.2.3', socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_MTU),
        (socket.AF_INET6, '2001:db8:2::3', socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_MTU)):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(level, discover, DO)
    s.connect((address, 9))
    assert s.getsockopt(level, mtu) == 9000
    for _ in range(400):
        try:
            s.send(bytes(8000))
        except OSError as no:
            assert no.errno == errno.EMSGSIZE, no
        time.sleep(0.1)
        if s.getsockopt(level, mtu) == 1500:
            break
    assert s.getsockopt(level, mtu) == 1500, s.getsockopt(level, mtu)
print('told')
";

#[test]
fn traceroute_and_path_mtu_discovery_work_through_the_switch() {
    let _alone = alone();
    let net = two_hosts(9000, [3, 3]);
    let space = Space::of("trace");
    let lab = Lab::with(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"{}\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24, \"2001:db8:1::1/64\"] }}
  - {{ name: wan0, device: \"{}\", mac: \"02:00:00:00:02:01\", mtu: 1500, addresses: [10.0.2.1/24, \"2001:db8:2::1/64\"] }}
neighbors:
  - {{ address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: \"2001:db8:1::3\", port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: 10.0.2.3, port: wan0, mac: \"02:00:00:00:02:03\" }}
  - {{ address: \"2001:db8:2::3\", port: wan0, mac: \"02:00:00:00:02:03\" }}
qos: {{ profile: lossy }}
buffer: {{ pool: 8MB }}
linux: {{ integrate: true, netns: {} }}
",
        net.jumbo_device(0, "dc"),
        net.jumbo_device(1, "wan"),
        space.0
    ));
    let mut switch = Switch::start(lab);
    let host = netns::python(&net.space("dc"), HOST).output().unwrap();
    let text = switch.done(&["show", "punt"]);
    switch.stop();
    assert_success(&host);
    assert!(text.contains("icmp_errors"), "{text}");
    let text = std::fs::read_to_string(switch.path("stats.json")).unwrap();
    let stats: Value = serde_json::from_str(&text).unwrap();
    let count = |name: &str| stats["punt"]["workers"][name].as_u64().unwrap();
    assert!(
        count("time_exceeded") >= 2 && count("unreachable") >= 2 && count("too_big") >= 2,
        "{text}"
    );
}

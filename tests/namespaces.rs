//! Kernel hosts on both sides: two network namespaces, veth pairs, `net_af_packet` ports. UDP of every size up to jumbo goes
//! through the switch and back, IPv4 and IPv6, and a TTL the kernel set arrives one lower.
//!
//! Needs root. Touches nothing but namespaces and links of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by panicking"
)]

mod common;

use std::process::{Command, Stdio};

use common::{Lab, alone, assert_success};

/// Namespaces and links with names of this process; gone with it.
struct Net {
    id: u32,
}

impl Net {
    fn new() -> Net {
        let net = Net {
            id: std::process::id(),
        };
        for (side, subnet) in [("dc", 1), ("wan", 2)] {
            let (space, inside, outside) = (
                net.space(side),
                format!("h{side}{}", net.id),
                net.link(side),
            );
            let host = subnet + 1;
            for command in [
                format!("ip netns add {space}"),
                format!(
                    "ip link add {outside} mtu 9200 type veth peer name {inside} mtu 9100 address 02:00:00:00:0{subnet}:03 netns {space}"
                ),
                format!("ip link set {outside} up"),
                format!("ip -n {space} link set lo up"),
                format!("ip -n {space} link set {inside} up"),
                format!("ip -n {space} addr add 10.0.{subnet}.{host}/24 dev {inside}"),
                format!("ip -n {space} addr add 2001:db8:{subnet}::{host}/64 dev {inside} nodad"),
                format!(
                    "ip -n {space} neigh add 10.0.{subnet}.1 lladdr 02:00:00:00:0{subnet}:01 dev {inside}"
                ),
                format!(
                    "ip -n {space} neigh add 2001:db8:{subnet}::1 lladdr 02:00:00:00:0{subnet}:01 dev {inside}"
                ),
                format!("ip -n {space} route add default via 10.0.{subnet}.1"),
                format!("ip -n {space} -6 route add default via 2001:db8:{subnet}::1"),
                // The kernel leaves checksums to hardware that a veth does not have.
                format!("ip netns exec {space} ethtool -K {inside} tx off"),
            ] {
                run(&command);
            }
        }
        net
    }

    fn space(&self, side: &str) -> String {
        format!("npcc-{side}-{}", self.id)
    }

    fn link(&self, side: &str) -> String {
        format!("v{side}{}", self.id)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for side in ["dc", "wan"] {
            // Its veth goes with the namespace. One that was never made is no loss.
            let _ = Command::new("ip")
                .args(["netns", "del", &self.space(side)])
                .stderr(Stdio::null())
                .status();
        }
    }
}

fn run(command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(
        output.status.success(),
        "{command} (needs root): {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Echoes datagrams and says with which TTL each came.
const ECHO: &str = "
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
IP_RECVTTL = 12
s.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
s.bind(('::', 9999))
while True:
    data, extra, _, peer = s.recvmsg(65536, 256)
    ttl = int.from_bytes(extra[0][2][:4], 'little') if extra else 0
    s.sendto(bytes([ttl]) + data[1:], peer)
";

/// Sends datagrams of many sizes, each until it comes back (the switch may still be starting); the first octet is the TTL.
const CLIENT: &str = "
import socket, sys
for family, address in ((socket.AF_INET, '10.0.2.3'), (socket.AF_INET6, '2001:db8:2::3')):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(0.2)
    for size in (1, 18, 100, 1024, 1472, 4096, 8900):
        data = bytes(i % 251 for i in range(size))
        for attempt in range(50):
            s.sendto(data, (address, 9999))
            try:
                back = s.recv(65536)
            except TimeoutError:
                continue
            break
        else:
            sys.exit(f'{address}: {size} bytes never came back')
        if back[0] != 63 or back[1:] != data[1:]:
            sys.exit(f'{address}: {size} bytes came back as {len(back)}, TTL {back[0]}')
print('all came back')
";

#[test]
fn kernel_hosts_talk_through_the_switch() {
    let _alone = alone();
    let net = Net::new();
    let lab = Lab::new();
    let device = |index: u8, side: &str| {
        format!(
            "net_af_packet{index},iface={},blocksz=73728,framesz=9216,framecnt=512",
            net.link(side)
        )
    };
    lab.config(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"{}\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24, \"2001:db8:1::1/64\"] }}
  - {{ name: wan0, device: \"{}\", mac: \"02:00:00:00:02:01\", addresses: [10.0.2.1/24, \"2001:db8:2::1/64\"] }}
neighbors:
  - {{ address: 10.0.1.2, port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: \"2001:db8:1::2\", port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: 10.0.2.3, port: wan0, mac: \"02:00:00:00:02:03\" }}
  - {{ address: \"2001:db8:2::3\", port: wan0, mac: \"02:00:00:00:02:03\" }}
qos: {{ profile: lossy }}
buffer: {{ pool: 8MB }}
",
        device(0, "dc"),
        device(1, "wan")
    ));
    let switch = lab.start(&["--stats-json", "stats.json"]);
    let python = |space: &str, code: &str| {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", space, "/usr/bin/python3", "-c", code])
            .stdin(Stdio::null());
        command
    };
    let mut echo = python(&net.space("wan"), ECHO).spawn().unwrap();
    let client = python(&net.space("dc"), CLIENT).output().unwrap();
    echo.kill().unwrap();
    echo.wait().unwrap();
    run(&format!("kill -TERM {}", switch.id()));
    let switch = switch.wait_with_output().unwrap();
    assert_success(&switch);
    assert_success(&client);
    let text = std::fs::read_to_string(lab.path("stats.json")).unwrap();
    let snapshot: npcc_switch::report::model::Snapshot = serde_json::from_str(&text).unwrap();
    assert!(snapshot.conservation.holds(), "{:?}", snapshot.conservation);
}

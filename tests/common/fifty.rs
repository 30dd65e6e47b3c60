//! Fifty frames through a switch between two veth pairs, whose other ends are in the same network namespace.

use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;

use super::net::{python, run};
use super::{Lab, assert_success};

/// Configuration of a switch on the veth pairs of [`lab`].
pub const CONFIG: &str = "version: 1
ports:
  - { name: dc0, device: 'net_af_packet0,iface=dc0', mac: '02:00:00:00:01:01', mtu: 1500, addresses: [10.0.1.1/24], speed: 10G }
  - { name: wan0, device: 'net_af_packet1,iface=wan0', mac: '02:00:00:00:01:02', mtu: 1500, addresses: [10.0.2.1/24], speed: 10G }
neighbors:
  - { address: 10.0.2.3, port: wan0, mac: '02:00:00:00:02:03' }
cores: { idle: adaptive }
qos: { profile: lossy }
dpdk: { eal_args: [--in-memory, --no-pci], link_wait: 2s }
buffer: { pool: 16MB }
";

/// Script that sends 50 frames into one interface, and prints how many come out of another before so many seconds after the last.
const FIFTY: &str = "
import socket, sys, time
into, out, frame, patience = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]), float(sys.argv[4])
ends = []
for name in (into, out):
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    end.bind((name, 0))
    ends.append(end)
for _ in range(50):
    ends[0].send(frame)
    time.sleep(0.001)
came, deadline = 0, time.monotonic() + patience
while (left := deadline - time.monotonic()) > 0 and came < 50:
    ends[1].settimeout(left)
    try:
        data, address = ends[1].recvfrom(2048)
    except TimeoutError:
        break
    came += address[2] != socket.PACKET_OUTGOING and data[14:] == frame[14:22] + bytes([frame[22] - 1]) + data[23:26] + frame[26:]
print(came)
";

/// Creates the lab of a switch in this namespace: `dc0` with `hdc` as the other end, and `wan0` with `hwan`.
pub fn lab(space: &str) -> Lab {
    // The kernel's own frames would be counted as ours.
    run(&format!(
        "ip netns exec {space} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
    ));
    for (port, host) in [("dc0", "hdc"), ("wan0", "hwan")] {
        run(&format!(
            "ip -n {space} link add {port} type veth peer name {host}"
        ));
        for end in [port, host] {
            run(&format!("ip -n {space} link set {end} up"));
        }
    }
    Lab::inside(space.to_owned())
}

/// Sends 50 frames into `hdc`; returns the number that come out of `hwan`, routed, waiting as long as a busy machine takes for all of them.
pub fn passed(space: &str) -> u32 {
    passed_within(space, "20")
}

/// Sends 50 frames as [`passed`] does; returns the number that come out in so many seconds.
pub fn passed_within(space: &str, seconds: &str) -> u32 {
    let craft = Craft {
        dst_mac: Mac([2, 0, 0, 0, 1, 1]),
        tos: 26 << 2 | 2,
        ..Craft::roce(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.3".parse().unwrap(),
            0x0a,
            0x11,
            64,
        )
    };
    let frame = craft.frame();
    let hex: String = frame.iter().map(|octet| format!("{octet:02x}")).collect();
    let output = python(space, FIFTY)
        .args(["hdc", "hwan", &hex, seconds])
        .output();
    let output = output.unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().parse().unwrap()
}

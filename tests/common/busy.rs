//! A switch with a congested queue, CNPs, and a pause storm, so that every table of `show` has content.

use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;
use npcc_pipeline::wire::mac_control;
use npcc_testkit::capture::{self, Captured};

use super::Lab;

/// Configuration with data to a slow queue and answers to it; the far side pauses priority 4 without end.
pub const BUSY: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: \"net_pcap0,rx_pcap=in.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\", mtu: 1500, speed: 10G, pfc: send,
      addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_pcap1,rx_pcap=back.pcap,infinite_rx=1\", mac: \"02:00:00:00:02:01\", mtu: 1500, speed: 100M,
      pfc: honour, addresses: [10.0.12.1/24], npcc: { queues: [3], policy: npcc } }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
neighbors:
  - { address: 10.0.12.2, port: wan0, mac: \"02:00:00:00:02:02\" }
  - { address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }
qos: { trust: both, pcp_to_priority: { 3: 3 }, dscp_to_priority: { 26: 3, 34: 4 }, priorities: { 4: { lossless: true }, 0: { max_rate: 1G, wred: { min: 50KB, max: 100KB } }, 2: { min_rate: 1M } } }
buffer: { pool: 4MB }
pfc: { watchdog: { detect: 100ms, restore: 100ms, poll: 100ms } }
npcc: { tick: 2ms, recovery: 3ms, shallow: 20KB, deep: 100KB, gate: off, cnp: { cap: 0.1%, earned: 0B } }
";

/// Creates a lab with [`BUSY`] and its captures.
pub fn busy() -> Lab {
    let lab = Lab::with(BUSY);
    let roce = |src: &str, dst: &str, opcode, qpn, len| {
        Craft::roce(src.parse().unwrap(), dst.parse().unwrap(), opcode, qpn, len)
    };
    let captured = |frame| Captured { time: 0, frame };
    // Data, one frame without a route, and one for the queue that is paused.
    let forth = [("10.0.2.2", 0x11), ("10.0.2.2", 0x12), ("10.0.3.9", 0x21)];
    let forth = forth.map(|(dst, qpn)| roce("10.0.1.3", dst, 0x0a, qpn, 1024));
    let held = Craft {
        tos: 34 << 2,
        ..forth[0].clone()
    };
    let forth = forth.iter().chain([&held]);
    let forth: Vec<Captured> = forth.map(|craft| captured(craft.frame())).collect();
    capture::write(&lab.path("in.pcap"), forth.iter(), 1).unwrap();
    let ack = Craft {
        dst_mac: Mac([2, 0, 0, 0, 2, 1]),
        ..roce("10.0.2.2", "10.0.1.3", 0x11, 0x31, 4)
    };
    let far = Mac([2, 0, 0, 0, 2, 2]);
    let pause = mac_control::build(far, 1 << 4, [u16::MAX; 8]).to_vec();
    let back = [captured(ack.frame()), captured(pause)];
    capture::write(&lab.path("back.pcap"), back.iter(), 1).unwrap();
    lab
}

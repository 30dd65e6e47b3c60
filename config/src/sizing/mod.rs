//! Memory requirements of a configuration, computed before anything is started.
//!
//! Decision: one packet buffer (mbuf) holds one whole frame. Multi-segment frames would save memory
//! for small frames, but every stage that rewrites or reads headers would have to expect a seam, and
//! `net_pcap` in its infinite mode takes single segments only.
//!
//! The packet memory is exact arithmetic on what DPDK allocates; tables and queues are estimates,
//! rounded up, of structures that live elsewhere.

mod headroom;
mod lossless;
mod table;

pub use headroom::{
    FRAME_OVERHEAD, Headroom, Link, RX_BURST, SpeedFrom, bytes as headroom_bytes, link_speed,
    receivers, sends_pause,
};
pub use lossless::{ControlSizing, GroupRoom, Lossless};

use crate::model::MbufSize;
use crate::resolved::{Config, Device, Port};

/// Bytes that DPDK leaves free before a frame (`RTE_PKTMBUF_HEADROOM`).
pub const MBUF_HEADROOM: u64 = 128;
/// Ethernet header and two VLAN tags: what a frame has beyond its IP packet in a buffer.
pub const LINK_HEADERS: u64 = 14 + 8;
/// Bytes of `struct rte_mbuf`.
pub const MBUF_STRUCT: u64 = 128;
/// Bytes of a mempool object's header with padding.
pub const MEMPOOL_HEADER: u64 = 64;
/// Bytes of `objects` objects of which none crosses an ordinary page, unless one is larger than a page.
fn in_pages(objects: u64, object: u64) -> u64 {
    match PAGE / object.max(1) {
        0 => objects.saturating_mul(object),
        each => objects.div_ceil(each).saturating_mul(PAGE),
    }
}

/// Minimum number of descriptors of a port's receive ring, and size of its transmit ring.
pub const RING: u16 = 1024;
/// Largest receive ring that is chosen by default; NICs have 4,096 or 8,192 at most.
const LARGEST_RING: u16 = 4096;
/// Bytes of preamble, inter-frame gap and FCS.
const WIRE: u64 = 24;
/// Number of packet buffers that a core keeps in its mempool cache.
pub const MEMPOOL_CACHE: u64 = 512;
/// Maximum number of frames that a worker processes at a time.
pub const BURST: u64 = 64;
/// Memory that DPDK takes besides the packet buffers: rings, drivers' queues, its own.
pub const EAL_MARGIN: u64 = 64 << 20;

/// Memory of the queues for each packet buffer: eight bytes of pointer and eight of bookkeeping.
const QUEUE_SLOT: u64 = 16;
/// Memory of one flow, at most: its entry and index slots, the ends of both directions, a peer's end, and its share of a worker's cache. It is
/// the difference in `VmSize` between switches with 65,536 and 1,048,576 flows.
const FLOW_ENTRY: u64 = 2_700;
/// Memory of one flow in each further worker's cache.
const CACHE_ENTRY: u64 = 144;
/// Memory of one route in the RIB and in both images of the lookup structure.
const ROUTE_ENTRY: u64 = 256;
/// First-level tables of both images, IPv4 and IPv6: 2^24 entries of four bytes each. Pages that no route touches cost nothing.
const FIB_BASE: u64 = 2 * 2 * (4 << 24);
/// Bytes of a hugepage of the usual size.
pub const HUGEPAGE: u64 = 2 << 20;
/// Bytes of an ordinary page.
const PAGE: u64 = 4 << 10;

/// Memory requirements of a configuration; in bytes unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizing {
    /// Data room of one packet buffer, headroom included.
    pub mbuf_data_room: u64,
    /// Number of packet buffers.
    pub mbufs: u64,
    /// Packet memory.
    pub mempool_bytes: u64,
    /// Packet memory in ordinary pages (`--no-huge`), where DPDK lets no buffer cross a page that fits into one (`rte_mempool_op_populate_helper`).
    pub mempool_bytes_ordinary: u64,
    /// Memory of the queues of all ports.
    pub queue_bytes: u64,
    /// Memory of the routing tables.
    pub fib_bytes: u64,
    /// Memory of the flow table.
    pub flow_bytes: u64,
    /// Number of NUMA nodes with packet memory.
    pub nodes: u64,
    /// Headroom of each lossless priority of each port.
    pub headroom: Vec<Headroom>,
    /// Division of the buffer pool.
    pub lossless: Lossless,
}

impl Sizing {
    /// Computes the memory that `config` needs.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let mbuf_data_room = data_room(config);
        let rings = config
            .ports
            .iter()
            .map(|port| u64::from(ring(config, port)));
        let rings = rings.fold(0, u64::saturating_add);
        let frame = u64::from(config.buffer.lossless_min_frame.get()).max(1);
        let workers = u64::try_from(config.cores.workers.len()).unwrap_or(u64::MAX);
        let mbufs = config
            .buffer
            .pool
            .0
            .div_ceil(frame)
            .saturating_add(
                ControlSizing::of(
                    config.buffer.pool.0,
                    config.ports.len(),
                    config.linux.integrate,
                )
                .buffers(config.ports.len()),
            )
            // A device may spread what it receives over a queue for each worker; it sends by one.
            .saturating_add(rings.saturating_mul(workers + 1))
            // The thread that opens the ports has a cache, too: it sends the pause frames of the self-test.
            .saturating_add((workers + 1).saturating_mul(MEMPOOL_CACHE + BURST))
            // Each further worker may fill a burst into room that another has just taken, as may its CNPs.
            .saturating_add(workers.saturating_sub(1).saturating_mul(BURST))
            .div_ceil(1024)
            .saturating_mul(1024);
        let object = mbuf_data_room + MBUF_STRUCT + MEMPOOL_HEADER;
        let mempool_bytes = mbufs.saturating_mul(object);
        let routing = &config.routing;
        let routes = routing.ipv4_routes.0.saturating_add(routing.ipv6_routes.0);
        let flows = config.npcc.flows.0;
        Self {
            mbuf_data_room,
            mbufs,
            mempool_bytes,
            mempool_bytes_ordinary: in_pages(mbufs, object),
            queue_bytes: mbufs.saturating_mul(QUEUE_SLOT),
            fib_bytes: routes.saturating_mul(ROUTE_ENTRY).saturating_add(FIB_BASE),
            flow_bytes: flows
                .saturating_mul(FLOW_ENTRY + workers.saturating_sub(1).saturating_mul(CACHE_ENTRY)),
            nodes: 1,
            headroom: headroom::table(config),
            lossless: Lossless::of(config),
        }
    }

    /// Sets the number of NUMA nodes on which the ports' devices are, each of which has packet memory; 0 counts as one.
    #[must_use]
    pub fn on_nodes(mut self, nodes: usize) -> Self {
        self.nodes = u64::try_from(nodes).unwrap_or(u64::MAX).max(1);
        self
    }

    /// Returns the bytes of hugepages that a start needs: packet memory on each node, and what DPDK takes besides.
    #[must_use]
    pub fn hugepage_bytes(&self) -> u64 {
        let packets = self.mempool_bytes.saturating_mul(self.nodes);
        packets.saturating_add(EAL_MARGIN)
    }

    /// Returns [`hugepage_bytes`](Self::hugepage_bytes) as a number of pages of 2 MiB.
    #[must_use]
    pub fn hugepages(&self) -> u64 {
        self.hugepage_bytes().div_ceil(HUGEPAGE)
    }

    /// Returns the bytes of queues and of full tables: all memory but that of packets.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        [self.queue_bytes, self.fib_bytes, self.flow_bytes]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Returns the bytes of ordinary pages that a start without hugepages needs for packets and DPDK.
    #[must_use]
    pub fn ordinary_bytes(&self) -> u64 {
        let packets = self.mempool_bytes_ordinary.saturating_mul(self.nodes);
        packets.saturating_add(EAL_MARGIN)
    }

    /// Returns the total of all memory.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.mempool_bytes.saturating_add(self.table_bytes())
    }
}

/// Number of descriptors of a port's receive ring: as configured, or what arrives while its worker is away for `buffer.loop_time`, in
/// frames of the lossless mean, twice over; at least [`RING`] (twice that for a PCI device) and at most 4,096. The pool has buffers for them.
#[must_use]
pub fn ring(config: &Config, port: &Port) -> u16 {
    if let Some(written) = port.rx_descriptors {
        return written;
    }
    let (speed, _) = link_speed(Some(&port.device), (port.link_speed, port.speed));
    let away = speed.bytes_in(config.buffer.loop_time);
    let frame = u64::from(config.buffer.lossless_min_frame.get()).max(1) + WIRE;
    let needed = (2 * away.div_ceil(frame)).next_power_of_two();
    let least = match port.device {
        // A NIC may prefer twice the usual.
        Device::Pci { .. } => 2 * RING,
        Device::Virtual { .. } => RING,
    };
    u16::try_from(needed).map_or(LARGEST_RING, |needed| needed.clamp(least, LARGEST_RING))
}

/// Smallest packet buffer that every PCI driver accepts: `min_rx_bufsize` of vmxnet3, the largest there is.
const LEAST_BUFFER: u64 = 1646;
/// Unit in which PCI drivers count the room for a frame, that of ixgbe. They ignore the rest of the room, and a longer frame comes in pieces.
/// DPDK's e1000 counts in powers of two; the receive queue joins its pieces.
pub const PCI_ROOM: u64 = 1024;
/// Smallest chunk of an AF_XDP socket (`XDP_UMEM_MIN_CHUNK_SIZE`): net_af_xdp makes one of each whole object of the pool.
const XDP_CHUNK: u64 = 2048;
/// FCS of a frame, for which some PCI drivers want room in the buffer.
const FCS: u64 = 4;

/// Returns the configured data room, or the smallest into which the largest frame of any port fits.
fn data_room(config: &Config) -> u64 {
    match config.buffer.mbuf {
        MbufSize::Bytes(bytes) => bytes.0,
        MbufSize::Auto => {
            // net_af_packet wants buffers that hold a whole ring frame, less the kernel's own header of 32 bytes.
            let rings = config
                .ports
                .iter()
                .filter_map(|port| port.device.ring_frame());
            let ring = rings
                .max()
                .map_or(0, |frame| MBUF_HEADROOM + frame.saturating_sub(32));
            let pci = config.ports.iter().any(|port| !port.device.is_virtual());
            let driver = if pci {
                MBUF_HEADROOM + pci_room(config.max_mtu()).max(LEAST_BUFFER)
            } else {
                0
            };
            let mut ids = config.ports.iter().map(|port| port.device.id());
            let xdp = if ids.any(|id| id.starts_with("net_af_xdp")) {
                XDP_CHUNK - MBUF_STRUCT - MEMPOOL_HEADER
            } else {
                0
            };
            let room = smallest_data_room(config.max_mtu()).max(ring.max(driver).max(xdp));
            if pci {
                MBUF_HEADROOM + (room - MBUF_HEADROOM).next_multiple_of(PCI_ROOM)
            } else {
                room.next_multiple_of(64)
            }
        }
    }
}

/// Returns the room for a frame, in bytes, with which every PCI driver receives IP packets of `mtu` bytes in one piece.
#[must_use]
pub fn pci_room(mtu: u16) -> u64 {
    (u64::from(mtu) + LINK_HEADERS + FCS).next_multiple_of(PCI_ROOM)
}

/// Returns the smallest data room, a multiple of 64, for frames with IP packets of `mtu` bytes.
#[must_use]
pub fn smallest_data_room(mtu: u16) -> u64 {
    (MBUF_HEADROOM + u64::from(mtu) + LINK_HEADERS).next_multiple_of(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        crate::parse("t", text).unwrap().config
    }

    /// vmxnet3 refuses smaller ones, which an MTU of 1500 would do with.
    /// Frames of 1,500 bytes from a device of 2 KiB buffers: 37,888 of 2,368 bytes had a page each, and 64 MiB beside them were too few.
    #[test]
    fn no_buffer_crosses_an_ordinary_page() {
        assert_eq!(in_pages(37_888, 2_176 + 192), 37_888 * 4_096);
        assert_eq!(in_pages(5, 2_048), 3 * 4_096);
        assert_eq!(in_pages(5, 1_365), 2 * 4_096);
        assert_eq!(in_pages(5, 4_096), 5 * 4_096);
        assert_eq!(in_pages(5, 4_097), 5 * 4_097);
    }

    #[test]
    fn buffers_of_a_pci_port_are_such_as_every_driver_takes() {
        let room = |device: &str| {
            let port = format!(
                "{{ name: p, device: \"{device}\", mtu: 1500, speed: 10G, addresses: [10.0.1.1/24] }}"
            );
            let text = format!("version: 1\nports: [ {port} ]\n");
            Sizing::of(&config(&text)).mbuf_data_room
        };
        assert_eq!(room("0000:01:00.0"), MBUF_HEADROOM + 2_048);
        assert_eq!(room("net_null0"), smallest_data_room(1500));
    }

    /// Earlier defect: 9,152 bytes became 8,192 with ixgbe and e1000 and 9,088 with i40e, ice and iavf, and longer frames came in pieces.
    #[test]
    fn a_pci_port_has_room_in_whole_units_for_frames_of_the_largest_mtu_of_all() {
        for mtu in 576..=9_198u16 {
            let room = pci_room(mtu);
            assert!(room >= u64::from(mtu) + 26 && room < u64::from(mtu) + 26 + 1_024);
            assert!(room.is_multiple_of(1_024));
        }
        let room = |first: &str, second: &str| {
            let port = |name: &str, device: &str, mtu: u16, net: u8| {
                format!(
                    "{{ name: {name}, device: \"{device}\", mtu: {mtu}, speed: 10G, addresses: [10.0.{net}.1/24] }}"
                )
            };
            let (a, b) = (port("a", first, 1_500, 1), port("b", second, 9_100, 2));
            Sizing::of(&config(&format!("version: 1\nports: [ {a}, {b} ]\n"))).mbuf_data_room
        };
        assert_eq!(room("0000:01:00.0", "net_null0"), MBUF_HEADROOM + 9_216);
        assert_eq!(room("0000:01:00.0", "0000:02:00.0"), MBUF_HEADROOM + 9_216);
        assert_eq!(room("net_null0", "net_null1"), smallest_data_room(9_100));
        let ring = "net_af_packet0,iface=veth0,framesz=16384,blocksz=65536";
        assert_eq!(room("0000:01:00.0", ring), MBUF_HEADROOM + 16_384);
    }

    /// With an MTU of 1,500 the kernel refused the packet memory of net_af_xdp: its buffers were shorter than an AF_XDP chunk.
    #[test]
    fn a_buffer_for_net_af_xdp_is_a_chunk_of_its_socket() {
        for (device, least) in [("net_af_xdp0,iface=a", XDP_CHUNK), ("net_null0", 0)] {
            let text = format!(
                "ports: [{{ name: a, device: \"{device}\", mtu: 1500 }}]\nqos: {{ profile: lossy }}\n"
            );
            let room = Sizing::of(&config(&text)).mbuf_data_room;
            let object = room + MBUF_STRUCT + MEMPOOL_HEADER;
            assert_eq!(object >= XDP_CHUNK, least > 0, "{device}: {room}");
        }
    }

    /// At 100G with 50 us away and frames of 1,024 bytes 597 frames arrive in an iteration: a ring holds two of them.
    #[test]
    fn a_ring_holds_two_iterations_and_never_fewer_than_its_device_prefers() {
        let descriptors = |device: &str, more: &str| {
            let port =
                format!("{{ name: p, device: \"{device}\", addresses: [10.0.1.1/24], {more} }}");
            let c = config(&format!("ports: [ {port} ]\nqos: {{ profile: lossy }}\n"));
            ring(&c, &c.ports[0])
        };
        assert_eq!(descriptors("net_null0", "speed: 10G"), RING);
        assert_eq!(descriptors("net_null0", "speed: 100G"), 2 * RING);
        assert_eq!(descriptors("net_null0", "speed: 400G"), LARGEST_RING);
        assert_eq!(descriptors("0000:01:00.0", "link_speed: 10G"), 2 * RING);
        assert_eq!(descriptors("0000:01:00.0", "rx_descriptors: 512"), 512);
    }

    #[test]
    fn one_buffer_holds_one_frame() {
        assert_eq!(smallest_data_room(9198), 9408);
        assert_eq!(smallest_data_room(1500), 1664);
        for mtu in 576..=9198u16 {
            let room = smallest_data_room(mtu);
            assert!(room >= 128 + u64::from(mtu) + 22 && room.is_multiple_of(64));
        }
    }

    #[test]
    fn counts_buffers() {
        let c = config(
            "ports: [{ name: a, device: net_null0, mtu: 1500 }, { name: b, device: net_null1, mtu: 9100 }]\n\
             buffer: { pool: 64MB, lossless_min_frame: 1024 }",
        );
        let sizing = Sizing::of(&c);
        // 62500 for the pool, 391 for control frames, 4096 in rings, 1152 in hand, rounded up to 1024.
        assert_eq!(sizing.mbufs, 68_608);
        assert_eq!(sizing.mbuf_data_room, 9280);
        assert_eq!(sizing.mempool_bytes, 68_608 * (9280 + 192));
        let pages = (sizing.mempool_bytes + EAL_MARGIN).div_ceil(2 << 20);
        assert_eq!(sizing.hugepages(), pages);
        let two = sizing.clone().on_nodes(2);
        assert_eq!(
            two.hugepage_bytes() - sizing.hugepage_bytes(),
            sizing.mempool_bytes
        );
        assert_eq!(sizing.mempool_bytes_ordinary, sizing.mempool_bytes);
        assert!(sizing.to_string().contains("68608"));
    }
}

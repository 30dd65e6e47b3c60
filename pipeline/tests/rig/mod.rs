//! Test rig: a switch with any number of ports, a route to each, simulated time, and a peer's view of pause.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "each test file uses its part of the rig, and stops at what it did not expect"
)]

#[path = "../../src/cases.rs"]
pub(crate) mod cases;
pub(crate) mod sender;
pub(crate) mod several;

use std::net::IpAddr;
use std::sync::Arc;

use npcc_pipeline::buffer::{BufferConfig, ControlReserve, GroupConfig, GroupId, PoolConfig};
use npcc_pipeline::capture::{self, CaptureStats};
use npcc_pipeline::classify::{Classifier, Trust};
use npcc_pipeline::counters::PortCounters;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::datapath::{Datapath, LosslessConfig, Outgoing, PortConfig, Sent};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::egress::port::{EcnConfig, EgressConfig, EgressQueueConfig};
use npcc_pipeline::frame::{FrameBuf, FrameVec, HeapFrame, Queued, wire_len};
use npcc_pipeline::pause::{PauseConfig, PfcFrame};
use npcc_pipeline::punt::FrameReceiver;
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::tap::NoTap;
use npcc_pipeline::units::{BitRate, Mac, Nanos, PortId, Priority, WorkerId};
use npcc_pipeline::wire::mac_control;

pub(crate) type Path = Datapath<HeapFrame, NoTap>;

pub(crate) const GIG: u64 = 1_000_000_000;
/// The two lossless priorities of SONiC's default configuration.
pub(crate) const LOSSLESS: u8 = 0b0001_1000;

pub(crate) fn prio(n: u8) -> Priority {
    Priority::new(n)
}

pub(crate) fn mac(port: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, port + 1])
}

/// Parameters that a test may set.
pub(crate) struct Setup {
    pub(crate) ports: u8,
    pub(crate) pool: u64,
    pub(crate) frames: u64,
    pub(crate) alpha_256: u32,
    pub(crate) min_frame: u16,
    pub(crate) group: GroupConfig,
    pub(crate) shared_headroom: Option<u64>,
    pub(crate) pause: PauseConfig,
    pub(crate) rate: Option<BitRate>,
    pub(crate) queues: [EgressQueueConfig; 8],
    /// Port whose peer is never paused.
    pub(crate) unpausable: Option<u8>,
    pub(crate) control: ControlReserve,
}

impl Default for Setup {
    fn default() -> Setup {
        let queues = std::array::from_fn(|n| EgressQueueConfig {
            lossless: LOSSLESS & 1 << n != 0,
            ..EgressQueueConfig::default()
        });
        Setup {
            ports: 3,
            pool: 1 << 20,
            frames: 1 << 16,
            alpha_256: 256,
            min_frame: 84,
            group: GroupConfig {
                lossless: true,
                reserved: 0,
                headroom: 50_000,
                xon: 0,
                xon_offset: 10_000,
            },
            shared_headroom: None,
            pause: PauseConfig {
                send: LOSSLESS,
                honour: LOSSLESS,
                rate: BitRate(10 * GIG),
                pressure: 0,
                watchdog: None,
            },
            rate: None,
            queues,
            unpausable: None,
            control: ControlReserve::default(),
        }
    }
}

impl Setup {
    pub(crate) fn pool(&self) -> PoolConfig {
        PoolConfig {
            bytes: self.pool,
            frames: self.frames,
            alpha_256: self.alpha_256,
        }
    }

    pub(crate) fn groups(&self) -> [GroupConfig; 8] {
        std::array::from_fn(|n| GroupConfig {
            lossless: self.group.lossless && LOSSLESS & 1 << n != 0,
            ..self.group
        })
    }

    pub(crate) fn buffer(&self, ports: usize) -> BufferConfig {
        BufferConfig {
            control: self.control,
            pool: self.pool(),
            min_frame: self.min_frame,
            shared_headroom: self.shared_headroom,
            groups: vec![self.groups(); ports],
        }
    }

    pub(crate) fn port(&self, id: u8) -> PortConfig {
        let mut classifier = Classifier::all(prio(0));
        classifier.trust = Trust::Dscp;
        for n in 0..8 {
            classifier.dscp[usize::from(n) * 8] = prio(n);
        }
        PortConfig {
            intake: IngressConfig {
                mac: mac(id),
                mtu: 9198,
                vlans: Box::new([]),
                classifier,
            },
            egress: EgressConfig {
                rate: self.rate,
                max_frame: 9220,
                max_absence: Nanos::ZERO,
                queues: self.queues.clone(),
            },
            ecn: EcnConfig::MARK,
        }
    }

    pub(crate) fn build(self) -> Rig {
        let (mut paths, routes) = self.paths(1);
        let mut path = paths.remove(0);
        path.refresh();
        Rig {
            path,
            routes,
            sent: Vec::new(),
        }
    }

    /// Returns a path for each of so many workers, and the writer of their routes.
    pub(crate) fn paths(&self, workers: usize) -> (Vec<Path>, RouteWriter) {
        let capacity = RouteCapacity {
            ipv4_routes: 64,
            ipv6_routes: 4,
            adjacencies: 64,
            groups: 64,
        };
        let (mut writer, mut readers) = RouteWriter::new(capacity, workers);
        for port in 0..self.ports {
            let adjacency = Adjacency {
                kind: Kind::Forward,
                port: PortId(port),
                vlan: 0,
                dst: Mac([2, 0, 0, 0, 9, port]),
                src: mac(port),
                mtu: 0,
            };
            let prefix = Prefix::new(IpAddr::from([10, 0, port, 0]), 24).unwrap();
            writer.insert(prefix, &[adjacency]).unwrap();
        }
        writer.commit();
        let ports: Vec<PortConfig> = (0..self.ports).map(|id| self.port(id)).collect();
        let count = ports.len();
        let mut pauses = vec![self.pause.clone(); count];
        if let Some(unpausable) = self.unpausable {
            pauses[usize::from(unpausable)].send = 0;
        }
        let lossless = LosslessConfig {
            buffer: self.buffer(count),
            ports: pauses,
        };
        let path = |fib| {
            Datapath::new(ports.clone(), self.pool(), fib, NoTap, 7).with_lossless(lossless.clone())
        };
        readers.truncate(workers);
        (readers.drain(..).map(path).collect(), writer)
    }
}

pub(crate) struct Rig {
    pub(crate) path: Path,
    pub(crate) routes: RouteWriter,
    /// PFC frames sent: port, time, priorities paused, priorities resumed.
    pub(crate) sent: Vec<(u8, u64, u8, u8)>,
}

/// Returns a RoCEv2 frame of `len` bytes from port to port.
pub(crate) fn frame(from: u8, to: u8, priority: u8, len: usize) -> Vec<u8> {
    frame_with(from, to, priority << 5 | 2, len)
}

/// Returns a frame as [`frame`] does, with this TOS: its upper three bits are the priority, its lower two ECN.
pub(crate) fn frame_with(from: u8, to: u8, tos: u8, len: usize) -> Vec<u8> {
    let (src, dst) = (IpAddr::from([10, 0, from, 3]), IpAddr::from([10, 0, to, 2]));
    Craft {
        dst_mac: mac(from),
        tos,
        ..Craft::roce(src, dst, 0x0a, 0x11, len - 58)
    }
    .frame()
}

pub(crate) fn wire(len: usize) -> u64 {
    u64::from(wire_len(len))
}

impl Rig {
    /// Attaches a capture ring.
    pub(crate) fn with_capture(self) -> (Rig, FrameReceiver, Arc<CaptureStats>) {
        let (end, frames, stats) = capture::ends(WorkerId::FIRST);
        let path = self.path.with_capture(end);
        (Rig { path, ..self }, frames, stats)
    }

    pub(crate) fn take(&mut self, port: u8, bytes: &[u8], now: u64) {
        let mut frames = FrameVec::default();
        frames.push(HeapFrame::new(bytes));
        self.path.ingress(PortId(port), &mut frames, Nanos(now));
    }

    /// Receives `count` frames of `len` bytes in full bursts, with an iteration of the loop after each.
    pub(crate) fn push(
        &mut self,
        from: u8,
        to: u8,
        priority: u8,
        len: usize,
        count: usize,
        now: u64,
    ) {
        self.push_copies(from, &frame(from, to, priority, len), count, now);
    }

    /// Receives `count` copies of a frame in full bursts, with an iteration of the loop after each.
    pub(crate) fn push_copies(&mut self, from: u8, bytes: &[u8], count: usize, now: u64) {
        let mut left = count;
        while left > 0 {
            let mut burst = FrameVec::default();
            while left > 0 && !burst.is_full() {
                burst.push(HeapFrame::new(bytes));
                left -= 1;
            }
            self.path.ingress(PortId(from), &mut burst, Nanos(now));
            self.control(from, now);
        }
    }

    /// Returns a burst that the port may send, taken by its device.
    pub(crate) fn pull(&mut self, port: u8, now: u64) -> Vec<Queued<HeapFrame>> {
        let mut out = Outgoing::new();
        self.path.egress(PortId(port), &mut out, Nanos(now));
        let lengths = out.iter().map(|frame| frame.buf.data().len());
        self.path.sent(PortId(port), Sent::of(lengths));
        self.path.publish_held();
        out.into_iter().collect()
    }

    /// Sends everything a port can send at `now`; returns the number of frames.
    pub(crate) fn pull_all(&mut self, port: u8, now: u64) -> usize {
        let mut total = 0;
        loop {
            let got = self.pull(port, now).len();
            total += got;
            if got == 0 {
                return total;
            }
        }
    }

    /// Runs the iteration of the loop for one port; returns the PFC frame it sends, if any.
    pub(crate) fn control(&mut self, port: u8, now: u64) -> Option<PfcFrame> {
        let frame = self.path.control_due(PortId(port), Nanos(now))?;
        self.path.control_sent(PortId(port), &frame, Nanos(now));
        self.sent.push((port, now, frame.xoff(), frame.xon()));
        Some(frame)
    }

    /// Makes the peer of `port` send a PFC frame that names `classes`, all with the same quanta.
    pub(crate) fn hear(&mut self, port: u8, classes: u8, quanta: u16, now: u64) {
        let bytes = mac_control::build(mac(99), classes, [quanta; 8]);
        self.take(port, &bytes, now);
    }

    pub(crate) fn counters(&self, port: u8) -> &PortCounters {
        self.path.counters().port(usize::from(port)).unwrap()
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        let ports = self.path.counters().ports();
        ports.map(|port| port.drops[reason.index()].get()).sum()
    }

    pub(crate) fn all_drops(&self) -> u64 {
        DropReason::ALL
            .iter()
            .map(|reason| self.dropped(*reason))
            .sum()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.path
            .counters()
            .ports()
            .map(|port| port.lossless_lost.get())
            .sum()
    }

    pub(crate) fn depth(&self, port: u8, priority: u8) -> u64 {
        self.path.depth(PortId(port), prio(priority))
    }

    /// Returns the bytes and frames that a group holds.
    pub(crate) fn held(&self, port: u8, priority: u8) -> (u64, u64) {
        let group =
            self.path
                .buffer()
                .group(GroupId::new(WorkerId::FIRST, PortId(port), prio(priority)));
        let held = group.unwrap().held();
        (held.bytes, held.frames)
    }

    /// Asserts rx + originated = tx + drops + consumed + held, in frames and bytes (no tags are touched here).
    pub(crate) fn assert_conserved(&self) {
        self.path.publish_held();
        let (mut input, mut output) = ((0, 0), (0, 0));
        for port in self.path.counters().ports() {
            input.0 += port.rx.packets.get() + port.originated.packets.get();
            input.1 += port.rx.bytes.get() + port.originated.bytes.get();
            output.0 += port.tx.packets.get() + port.consumed.packets.get();
            output.1 += port.tx.bytes.get() + port.consumed.bytes.get() + port.drop_bytes.get();
            output.0 += port.drops.iter().map(|count| count.get()).sum::<u64>();
        }
        output.0 += self.path.counters().held.packets.get();
        output.1 += self.path.counters().held.bytes.get();
        assert_eq!(input, output, "(frames, bytes) in = out");
    }
}

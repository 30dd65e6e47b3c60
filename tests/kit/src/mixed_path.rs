//! Walks a traffic mix through the whole packet path on one worker, in the order of a worker's loop: every port receives, then every
//! port sends. It uses only ingress, egress and sent of the path.

use npcc_cnp::control::ControlCore;
use npcc_cnp::control::config::ControlConfig;
use npcc_cnp::flow_cache::{CacheReader, FlowCache};
use npcc_pipeline::capture::{self, CaptureOrder, Filter};
use npcc_pipeline::datapath::{Datapath, Sent};
use npcc_pipeline::frame::{FrameBuf, FrameVec, HeapFrame};
use npcc_pipeline::punt::{
    FrameReceiver, Punt, PuntClass, PuntConfig, PuntHost, PuntInterface, PuntPort, PuntRates,
};
use npcc_pipeline::route::nexthop::{Adjacency, Kind, UNTAGGED};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::units::{BURST, Mac, Nanos, PortId, Priority, WorkerId};
use npcc_pipeline::wire::bth::ICRC_LEN;
use npcc_roce::pair::export::EndReader;

use crate::bench_path::port;
use crate::mix::{Mix, VLAN};
use crate::npcc::TICK;
use crate::two_ports::{OURS, WAN};

/// Bytes of a frame that are restored: the longest header that the path reads or writes, which is more than the shortest frame has.
const HEAD: usize = 82;

/// Traffic that comes in by one port.
#[derive(Debug)]
struct Source<B> {
    port: PortId,
    /// First octets of every frame.
    heads: Vec<Vec<u8>>,
    next: usize,
    frames: FrameVec<B>,
}

/// A switch and the traffic mix that passes through it, in frames of type `B`.
#[derive(Debug)]
pub struct MixedPath<B: FrameBuf = HeapFrame> {
    path: Datapath<B, FlowCache>,
    /// Reader of the flow cache, unless a control core has it.
    reader: Option<CacheReader>,
    control: Option<ControlCore>,
    /// Reader of the ends that the control core exports, and their number so far.
    ends: Option<EndReader>,
    exported: usize,
    _writer: RouteWriter,
    /// Receiving end of punted frames, kept open but never read.
    host: Option<PuntHost>,
    /// Receiving end of captured frames, which are discarded.
    captured: Option<FrameReceiver>,
    sources: Vec<Source<B>>,
    /// Frames that came out, kept for reuse, by their length.
    spare: Vec<(usize, Vec<B>)>,
    /// Frames that each port sent.
    out: Vec<FrameVec<B>>,
    now: u64,
    forwarded: usize,
}

impl MixedPath {
    /// Builds the switch and the traffic of this mix, in heap frames.
    ///
    /// # Panics
    /// When a route of the mix cannot be installed.
    #[must_use]
    pub fn new(mix: &Mix) -> MixedPath {
        MixedPath::of(mix, HeapFrame::new)
    }
}

impl<B: FrameBuf> MixedPath<B> {
    /// Builds the switch and the traffic of this mix, in frames that `frame` makes.
    ///
    /// # Panics
    /// When a route of the mix cannot be installed.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "a bench says what is wrong by panicking"
    )]
    pub fn of(mix: &Mix, frame: impl Fn(&[u8]) -> B) -> MixedPath<B> {
        let capacity = RouteCapacity {
            ipv4_routes: 64,
            ipv6_routes: 64,
            adjacencies: 64,
            groups: 64,
        };
        let (mut writer, readers) = RouteWriter::new(capacity, 1);
        for (address, len, hops) in &mix.routes {
            let prefix = Prefix::new(*address, *len).expect("a prefix");
            let paths: Vec<Adjacency> = hops
                .iter()
                .map(|hop| Adjacency {
                    kind: Kind::Forward,
                    port: hop.port,
                    vlan: if hop.vlan == 0 { UNTAGGED } else { hop.vlan },
                    dst: Mac([2, 0, 0, 0, 9, hop.mac]),
                    src: OURS,
                    mtu: 0,
                })
                .collect();
            writer.insert(prefix, &paths).expect("room for a route");
        }
        writer.commit();
        let mut fib = readers.into_iter().next().expect("a reader");
        fib.refresh();
        let pool = PoolConfig {
            bytes: 64 << 20,
            frames: 65_536,
            alpha_256: 256,
        };
        let (cache, reader) = FlowCache::new(65_536, WAN.bit(), 4096, 7);
        let ports = (0..mix.ports)
            .map(|_| {
                let mut port = port();
                port.intake.vlans = Box::new([VLAN]);
                port
            })
            .collect();
        let mut spare: Vec<(usize, Vec<B>)> = Vec::new();
        for (_, frames) in &mix.traffic {
            for bytes in frames {
                if !spare.iter().any(|(len, _)| *len == bytes.len()) {
                    let all = (0..8 * BURST).map(|_| frame(bytes)).collect();
                    spare.push((bytes.len(), all));
                }
            }
        }
        let sources = mix.traffic.iter().map(|(port, frames)| Source {
            port: *port,
            heads: frames.clone(),
            next: 0,
            frames: FrameVec::default(),
        });
        MixedPath {
            path: Datapath::new(ports, pool, fib, cache, 1).with_vectors(npcc_simd::detected()),
            reader: Some(reader),
            control: None,
            ends: None,
            exported: 0,
            _writer: writer,
            host: None,
            captured: None,
            sources: sources.collect(),
            spare,
            out: (0..mix.ports).map(|_| FrameVec::default()).collect(),
            now: 0,
            forwarded: 0,
        }
    }

    /// Adds Linux integration: frames for Linux are classified and rate-limited, and nobody reads them.
    #[must_use]
    pub fn with_linux(mut self) -> MixedPath<B> {
        let (punt, host) = Punt::new(
            PuntConfig {
                rates: PuntRates {
                    classes: PuntClass::ALL.map(|_| 1_000),
                    asks: 1_000,
                    icmp_errors: 1_000,
                },
                ports: self
                    .out
                    .iter()
                    .map(|_| PuntPort {
                        interfaces: vec![PuntInterface::new(0, OURS)],
                        macs: vec![],
                    })
                    .collect(),
                control: Priority::new(6),
                ordinary: Priority::new(0),
            },
            7,
        );
        self.path.attach_punt(punt);
        self.host = Some(host);
        self
    }

    /// Adds a control core, which reads the flow cache; with `exports` another box's feed reads the ends that it exports.
    #[must_use]
    pub fn with_control(mut self, exports: bool) -> MixedPath<B> {
        let mut core = ControlCore::new(&ControlConfig {
            tick: TICK,
            ..ControlConfig::default()
        });
        if let Some(reader) = self.reader.take() {
            core.attach(reader);
        }
        self.ends = exports.then(|| core.feed().read());
        self.control = Some(core);
        self
    }

    /// Returns the number of rows that the control core exported.
    #[must_use]
    pub const fn exported(&self) -> usize {
        self.exported
    }

    /// Adds a capture of the frames that this filter selects, 128 bytes of each.
    ///
    /// # Panics
    /// When `filter` is not a valid filter.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "a bench says what is wrong by panicking"
    )]
    pub fn with_capture(mut self, filter: &str) -> MixedPath<B> {
        let (end, frames, _) = capture::ends(WorkerId::FIRST);
        self.path = self.path.with_capture(end);
        self.path.set_capture(Some(Box::new(CaptureOrder {
            id: 1,
            filter: Filter::parse(filter).expect("a filter"),
            ports: u32::MAX,
            priorities: u8::MAX,
            snaplen: 128,
            tracked: None,
        })));
        self.captured = Some(frames);
        self
    }

    /// Runs one iteration of a worker: a burst in by each port that has a source, and all out.
    pub fn walk(&mut self) {
        for source in &mut self.sources {
            source.fill(&mut self.spare);
        }
        self.now += 2_000;
        self.turn(Nanos(self.now));
        if let Some(frames) = &mut self.captured {
            while frames.pop(&mut []).is_some() {}
        }
        for frame in self.out.iter_mut().flat_map(|out| out.drain(..)) {
            self.forwarded += 1;
            let len = frame.data().len();
            if let Some((_, spare)) = self.spare.iter_mut().find(|(of, _)| *of == len) {
                spare.push(frame);
            }
        }
        if self.now.is_multiple_of(TICK.0) {
            self.tick();
        }
    }

    /// Drains the flow cache's records, by the control core if there is one.
    fn tick(&mut self) {
        if let Some(reader) = &mut self.reader {
            while reader.pop().is_some() {}
        }
        if let Some(core) = &mut self.control {
            core.run_call(Nanos(self.now), |_, _| 0u64, &mut |_| Ok(()));
        }
        if let Some(ends) = &mut self.ends {
            self.exported += std::iter::from_fn(|| ends.take()).count();
        }
    }

    /// Runs the part whose instructions are counted: scripts/count-instructions names this function to callgrind.
    #[inline(never)]
    fn turn(&mut self, now: Nanos) {
        self.path.refresh();
        for source in &mut self.sources {
            self.path.ingress(source.port, &mut source.frames, now);
        }
        for (port, out) in (0..).map(PortId).zip(&mut self.out) {
            self.path.egress(port, out, now);
            self.path.sent(port, measured(out));
        }
        self.path.publish_held();
    }

    /// Returns the number of frames that came out.
    #[must_use]
    pub const fn forwarded(&self) -> usize {
        self.forwarded
    }
}

/// Adds the lengths of the frames up, which is the rig's own work: scripts/count-instructions names this function to callgrind too.
#[inline(never)]
fn measured<B: FrameBuf>(out: &[B]) -> Sent {
    Sent::of(out.iter().map(|frame| frame.data().len()))
}

impl<B: FrameBuf> Source<B> {
    /// Fills the burst with the next frames.
    fn fill(&mut self, spare: &mut [(usize, Vec<B>)]) {
        for _ in 0..BURST {
            let Some(head) = self.heads.get(self.next) else {
                return;
            };
            self.next += 1;
            if self.next == self.heads.len() {
                self.next = 0;
            }
            let all = spare.iter_mut().find(|(len, _)| *len == head.len());
            let Some(mut frame) = all.and_then(|(_, all)| all.pop()) else {
                return;
            };
            let length = head.len().min(HEAD);
            if let (Some(to), Some(from)) = (frame.data_mut().get_mut(..length), head.get(..length))
            {
                to.copy_from_slice(from);
            }
            let sum = head.last_chunk::<ICRC_LEN>();
            if let (Some(to), Some(from)) = (frame.data_mut().last_chunk_mut(), sum) {
                *to = *from;
            }
            self.frames.push(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::NAMES;
    use crate::room_frame::RoomFrame;

    #[test]
    fn every_frame_of_every_mix_comes_out() {
        for name in NAMES {
            let mix = Mix::named(name).unwrap();
            let mut path = MixedPath::new(&mix);
            for _ in 0..20 {
                path.walk();
            }
            let frames = 20 * BURST * mix.traffic.len();
            assert_eq!(path.forwarded(), frames, "{name}");
            let mut path = MixedPath::of(&mix, RoomFrame::new);
            (0..20).for_each(|_| path.walk());
            assert_eq!(path.forwarded(), frames, "{name}, in frames like mbufs");
        }
        let mix = Mix::named("data-acks").unwrap();
        let mut path = MixedPath::new(&mix).with_control(true);
        (0..100).for_each(|_| path.walk());
        assert!(path.exported() > 0, "ends of the flows' answers");
        let mix = Mix::named("data-1082").unwrap();
        for filter in ["dropped", ""] {
            let mut path = MixedPath::new(&mix).with_capture(filter);
            path.walk();
            assert_eq!(
                path.forwarded(),
                BURST * mix.traffic.len(),
                "captured: {filter}"
            );
        }
    }
}

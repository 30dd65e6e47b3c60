//! The whole packet path with every feature on, on heap frames that are reused. Benches and instruction counts run it.

use std::net::IpAddr;

use npcc_cnp::flow_cache::{CacheReader, FlowCache};
use npcc_pipeline::classify::{Classifier, Trust};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::datapath::{Datapath, PortConfig, Sent};
use npcc_pipeline::egress::ecn::Red;
use npcc_pipeline::egress::port::EgressQueueConfig;
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::frame::{FrameBuf, FrameVec, HeapFrame};
use npcc_pipeline::handoff::{WorkerPlan, links};
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::units::{BURST, BitRate, Nanos, Priority, WorkerId};
use npcc_pipeline::wire::bth::ICRC_LEN;

use crate::two_ports::{self, DC, WAN};

/// Bytes of Ethernet, IPv4, UDP, BTH and ICRC.
const HEAD: usize = 58;
/// A switch of two ports with traffic from the first to the second; with two workers, each owns one port.
#[derive(Debug)]
pub struct Rig {
    path: Datapath<HeapFrame, FlowCache>,
    /// Packet path of the second port's owner, with two workers.
    owner: Option<Datapath<HeapFrame, FlowCache>>,
    readers: Vec<CacheReader>,
    _writer: RouteWriter,
    /// First octets of a frame of each flow, up to the ICRC of one without payload.
    templates: Vec<[u8; HEAD]>,
    /// ICRC of each flow's frame.
    sums: Vec<[u8; ICRC_LEN]>,
    crafts: Vec<Craft>,
    frames: FrameVec<HeapFrame>,
    /// Frames that left by the second port.
    out: FrameVec<HeapFrame>,
    next: usize,
    now: u64,
    forwarded: usize,
}

impl Rig {
    /// Creates a rig with `flows` flows of frames with `payload` bytes after the BTH, each to the address that `destination` returns.
    #[must_use]
    pub fn new(flows: usize, payload: usize, destination: impl Fn(usize) -> IpAddr) -> Rig {
        Rig::with_workers(1, flows, payload, destination)
    }

    /// Creates a rig with `workers` workers; with two, every frame crosses from one to the other.
    #[must_use]
    pub fn with_workers(
        workers: u8,
        flows: usize,
        payload: usize,
        destination: impl Fn(usize) -> IpAddr,
    ) -> Rig {
        let workers = workers.clamp(1, 2);
        let ten = (IpAddr::from([10, 0, 0, 0]), 8);
        let (writer, readers) = two_ports::routes(&[ten], workers.into());
        let pool = PoolConfig {
            bytes: 64 << 20,
            frames: 65_536,
            alpha_256: 256,
        };
        let crafts: Vec<_> = (0..flows.max(1))
            .map(|flow| {
                let qp = u32::try_from(flow).unwrap_or_default() + 0x11;
                Craft {
                    src_port: 49_152,
                    ..Craft::roce(
                        IpAddr::from([10, 0, 1, 3]),
                        destination(flow),
                        0x0a,
                        qp,
                        payload,
                    )
                }
            })
            .collect();
        let assignment = WorkerPlan {
            workers,
            owners: vec![WorkerId(0), WorkerId(workers - 1)],
            ..WorkerPlan::alone(2)
        };
        let (mut paths, mut samples) = (Vec::new(), Vec::new());
        for (seat, fib) in links(assignment).into_iter().zip(readers) {
            let (cache, reader) = FlowCache::new(65_536, WAN.bit(), 4096, 7);
            let path = Datapath::new(vec![port(), port()], pool, fib, cache, 1);
            paths.push(path.with_vectors(npcc_simd::detected()).with_links(seat));
            samples.push(reader);
        }
        let mut paths = paths.into_iter();
        let path = paths
            .next()
            .unwrap_or_else(|| unreachable!("one worker at least"));
        let rig = Rig {
            path,
            owner: paths.next(),
            readers: samples,
            _writer: writer,
            templates: Vec::new(),
            sums: Vec::new(),
            crafts,
            frames: FrameVec::default(),
            out: FrameVec::default(),
            next: 0,
            now: 0,
            forwarded: 0,
        };
        rig.crafted()
    }

    /// Builds templates and frames from the crafted packets.
    fn crafted(mut self) -> Rig {
        let all: Vec<_> = self.crafts.iter().map(Craft::frame).collect();
        let heads = all.iter().filter_map(|frame| frame.first_chunk());
        let sums = all.iter().filter_map(|frame| frame.last_chunk());
        (self.templates, self.sums) = (heads.copied().collect(), sums.copied().collect());
        let frames = all.iter().cycle().take(BURST);
        self.frames = FrameVec::default();
        self.frames
            .extend(frames.map(|frame| HeapFrame::new(frame)));
        self
    }

    /// Sets the ACK request bit in every frame, as messages of one packet do.
    #[must_use]
    pub fn asking(mut self) -> Rig {
        for fields in self
            .crafts
            .iter_mut()
            .filter_map(|craft| craft.bth.as_mut())
        {
            fields.ack_req = true;
        }
        self.crafted()
    }

    /// Writes the ICRCs of the next flows into the frames.
    fn seal(&mut self) {
        let sums = self.sums.iter().cycle().skip(self.next);
        for (frame, sum) in self.frames.iter_mut().zip(sums) {
            if let Some(place) = frame.data_mut().last_chunk_mut() {
                *place = *sum;
            }
        }
    }

    /// Passes one burst in by the first port and out by the second.
    pub fn walk(&mut self) {
        // If the flows divide the burst, each frame is always the same flow's and needs no new ICRC.
        if !BURST.is_multiple_of(self.templates.len()) {
            self.seal();
        }
        for frame in &mut *self.frames {
            let template = self
                .templates
                .get(self.next)
                .or_else(|| self.templates.first());
            if let (Some(head), Some(template)) = (frame.data_mut().first_chunk_mut(), template) {
                *head = *template;
            }
            self.next += 1;
            if self.next >= self.templates.len() {
                self.next = 0;
            }
        }
        self.now += 2_000;
        let now = Nanos(self.now);
        by_taker();
        self.path.refresh();
        self.path.ingress(DC, &mut self.frames, now);
        let owner = match &mut self.owner {
            Some(owner) => {
                self.path.publish_held();
                by_owner();
                owner.refresh();
                owner.take_over(now);
                owner
            }
            None => &mut self.path,
        };
        owner.egress(WAN, &mut self.out, now);
        let lengths = self.out.iter().map(|frame| frame.data().len());
        owner.sent(WAN, Sent::of(lengths));
        owner.publish_held();
        by_rig();
        self.forwarded += self.out.len();
        // The flow cache's records are drained every 20 us, as a control core does.
        if self.now.is_multiple_of(20_000) {
            for reader in &mut self.readers {
                while reader.pop().is_some() {}
            }
        }
        std::mem::swap(&mut self.frames, &mut self.out);
    }

    /// Returns the number of frames that came out.
    #[must_use]
    pub const fn forwarded(&self) -> usize {
        self.forwarded
    }
}

/// Marks, for a tracer of the program, that what follows is done by the worker that takes frames in.
#[inline(never)]
pub fn by_taker() {
    std::hint::black_box(1);
}

/// Marks that what follows is done by the worker that owns the egress port.
#[inline(never)]
pub fn by_owner() {
    std::hint::black_box(2);
}

/// Marks that what follows is done by the rig, not by a worker.
#[inline(never)]
pub fn by_rig() {
    std::hint::black_box(3);
}

/// Returns a port configuration with everything on: 8 queues, strict and DWRR, a shaper, ECN, watched depths.
pub(crate) fn port() -> PortConfig {
    let mut classifier = Classifier::all(Priority::new(0));
    classifier.trust = Trust::Dscp;
    classifier.dscp[26] = Priority::new(3);
    classifier.dscp[48] = Priority::new(6);
    let mut queues: [EgressQueueConfig; 8] = std::array::from_fn(|_| EgressQueueConfig::default());
    queues[3].discipline = Discipline::Dwrr(50);
    queues[3].ecn = Some(Red {
        kmin: 750_000,
        kmax: 6_000_000,
        pmax: 1 << 28,
    });
    queues[3].lossless = true;
    queues[3].watched_depths = [375_000, 3_000_000];
    queues[6].discipline = Discipline::Strict;
    two_ports::port(classifier, Some(BitRate(400_000_000_000)), queues)
}

//! The whole path with NPCC's flow cache: any frames, and the account of frames and bytes closes.
#![no_main]

use std::cell::RefCell;
use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use npcc_cnp::flow_cache::{CacheReader, FlowCache};
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::datapath::{Datapath, Outgoing, PortConfig, Sent};
use npcc_pipeline::egress::port::{EcnMode, EgressConfig, QueueConfig};
use npcc_pipeline::frame::{FrameBuf, HeapFrame, FrameVec};
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::units::{Mac, Nanos, PortId, Priority};

fn port() -> PortConfig {
    PortConfig {
        intake: IngressConfig { mac: Mac([2, 0, 0, 0, 1, 1]), mtu: 1500, vlans: Box::new([100]), classifier: Classifier::all(Priority::new(3)) },
        egress: EgressConfig { rate: None, max_frame: 1522, away: Nanos::ZERO, queues: std::array::from_fn(|_| QueueConfig::default()) },
        ecn: EcnMode::MarkUnlessNotified,
    }
}

struct Rig {
    switch: Datapath<HeapFrame, FlowCache>,
    reader: CacheReader,
    _routes: RouteWriter,
    now: u64,
}

impl Rig {
    fn new() -> Rig {
        let capacity = RouteCapacity { ipv4_routes: 4, ipv6_routes: 4, adjacencies: 4, groups: 4 };
        let (mut routes, mut readers) = RouteWriter::new(capacity, 1);
        let path = Adjacency { kind: Kind::Forward, port: PortId(1), vlan: 100, dst: Mac([2, 0, 0, 0, 9, 9]), src: Mac([2, 0, 0, 0, 1, 1]) };
        for address in [IpAddr::from([0, 0, 0, 0]), IpAddr::from([0u16; 8])] {
            routes.insert(Prefix::new(address, 0).unwrap(), &[path]).unwrap();
        }
        let (cache, reader) = FlowCache::new(64, 0b11, 64, 1);
        let pool = PoolConfig { bytes: 100_000, frames: 64, alpha_256: 256 };
        Rig { switch: Datapath::new(vec![port(), port()], pool, readers.remove(0), cache, 1), reader, _routes: routes, now: 0 }
    }
}

thread_local! {
    /// One switch for all inputs: it is empty after each, and its account runs on.
    static RIG: RefCell<Rig> = RefCell::new(Rig::new());
}

fuzz_target!(|bytes: &[u8]| RIG.with_borrow_mut(|rig| feed(rig, bytes)));

fn feed(rig: &mut Rig, bytes: &[u8]) {
    let Rig { switch, reader, now, .. } = rig;
    // Frames cut out of the input by a length octet each.
    let mut rest = bytes;
    while let Some((len, tail)) = rest.split_first() {
        let (frame, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        *now += 1_000;
        let mut burst = FrameVec::default();
        // The address that lets a frame in, so that the fuzzer need not guess it.
        let mut frame = frame.to_vec();
        if let Some(dst) = frame.get_mut(..6) {
            dst.copy_from_slice(&[2, 0, 0, 0, 1, 1]);
        }
        burst.push(HeapFrame::new(&frame));
        switch.ingress(PortId(0), &mut burst, Nanos(*now));
    }
    let mut out = Outgoing::new();
    switch.egress(PortId(1), &mut out, Nanos(*now));
    let lengths = out.iter().map(|frame| frame.buf.data().len());
    switch.sent(PortId(1), Sent::of(lengths));
    switch.shut_down();
    while reader.pop().is_some() {}

    let (mut input, mut output) = (0, 0);
    for port in switch.counters().ports() {
        input += port.rx.bytes.get() + port.tag_bytes_added.get();
        output += port.tx.bytes.get() + port.consumed.bytes.get() + port.drop_bytes.get() + port.tag_bytes_removed.get() + port.trimmed_bytes.get();
    }
    assert_eq!(input, output);
}

//! Fuzz target of the whole packet path with NPCC's flow cache and Linux to punt to: for any frames the account of frames and bytes closes.
#![no_main]

use std::cell::RefCell;
use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use npcc_cnp::flow_cache::{CacheReader, FlowCache};
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::datapath::{Datapath, Outgoing, PortConfig, Sent};
use npcc_pipeline::egress::port::{EcnConfig, EcnMode, EgressConfig, EgressQueueConfig, UpstreamCe};
use npcc_pipeline::frame::{FrameBuf, HeapFrame, FrameVec};
use npcc_pipeline::punt::{Punt, PuntClass, PuntConfig, PuntHost, PuntInterface, PuntPort, PuntRates};
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::units::{Mac, Nanos, PortId, Priority};

fn port() -> PortConfig {
    PortConfig {
        intake: IngressConfig { mac: Mac([2, 0, 0, 0, 1, 1]), mtu: 1500, vlans: Box::new([100]), classifier: Classifier::all(Priority::new(3)) },
        egress: EgressConfig { rate: None, max_frame: 1522, max_absence: Nanos::ZERO, queues: std::array::from_fn(|_| EgressQueueConfig::default()) },
        ecn: EcnConfig { mode: EcnMode::Divert, upstream_ce: UpstreamCe::Answer },
    }
}

struct Rig {
    switch: Datapath<HeapFrame, FlowCache>,
    reader: CacheReader,
    host: PuntHost,
    punted: u64,
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
        for address in [IpAddr::from([10, 0, 1, 1]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])] {
            routes.insert(Prefix::host(address), &[Adjacency::unusable(Kind::Local)]).unwrap();
        }
        routes.commit();
        let (punt, host) = Punt::new(linux());
        let switch = Datapath::new(vec![port(), port()], pool, readers.remove(0), cache, 1)
            .with_vectors(npcc_simd::detected())
            .with_punt(punt);
        Rig { switch, reader, host, punted: 0, _routes: routes, now: 0 }
    }
}

/// Returns a punt configuration in which both ports have an address of each family, with and without a tag.
fn linux() -> PuntConfig {
    let interface = |vlan| PuntInterface {
        v4: Some([10, 0, 1, 1].into()),
        v6: Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
        ..PuntInterface::new(vlan, Mac([2, 0, 0, 0, 1, 1]))
    };
    let port = PuntPort { interfaces: vec![interface(0), interface(100)] };
    PuntConfig {
        rates: PuntRates { classes: [1_000_000; PuntClass::COUNT], asks: 1_000_000, icmp_errors: 1_000_000 },
        ports: vec![port.clone(), port],
        control: Priority::new(6),
        ordinary: Priority::new(0),
    }
}

thread_local! {
    /// One switch for all inputs: it is empty after each, and its account continues.
    static RIG: RefCell<Rig> = RefCell::new(Rig::new());
}

fuzz_target!(|bytes: &[u8]| RIG.with_borrow_mut(|rig| feed(rig, bytes)));

fn feed(rig: &mut Rig, bytes: &[u8]) {
    let Rig { switch, reader, host, now, punted: all, .. } = rig;
    switch.refresh();
    // The input is split into frames, each preceded by a length octet, and the frames into bursts: a frame of no length ends one.
    let mut burst = FrameVec::default();
    let mut rest = bytes;
    while let Some((len, tail)) = rest.split_first() {
        let (frame, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        // The destination address is set to the port's, so that the fuzzer need not guess it.
        let mut frame = frame.to_vec();
        if let Some(dst) = frame.get_mut(..6)
            && dst[0] & 1 == 0
        {
            dst.copy_from_slice(&[2, 0, 0, 0, 1, 1]);
        }
        if *len > 0 {
            burst.push(HeapFrame::new(&frame));
        }
        if *len == 0 || burst.is_full() {
            *now += 1_000;
            switch.ingress(PortId(0), &mut burst, Nanos(*now));
        }
    }
    *now += 1_000;
    switch.ingress(PortId(0), &mut burst, Nanos(*now));
    let mut out = Outgoing::new();
    switch.egress(PortId(1), &mut out, Nanos(*now));
    let lengths = out.iter().map(|frame| frame.buf.data().len());
    switch.sent(PortId(1), Sent::of(lengths));
    switch.shut_down();
    while reader.pop().is_some() {}
    let (mut punted, mut frame) = (0, [0; 2048]);
    for class in &mut host.classes {
        while let Some((_, bytes)) = class.pop(&mut frame) {
            assert!(bytes.len() >= 14);
            punted += 1;
        }
    }

    let (mut input, mut output) = (0, 0);
    *all += punted;
    assert_eq!(*all, switch.counters().ports().map(|port| port.punted.packets.get()).sum::<u64>());
    for port in switch.counters().ports() {
        input += port.rx.bytes.get() + port.originated.bytes.get() + port.tag_bytes_added.get();
        output += port.tx.bytes.get() + port.punted.bytes.get() + port.consumed.bytes.get() + port.drop_bytes.get() + port.tag_bytes_removed.get() + port.trimmed_bytes.get();
    }
    assert_eq!(input, output);
}

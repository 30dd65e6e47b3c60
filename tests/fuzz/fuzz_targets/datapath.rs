//! Fuzz target of the whole packet path with NPCC's flow cache and Linux to punt to: for any frames the account of frames and bytes closes, and a
//! path that reads headers by vectors sends the same frames as one that does not. Most frames are made one of the four kinds that have a loop of
//! their own.
#![no_main]

use std::cell::RefCell;
use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use npcc_cnp::flow_cache::{CacheReader, FlowCache};
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::datapath::{Datapath, Outgoing, PortConfig, Sent};
use npcc_pipeline::egress::port::{EcnConfig, EcnMode, EgressConfig, EgressQueueConfig, UpstreamCe};
use npcc_pipeline::frame::{FrameBuf, FrameVec, HeapFrame, Meta};
use npcc_pipeline::punt::{Punt, PuntClass, PuntConfig, PuntHost, PuntInterface, PuntPort, PuntRates};
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::units::{BURST, Mac, Nanos, PortId, Priority};
use npcc_pipeline::wire::checksum;

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
}

impl Rig {
    fn new(by_vectors: bool) -> Rig {
        let capacity = RouteCapacity { ipv4_routes: 4, ipv6_routes: 4, adjacencies: 4, groups: 4 };
        let (mut routes, mut readers) = RouteWriter::new(capacity, 1);
        let path = |vlan| Adjacency { kind: Kind::Forward, port: PortId(1), vlan, dst: Mac([2, 0, 0, 0, 9, 9]), src: Mac([2, 0, 0, 0, 1, 1]),
        mtu: 0, };
        // Frames keep the length of their header or not, by the highest bit of the destination.
        for (len, vlan) in [(0, 100), (1, 0)] {
            for address in [IpAddr::from([0x80, 0, 0, 0]), IpAddr::from([0x8000, 0, 0, 0, 0, 0, 0, 0])] {
                routes.insert(Prefix::new(address, len).unwrap(), &[path(vlan)]).unwrap();
            }
        }
        let (cache, reader) = FlowCache::new(64, 0b11, 64, 1);
        let pool = PoolConfig { bytes: 100_000, frames: 64, alpha_256: 256 };
        for address in [IpAddr::from([10, 0, 1, 1]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])] {
            routes.insert(Prefix::host(address), &[Adjacency::unusable(Kind::Local)]).unwrap();
        }
        routes.commit();
        let (punt, host) = Punt::new(linux(), 7);
        let switch = Datapath::new(vec![port(), port()], pool, readers.remove(0), cache, 1)
            .with_vectors(if by_vectors { npcc_simd::detected() } else { None })
            .with_punt(punt);
        Rig { switch, reader, host, punted: 0, _routes: routes }
    }
}

/// Returns a punt configuration in which both ports have an address of each family, with and without a tag.
fn linux() -> PuntConfig {
    let interface = |vlan| PuntInterface {
        v4: Some([10, 0, 1, 1].into()),
        v6: Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
        ..PuntInterface::new(vlan, Mac([2, 0, 0, 0, 1, 1]))
    };
    let port = PuntPort { interfaces: vec![interface(0), interface(100)], macs: vec![] };
    PuntConfig {
        rates: PuntRates { classes: [1_000_000; PuntClass::COUNT], asks: 1_000_000, icmp_errors: 1_000_000 },
        ports: vec![port.clone(), port],
        control: Priority::new(6),
        ordinary: Priority::new(0),
    }
}

thread_local! {
    /// Switches for all inputs: they are empty after each, and their accounts continue. One reads headers by vectors.
    static RIGS: RefCell<([Rig; 2], u64)> = RefCell::new(([true, false].map(Rig::new), 0));
}

fuzz_target!(|bytes: &[u8]| RIGS.with_borrow_mut(|(rigs, now)| {
    let bursts = bursts(bytes);
    let [by_vectors, by_one] = rigs.each_mut().map(|rig| {
        let mut at = *now;
        let sent: Vec<_> = bursts.iter().flat_map(|burst| { at += 1_000; feed(rig, burst, at) }).collect();
        settle(rig);
        sent
    });
    assert_eq!(by_vectors, by_one);
    *now += 1_000 * (bursts.len() as u64 + 1);
}));

/// Splits an input into frames, each preceded by its length and an octet that selects its kind, and the frames into bursts: a frame of no length
/// ends one.
fn bursts(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut bursts = vec![Vec::new()];
    let mut rest = bytes;
    while let [len, kind, tail @ ..] = rest {
        let (frame, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let mut frame = frame.to_vec();
        shape(&mut frame, *kind);
        match bursts.last_mut() {
            Some(burst) if *len > 0 && burst.len() < BURST => burst.push(frame),
            _ => bursts.push(Vec::new()),
        }
    }
    bursts
}

/// Makes a frame one of the four kinds, by the low bits of `kind`: to the port, with right EtherTypes, lengths, protocol and checksum. The others stay
/// as they are, except that a unicast frame is to the port, so that the fuzzer need not guess its address.
fn shape(frame: &mut [u8], kind: u8) {
    if let Some(dst) = frame.first_chunk_mut::<6>()
        && dst[0] & 1 == 0
    {
        *dst = [2, 0, 0, 0, 1, 1];
    }
    let (tagged, v6) = (kind & 1 != 0, kind & 2 != 0);
    let l3 = if tagged { 18 } else { 14 };
    if kind & 12 == 0 || frame.len() < l3 + if v6 { 40 } else { 20 } {
        return;
    }
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 1, 1]);
    if tagged {
        frame[12..14].copy_from_slice(&[0x81, 0x00]);
        frame[14..16].copy_from_slice(&(u16::from(kind >> 5) << 13 | 100).to_be_bytes());
    }
    frame[l3 - 2..l3].copy_from_slice(if v6 { &[0x86, 0xdd] } else { &[0x08, 0x00] });
    let packet = &mut frame[l3..];
    let len = packet.len();
    let upper = if v6 {
        packet[0] = 0x60 | packet[0] & 0x0f;
        packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        packet[6] = 17;
        40
    } else {
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[6..8].fill(0);
        packet[9] = 17;
        packet[10..12].fill(0);
        let sum = !checksum::sum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        20
    };
    if kind & 16 != 0 && len >= upper + 8 {
        packet[upper + 2..upper + 4].copy_from_slice(&4791u16.to_be_bytes());
        packet[upper + 4..upper + 6].copy_from_slice(&((len - upper) as u16).to_be_bytes());
    }
}

/// Feeds a burst; returns the frames that are sent, with their metadata.
fn feed(rig: &mut Rig, burst: &[Vec<u8>], now: u64) -> Vec<(Vec<u8>, Meta)> {
    let switch = &mut rig.switch;
    switch.refresh();
    let mut frames = FrameVec::default();
    frames.extend(burst.iter().map(|frame| HeapFrame::new(frame)));
    switch.ingress(PortId(0), &mut frames, Nanos(now));
    let mut out = Outgoing::new();
    switch.egress(PortId(1), &mut out, Nanos(now));
    let lengths = out.iter().map(|frame| frame.buf.data().len());
    switch.sent(PortId(1), Sent::of(lengths));
    out.iter().map(|frame| (frame.buf.data().to_vec(), frame.meta)).collect()
}

/// Empties a switch, and checks its account.
fn settle(rig: &mut Rig) {
    let Rig { switch, reader, host, punted: all, .. } = rig;
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

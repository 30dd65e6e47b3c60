//! Zero allocation: the packet path allocates nothing per packet from parse to enqueue, NPCC's flow cache included, schedule, mark, CNP build.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by panicking"
)]

use std::net::IpAddr;
use std::sync::Arc;

use npcc_cnp::flow_cache::FlowCache;
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::datapath::{Datapath, Outgoing, PortConfig, Sent};
use npcc_pipeline::egress::ecn::Red;
use npcc_pipeline::egress::port::EgressQueueConfig;
use npcc_pipeline::frame::{FrameBuf, FrameVec, HeapFrame};
use npcc_pipeline::moved_hosts::{HostAddress, MovedHosts};
use npcc_pipeline::punt::{Place, Punt, PuntClass, PuntConfig, PuntInterface, PuntPort, PuntRates};
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::stage::heads::VectorReader;
use npcc_pipeline::units::{BURST, BitRate, Nanos, Priority};
use npcc_roce::build::{CnpHeader, CnpSpec};
use npcc_roce::key::{FlowKey, Qpn};
use npcc_testkit::two_ports::{self, DC, OURS, WAN};

fn port() -> PortConfig {
    let red = Red {
        kmin: 10_000,
        kmax: 100_000,
        pmax: 1 << 31,
    };
    let queue = EgressQueueConfig {
        ecn: Some(red),
        wred: Some(red),
        watched_depths: [10_000, 90_000],
        ..EgressQueueConfig::default()
    };
    let queues = std::array::from_fn(|_| queue.clone());
    let rate = Some(BitRate(10_000_000_000));
    two_ports::port(Classifier::all(Priority::new(3)), rate, queues)
}

#[test]
fn nothing_is_allocated_per_packet() {
    for vectors in [None, npcc_simd::detected()] {
        nothing_is_allocated(vectors);
    }
}

fn nothing_is_allocated(vectors: Option<Box<dyn VectorReader<HeapFrame>>>) {
    let v6 = |net, host| IpAddr::from([0x2001, 0xdb8, net, 0, 0, 0, 0, host]);
    let nets = [(IpAddr::from([10, 0, 2, 0]), 24), (v6(2, 0), 64)];
    let (_writer, mut readers) = two_ports::routes(&nets, 1);
    let (cache, _reader) = FlowCache::new(4096, 0b10, 1024, 1);
    let pool = PoolConfig {
        bytes: 1 << 22,
        frames: 4096,
        alpha_256: 256,
    };
    let mut intake = port();
    intake.intake.vlans = Box::new([100]);
    let moved = Arc::new(MovedHosts::new(Priority::new(5)));
    let mut switch = Datapath::new(vec![intake, port()], pool, readers.remove(0), cache, 1)
        .with_vectors(vectors)
        .with_moved_hosts(Arc::clone(&moved));
    let hosts = [IpAddr::from([10, 0, 1, 3]), v6(1, 3)].map(HostAddress::from);

    // Good frames of many flows and of all kinds, and some for every early exit.
    let mut frames: Vec<Vec<u8>> = (0..160u8)
        .map(|n| {
            let (src, dst) = if n & 16 == 0 {
                (IpAddr::from([10, 0, 1, 3]), IpAddr::from([10, 0, 2, n]))
            } else {
                (v6(1, 3), v6(2, n.into()))
            };
            let tags = if n & 32 == 0 { vec![] } else { vec![100] };
            let craft = Craft::roce(src, dst, n % 0x12, 0x11 + u32::from(n), 1024);
            Craft { tags, ..craft }.frame()
        })
        .collect();
    frames.push(vec![0; 10]);
    frames.push(
        Craft {
            ttl: 1,
            ..Craft::roce(
                IpAddr::from([10, 0, 1, 3]),
                IpAddr::from([10, 0, 2, 1]),
                4,
                1,
                64,
            )
        }
        .frame(),
    );
    frames.push(
        Craft::roce(
            IpAddr::from([10, 0, 1, 3]),
            IpAddr::from([192, 0, 2, 1]),
            4,
            1,
            64,
        )
        .frame(),
    );

    let (mut forwarded, mut allocations) = (0, 0);
    for round in 0..2_000u64 {
        // Hosts are moved and taken back.
        if let Some(host) = hosts.get(round as usize % 64) {
            moved.add(*host);
            moved.set_share(round as u32 % 3, 4);
        } else if round % 64 == 32 {
            moved.clear();
        }
        let mut burst: FrameVec<HeapFrame> = FrameVec::default();
        burst.extend(
            (0..BURST)
                .map(|n| HeapFrame::new(&frames[(round as usize * BURST + n) % frames.len()])),
        );
        let mut out = Outgoing::new();
        let now = Nanos(round * 20_000);
        // Freeing a heap frame is not counted: mbufs are not on the heap.
        let info = allocation_counter::measure(|| {
            switch.refresh();
            switch.ingress(DC, &mut burst, now);
            switch.egress(WAN, &mut out, now);
            let lengths = out.iter().map(|frame| frame.buf.data().len());
            switch.sent(WAN, Sent::of(lengths));
            switch.publish_held();
        });
        allocations += info.count_total;
        forwarded += out.len();
    }
    assert!(forwarded > 10_000, "{forwarded}");
    assert_eq!(allocations, 0);
}

/// Guards zero allocation for Linux: punting, neighbour requests, ICMP errors, and frames that Linux sends.
#[test]
fn nothing_is_allocated_per_packet_with_linux_integrated() {
    let (_writer, mut readers) = two_ports::routes(&[(IpAddr::from([10, 0, 0, 0]), 8)], 1);
    let (cache, _reader) = FlowCache::new(4096, 0b10, 1024, 1);
    let pool = PoolConfig {
        bytes: 1 << 22,
        frames: 4096,
        alpha_256: 256,
    };
    let interface = PuntInterface {
        v4: Some([10, 0, 1, 1].into()),
        ..PuntInterface::new(0, OURS)
    };
    let interfaces = PuntPort {
        interfaces: vec![interface],
        macs: vec![],
    };
    let (punt, mut host) = Punt::new(
        PuntConfig {
            rates: PuntRates {
                classes: [1_000_000; PuntClass::COUNT],
                asks: 1_000_000,
                icmp_errors: 1_000_000,
            },
            ports: vec![interfaces.clone(), interfaces],
            control: Priority::new(6),
            ordinary: Priority::new(0),
        },
        7,
    );
    let fib = readers.remove(0);
    let mut switch = Datapath::new(vec![port(), port()], pool, fib, cache, 1).with_punt(punt);
    let sender = IpAddr::from([10, 0, 1, 3]);
    let craft = |dst: [u8; 4], ttl| Craft {
        ttl,
        ..Craft::roce(sender, IpAddr::from(dst), 4, 1, 64)
    };
    let arp = [&[0xff; 12][..], &[8, 6], &[1; 46]].concat();
    let frames = [
        arp.clone(),
        craft([10, 0, 2, 1], 1).frame(),
        craft([192, 0, 2, 1], 64).frame(),
        craft([10, 0, 2, 1], 64).frame(),
    ];
    let (mut left, mut given, mut allocations) = (0, 0, 0);
    let mut room = [0; 2048];
    for round in 0..500u64 {
        let mut burst: FrameVec<HeapFrame> = FrameVec::default();
        burst.extend((0..BURST).map(|n| HeapFrame::new(&frames[n % frames.len()])));
        let (control, other) = (HeapFrame::new(&arp), HeapFrame::new(&arp));
        let at = Place {
            port: WAN,
            vlan: 100,
        };
        let mut out = Outgoing::new();
        let now = Nanos(round * 100_000);
        let info = allocation_counter::measure(|| {
            switch.ingress(DC, &mut burst, now);
            assert!(switch.inject(at, true, control, now));
            assert!(switch.inject(at, false, other, now));
            switch.egress(WAN, &mut out, now);
            let lengths = out.iter().map(|frame| frame.buf.data().len());
            switch.sent(WAN, Sent::of(lengths));
            switch.publish_held();
        });
        allocations += info.count_total;
        left += out.len();
        for class in &mut host.classes {
            while class.pop(&mut room).is_some() {
                given += 1;
            }
        }
    }
    let signalled = switch.counters().punt.time_exceeded.get();
    assert!(
        left > 10_000 && given > 4_000 && signalled > 4_000,
        "{left} {given} {signalled}"
    );
    assert_eq!(allocations, 0);
}

#[test]
fn building_a_cnp_allocates_nothing() {
    let spec = CnpSpec {
        flow: FlowKey::new(
            IpAddr::from([10, 0, 1, 3]),
            IpAddr::from([10, 0, 2, 2]),
            Qpn::new(0x11),
        ),
        sender_qpn: Qpn::new(0x18),
        dst_mac: OURS,
        src_mac: OURS,
        vlan: None,
        ip_id: 0,
        header: CnpHeader::default(),
    };
    let info = allocation_counter::measure(|| {
        for _ in 0..1_000 {
            std::hint::black_box(std::hint::black_box(&spec).build());
        }
    });
    assert_eq!(info.count_total, 0);
}

//! Benchmarks of NPCC's own work: building a CNP with its ICRC, and the flow cache's share of a packet.
//!
//! `cargo bench --bench cnp`
#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a bench may stop at once; criterion makes undocumented functions"
)]

use std::hint::black_box;
use std::net::IpAddr;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use npcc_cnp::flow_cache::FlowCache;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::frame::Meta;
use npcc_pipeline::parse::parse;
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::{Mac, Nanos, PortId, Priority};
use npcc_roce::build::{CnpHeader, CnpSpec};
use npcc_roce::key::{FlowKey, Qpn};

fn build(c: &mut Criterion) {
    let mut group = c.benchmark_group("cnp_build");
    group.throughput(Throughput::Elements(1));
    for (name, src, dst) in [
        (
            "ipv4",
            IpAddr::from([10, 0, 1, 3]),
            IpAddr::from([10, 0, 2, 2]),
        ),
        (
            "ipv6",
            IpAddr::from([0x2001, 0xdb8, 1, 0, 0, 0, 0, 3]),
            IpAddr::from([0x2001, 0xdb8, 2, 0, 0, 0, 0, 2]),
        ),
    ] {
        let spec = CnpSpec {
            flow: FlowKey::new(src, dst, Qpn::new(0x11)),
            sender_qpn: Qpn::new(0x18),
            dst_mac: Mac([2, 0, 0, 0, 1, 3]),
            src_mac: Mac([2, 0, 0, 0, 1, 1]),
            vlan: None,
            ip_id: 0,
            header: CnpHeader::default(),
        };
        group.bench_function(name, |b| b.iter(|| black_box(black_box(&spec).build())));
    }
}

fn flow_cache(c: &mut Criterion) {
    let mut group = c.benchmark_group("flow_cache");
    group.throughput(Throughput::Elements(64));
    for flows in [64u32, 4096] {
        let (mut cache, _reader) = FlowCache::new(65_536, 0b10, 1024, 7);
        let frames: Vec<Vec<u8>> = (0..flows)
            .map(|flow| {
                Craft::roce(
                    IpAddr::from([10, 0, 1, 3]),
                    IpAddr::from([10, 0, 2, 2]),
                    0x0a,
                    0x11 + flow,
                    64,
                )
                .frame()
            })
            .collect();
        let parsed: Vec<_> = frames
            .iter()
            .map(|frame| parse(frame).expect("a good frame"))
            .collect();
        let mut now = 0;
        let mut next = 0;
        group.bench_function(format!("{flows}_flows"), |b| {
            b.iter(|| {
                now += 1_000;
                for _ in 0..64 {
                    next = (next + 1) % frames.len();
                    let meta = Meta::of(frames[next].len(), PortId(0), PortId(1), Priority::new(3));
                    let sighting = Sighting {
                        data: &frames[next],
                        addresses: parsed[next].addresses_v4,
                        parsed: &parsed[next],
                        roce: parsed[next].roce.expect("RoCEv2"),
                        meta: &meta,
                        now: Nanos(now),
                    };
                    black_box(cache.see(&sighting));
                }
            });
        });
    }
}

criterion_group!(benches, build, flow_cache);
criterion_main!(benches);

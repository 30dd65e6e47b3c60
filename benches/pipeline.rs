//! Benchmarks of the packet path on heap frames: parse, route, enqueue and dequeue, and the whole walk. ns per burst of 32.
//!
//! `cargo bench --bench pipeline`
#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a bench may stop at once; criterion makes undocumented functions"
)]

use std::hint::black_box;
use std::net::IpAddr;

use arrayvec::ArrayVec;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::datapath::{Datapath, Outgoing, PortConfig, Sent};
use npcc_pipeline::egress::fifo::{Fifo, FifoStore};
use npcc_pipeline::egress::port::EgressQueueConfig;
use npcc_pipeline::frame::{FrameBuf, HeapFrame};
use npcc_pipeline::parse::parse;
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::tap::NoTap;
use npcc_pipeline::units::{BURST, BitRate, Nanos, Priority};
use npcc_testkit::two_ports::{self, DC, WAN};

fn frames(v6: bool) -> Vec<Vec<u8>> {
    (0..64u8)
        .map(|flow| {
            let (src, dst) = if v6 {
                (
                    IpAddr::from([0x2001, 0xdb8, 1, 0, 0, 0, 0, 3]),
                    IpAddr::from([0x2001, 0xdb8, 2, 0, 0, 0, 0, u16::from(flow)]),
                )
            } else {
                (IpAddr::from([10, 0, 1, 3]), IpAddr::from([10, 0, 2, flow]))
            };
            Craft::roce(src, dst, 0x0a, 0x11 + u32::from(flow), 1024).frame()
        })
        .collect()
}

fn table() -> (RouteWriter, FibReader) {
    let v4 = (IpAddr::from([10, 0, 2, 0]), 24);
    let v6 = (IpAddr::from([0x2001, 0xdb8, 2, 0, 0, 0, 0, 0]), 48);
    let (writer, mut readers) = two_ports::routes(&[v4, v6], 1);
    (writer, readers.remove(0))
}

fn parse_burst(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    group.throughput(Throughput::Elements(BURST as u64));
    for (name, v6) in [("ipv4", false), ("ipv6", true)] {
        let frames = frames(v6);
        group.bench_function(name, |b| {
            b.iter(|| {
                for frame in &frames[..BURST] {
                    black_box(parse(black_box(frame)).is_ok());
                }
            });
        });
    }
}

fn route_burst(c: &mut Criterion) {
    let mut group = c.benchmark_group("route");
    group.throughput(Throughput::Elements(BURST as u64));
    let (_writer, reader) = table();
    for (name, address) in [("ipv4", "10.0.2.9"), ("ipv6", "2001:db8:2::9")] {
        let address: IpAddr = address.parse().expect("an address");
        group.bench_function(name, |b| {
            b.iter(|| {
                for _ in 0..BURST {
                    let group = reader.group(black_box(address));
                    black_box(reader.resolve(group, || 0).port());
                }
            });
        });
    }
}

fn queue_burst(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue");
    group.throughput(Throughput::Elements(BURST as u64));
    let mut store = FifoStore::new(4096, 1, 0usize);
    let mut fifo = Fifo::default();
    group.bench_function("enqueue_dequeue", |b| {
        b.iter(|| {
            for item in 0..BURST {
                black_box(
                    fifo.push(&mut store, black_box(Box::new(item)), item)
                        .is_ok(),
                );
            }
            for _ in 0..BURST {
                black_box(fifo.pop(&mut store));
            }
        });
    });
}

fn port(rate_limited: bool) -> PortConfig {
    let rate = rate_limited.then_some(BitRate(400_000_000_000));
    let queues = std::array::from_fn(|_| EgressQueueConfig::default());
    two_ports::port(Classifier::all(Priority::new(3)), rate, queues)
}

fn whole_walk(c: &mut Criterion) {
    let mut group = c.benchmark_group("walk");
    group.throughput(Throughput::Elements(BURST as u64));
    for (name, v6) in [("ipv4", false), ("ipv6", true)] {
        let (_writer, reader) = table();
        let pool = PoolConfig {
            bytes: 1 << 24,
            frames: 8192,
            alpha_256: 256,
        };
        let mut path: Datapath<HeapFrame, NoTap> =
            Datapath::new(vec![port(false), port(true)], pool, reader, NoTap, 1);
        let frames = frames(v6);
        let mut now = 0;
        group.bench_function(name, |b| {
            b.iter_batched(
                || {
                    let burst = frames[..BURST].iter().map(|frame| HeapFrame::new(frame));
                    Box::new(burst.collect::<ArrayVec<_, BURST>>())
                },
                |mut burst| {
                    now += 10_000;
                    path.refresh();
                    path.ingress(DC, &mut burst, Nanos(now));
                    let mut out = Outgoing::new();
                    path.egress(WAN, &mut out, Nanos(now));
                    let lengths = out.iter().map(|frame| frame.buf.data().len());
                    path.sent(WAN, Sent::of(lengths));
                    out
                },
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group!(benches, parse_burst, route_burst, queue_burst, whole_walk);
criterion_main!(benches);

//! Cost of NPCC's own work on this machine: a CNP, the ICRC of a packet that is shown, a packet in the flow cache, a tick over a
//! million flows.
//!
//! `cargo run --release -p npcc-cnp --example speed [FLOWS | cache | icrc | IPv4 COUNT | IPv6 COUNT]`

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement for a terminal"
)]

mod rig;

use std::hint::black_box;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use npcc_cnp::control::ControlCore;
use npcc_cnp::flow_cache::FlowCache;
use npcc_pipeline::parse::parse;
use npcc_pipeline::units::{Mac, Nanos};
use npcc_roce::build::{CnpHeader, CnpSpec};
use npcc_roce::key::{FlowKey, Qpn};

use rig::{
    DEST_QP, HARD, KNOWN, NEAR, NEW, Packets, READ_RESPONSE_MIDDLE, TICK, WAN, config, scattered,
};

const ENTERING: usize = 0;
const LOOKING_UP: usize = 1;
const DECIDING: usize = 2;
const AGEING: usize = 3;
const DECISIONS: u32 = 400;

/// Nanoseconds of one of `n` turns, the best of five.
fn best(n: u32, mut turn: impl FnMut(u32)) -> f64 {
    let mut least = f64::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        (0..n).for_each(&mut turn);
        least = least.min(begin.elapsed().as_nanos() as f64 / f64::from(n));
    }
    least
}

fn cnp(count: u32, only: Option<&str>) {
    let hosts: [(&str, IpAddr, IpAddr); 2] = [
        ("IPv4", [10, 0, 1, 3].into(), [10, 0, 2, 2].into()),
        (
            "IPv6",
            "2001:db8:1::3".parse().unwrap(),
            "2001:db8:2::2".parse().unwrap(),
        ),
    ];
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    for (name, sender, receiver) in hosts.into_iter().filter(|host| wanted(host.0)) {
        let mut spec = CnpSpec {
            flow: FlowKey::new(sender, receiver, Qpn::new(0x11)),
            sender_qpn: Qpn::new(0x18),
            dst_mac: Mac([2, 0, 0, 0, 1, 3]),
            src_mac: Mac([2, 0, 0, 0, 1, 1]),
            vlan: None,
            ip_id: 0,
            header: CnpHeader::default(),
        };
        let ns = best(count, |n| {
            spec.sender_qpn = Qpn::new(n);
            black_box(black_box(&spec).build());
        });
        println!("CNP, {name}: {ns:.1} ns, {:.1} M/s", 1_000.0 / ns);
    }
}

/// Maximum number of packets that a worker shows in a second.
const SHOWN: f64 = 250_000.0;

/// Measures the ICRCs of packets that no core's own cache holds any more.
fn icrc(count: u32) {
    const FRAMES: u32 = 4_096;
    for payload in [4, 1_024, 4_096] {
        let packets: Vec<_> = (0..FRAMES)
            .map(|_| Packets::new(READ_RESPONSE_MIDDLE, payload, NEAR, WAN).frame)
            .collect();
        let parsed = parse(&packets[0]).unwrap();
        let ns = best(count, |n| {
            let frame = &packets[(n % FRAMES) as usize];
            assert_eq!(
                npcc_pipeline::icrc::verify(black_box(frame), &parsed),
                Some(true)
            );
        });
        println!(
            "ICRC of {} bytes: {ns:.0} ns, {:.1} % of a worker at {SHOWN} packets a second",
            packets[0].len(),
            ns * SHOWN / 1e7
        );
    }
}

/// Shows packets of data to queue pair `n`.
struct Source {
    data: Packets,
    now: Nanos,
}

impl Source {
    fn new(payload: usize) -> Source {
        Source {
            data: Packets::new(READ_RESPONSE_MIDDLE, payload, NEAR, WAN),
            now: Nanos::from_millis(1),
        }
    }

    fn show(&mut self, cache: &mut FlowCache, n: u32) {
        self.data.put::<3>(DEST_QP, n);
        black_box(self.data.show(cache, self.now));
    }

    /// Does what `show` does, without the cache.
    #[inline(never)]
    fn pretend(&mut self, n: u32) {
        self.data.put::<3>(DEST_QP, n);
        black_box(parse(black_box(&self.data.frame)).unwrap());
    }
}

fn cache(packets: u32, of: &[u32]) {
    for flows in of.iter().copied() {
        let (mut cache, _reader) = FlowCache::new(65_536, WAN.bit(), 1_024, 7);
        let mut source = Source::new(64);
        let without = best(packets, |n| source.pretend(n % flows));
        let with = best(packets, |n| source.show(&mut cache, n % flows));
        println!(
            "flow cache, {flows} flows: {:.1} ns a packet",
            with - without
        );
    }
}

fn million(flows: u32) {
    let (mut cache, reader) = FlowCache::new(2 * flows as usize, WAN.bit(), 65_536, 7);
    let mut core = ControlCore::new(&config(flows));
    core.touch_memory();
    let cached = reader.shared();
    assert!(core.attach(reader));
    let mut source = Source::new(64);
    let status = core.status();
    let mut longest = [Duration::ZERO; 4];
    let mut depth = 0;
    let mut tick = |source: &mut Source, core: &mut ControlCore, step: Nanos, phase: usize| {
        source.now += step;
        depth = if phase == DECIDING {
            depth.max(HARD) + 10_000
        } else {
            0
        };
        let begin = Instant::now();
        core.run_call(source.now, |_, _| depth, &mut |_| Ok(()));
        let took = begin.elapsed();
        longest[phase] = longest[phase].max(took);
        took
    };
    let mut spent = Duration::ZERO;
    for n in 0..flows {
        source.show(&mut cache, scattered(n));
        // As many as a tick takes in.
        if n % NEW == NEW - 1 {
            spent += tick(&mut source, &mut core, TICK, ENTERING);
        }
    }
    for _ in 0..100 {
        spent += tick(&mut source, &mut core, TICK, ENTERING);
    }
    let each = spent.as_nanos() as f64 / f64::from(flows);
    println!(
        "{} flows entered: {each:.0} ns each, {:.1} M records/s",
        status.flows.get(),
        1_000.0 / each
    );
    // A second round: every flow shows again and is looked up.
    source.now += Nanos::from_millis(20);
    let (before, mut spent) = (status.records.get(), Duration::ZERO);
    for n in 0..flows {
        source.show(&mut cache, scattered(n));
        if n % KNOWN == KNOWN - 1 {
            spent += tick(&mut source, &mut core, TICK, LOOKING_UP);
        }
    }
    let seen = status.records.get() - before;
    let each = spent.as_nanos() as f64 / seen as f64;
    println!(
        "looked up again: {each:.0} ns each, {:.1} M records/s",
        1_000.0 / each
    );
    // All send on, each once in five ticks, into a queue that is above hard and grows: every tick reads and decides.
    let (before, mut spent) = (status.flows_weighed.get(), Duration::ZERO);
    for turn in 0..DECISIONS {
        for n in (turn % 5..flows).step_by(5) {
            source.show(&mut cache, scattered(n));
        }
        spent += tick(&mut source, &mut core, TICK, DECIDING);
    }
    println!(
        "{DECISIONS} ticks above hard, {} flows weighed: {:.0} us each",
        status.flows_weighed.get() - before,
        spent.as_micros() as f64 / f64::from(DECISIONS)
    );
    // Seven seconds of silence: nobody contributes any more, and ends without a partner are forgotten.
    for _ in 0..7_000 {
        tick(&mut source, &mut core, Nanos::from_millis(1), AGEING);
    }
    println!(
        "packets the flow cache had no room for: {}",
        cached.counters.cache_full.get()
    );
    println!("ends left after 7 s of silence: {}", status.ends.get());
    println!(
        "longest tick: {:?} entering, {:?} looking up, {:?} deciding, {:?} ageing",
        longest[ENTERING], longest[LOOKING_UP], longest[DECIDING], longest[AGEING]
    );
}

fn main() {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("cache") {
        // Few, for an instruction counter.
        return cache(20_000, &[64]);
    }
    if argument.as_deref() == Some("icrc") {
        return icrc(1_000_000);
    }
    let count = std::env::args().nth(2).and_then(|n| n.parse().ok());
    if let (Some(count), Some(family)) = (count, argument.as_deref()) {
        // As many as an instruction counter is asked for, five times.
        return cnp(count, Some(family));
    }
    let flows = argument.and_then(|n| n.parse().ok());
    cnp(2_000_000, None);
    cache(1_000_000, &[64, 4_096, 65_536]);
    million(flows.unwrap_or(1 << 20));
}

//! A full Internet table in the lookup images: loading, looking up, changing, flapping.
//!
//!     zcat table.txt.gz | cargo run --release -p npcc-pipeline --example full_table [FLAPS, default 2000000]
//!
//! One prefix a line on standard input. A reader on a thread of its own looks up without pause, as a worker would, and tells
//! when it first sees a change.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a program for measurements ends at the first surprise, and prints"
)]

use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::{Family, Prefix};
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::units::{Mac, PortId};

/// Sizes of the switch.
#[global_allocator]
static HEAP: npcc_heap::HugeHeap = npcc_heap::HugeHeap;

fn hop(n: u8) -> Adjacency {
    Adjacency {
        kind: Kind::Forward,
        port: PortId(1),
        vlan: 0,
        dst: Mac([2, 0, 0, 0, 2, n]),
        src: Mac([2, 0, 0, 0, 1, 1]),
        mtu: 0,
    }
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn wait(writer: &mut RouteWriter) {
    while !writer.ready() {
        std::hint::spin_loop();
    }
}

/// Looks up one address without pause and notes, in ns since `start`, when its next hop's last octet became `awaited`.
fn watch(mut reader: FibReader, shared: &Shared) {
    while !shared.stop.load(Ordering::Relaxed) {
        reader.refresh();
        let address = IpAddr::from(u32::to_be_bytes(
            shared.address.load(Ordering::Acquire) as u32
        ));
        let awaited = shared.awaited.load(Ordering::Acquire);
        let seen = reader
            .paths(address)
            .next()
            .map(|path| u64::from(path.dst.0[5]));
        if awaited != 0 && seen == Some(awaited) {
            shared
                .seen
                .store(shared.start.elapsed().as_nanos() as u64, Ordering::Release);
            shared.awaited.store(0, Ordering::Release);
        }
    }
}

struct Shared {
    start: Instant,
    stop: AtomicBool,
    address: AtomicU64,
    awaited: AtomicU64,
    seen: AtomicU64,
}

impl Shared {
    /// Time from the first change until the reader saw it; `change` makes it.
    fn time(&self, address: IpAddr, awaited: u8, change: impl FnOnce()) -> Duration {
        let IpAddr::V4(v4) = address else { panic!() };
        self.address
            .store(u64::from(u32::from(v4)), Ordering::Release);
        self.awaited.store(u64::from(awaited), Ordering::Release);
        let began = self.start.elapsed().as_nanos() as u64;
        change();
        while self.awaited.load(Ordering::Acquire) != 0 {
            std::hint::spin_loop();
        }
        Duration::from_nanos(self.seen.load(Ordering::Acquire).saturating_sub(began))
    }
}

fn reported(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    let (middle, most, last) = (at(50), at(99), at(100));
    println!(
        "{what}: median {middle:.1?}, 99 % {most:.1?}, max {last:.1?} of {}",
        times.len()
    );
}

/// CPU time of this thread: what the neighbours take is not in it.
fn worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .unwrap()
        .into()
}

#[expect(
    clippy::too_many_lines,
    reason = "a report from top to bottom: load, look up, change, and what each took"
)]
fn main() {
    let flaps: u64 = std::env::args()
        .nth(1)
        .map_or(2_000_000, |text| text.parse().unwrap());
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let prefixes: Vec<(Prefix, IpAddr)> = text
        .split_whitespace()
        .map(|word| {
            let (address, len) = word.split_once('/').unwrap();
            let address: IpAddr = address.parse().unwrap();
            let prefix = Prefix::new(address, len.parse().unwrap()).unwrap();
            (prefix, address)
        })
        .collect();
    let of = |family: Family| {
        prefixes
            .iter()
            .filter(move |(one, _)| one.family() == family)
    };
    let counts = [Family::V4, Family::V6].map(|family| of(family).count());
    println!("{} IPv4 and {} IPv6 prefixes", counts[0], counts[1]);

    let capacity = RouteCapacity {
        ipv4_routes: counts[0] + 1024,
        ipv6_routes: counts[1] + 1024,
        adjacencies: 1024,
        groups: 1024,
    };
    let began = Instant::now();
    let (mut writer, mut readers) = RouteWriter::new(capacity, 1);
    println!("memory reserved in {:.0?}", began.elapsed());
    let shared = Arc::new(Shared {
        start: Instant::now(),
        stop: AtomicBool::new(false),
        address: AtomicU64::new(0),
        awaited: AtomicU64::new(0),
        seen: AtomicU64::new(0),
    });
    let reader = readers.remove(0);
    let thread = {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || watch(reader, &shared))
    };

    let (began, before) = (Instant::now(), worked());
    for ((prefix, _), n) in prefixes.iter().zip((1..=16u8).cycle()) {
        writer.insert(*prefix, &[hop(n)]).unwrap();
    }
    let first = began.elapsed();
    writer.commit();
    wait(&mut writer);
    println!(
        "both copies loaded in {} ms (the first in {} ms), CPU time {} ms",
        began.elapsed().as_millis(),
        first.as_millis(),
        (worked() - before).as_millis()
    );

    let mut state = 88_172_645_463_325_252;
    let v4: Vec<(Prefix, IpAddr)> = of(Family::V4).copied().collect();
    let (mut times, mut own) = (Vec::new(), Vec::new());
    for n in [101, 102].into_iter().cycle().take(1000) {
        // The last one is watched: nothing longer may lie over its first address.
        let some = loop {
            let from = next(&mut state) as usize % (v4.len() - 1001);
            let (last, after) = (&v4[from + 999], &v4[from + 1000]);
            if !last.0.contains(after.1) {
                break &v4[from..from + 1000];
            }
        };
        wait(&mut writer);
        times.push(shared.time(some[999].1, n, || {
            let before = worked();
            for (prefix, _) in some {
                writer.insert(*prefix, &[hop(n)]).unwrap();
            }
            writer.commit();
            own.push(worked() - before);
        }));
    }
    reported("1,000 routes changed until seen", times);
    reported("CPU time of the change itself", own);

    let default = Prefix::new(IpAddr::from([0, 0, 0, 0]), 0).unwrap();
    let nowhere = IpAddr::from([240, 0, 0, 1]);
    let mut times = Vec::new();
    for n in [103, 104].into_iter().cycle().take(1000) {
        wait(&mut writer);
        times.push(shared.time(nowhere, n, || {
            writer.insert(default, &[hop(n)]).unwrap();
            writer.commit();
        }));
    }
    reported("default route changed until seen", times);

    let v6: Vec<(Prefix, IpAddr)> = of(Family::V6).copied().collect();
    wait(&mut writer);
    let before = (writer.len(), writer.groups_used());
    let began = Instant::now();
    for _ in 0..flaps {
        let (prefix, _) = v6[next(&mut state) as usize % v6.len()];
        wait(&mut writer);
        assert_eq!(writer.remove(prefix), Ok(true));
        writer.commit();
        wait(&mut writer);
        writer.insert(prefix, &[hop(7)]).unwrap();
        writer.commit();
    }
    wait(&mut writer);
    assert_eq!(
        before,
        (writer.len(), writer.groups_used()),
        "flaps left something behind"
    );
    let each = began.elapsed() / u32::try_from(flaps.max(1)).unwrap_or(u32::MAX);
    println!(
        "{flaps} IPv6 flaps: no error, routes and groups as before, {each:.1?} each (withdrawn, seen, announced, seen)"
    );
    shared.stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

//! Duration of a tick of the control core, and time until all senders are signalled, with many connections listed of which few send.
//!
//! `cargo run --release -p npcc-cnp --example tick [LISTED [ACTIVE]]`; time passes in it as it would on a core of its own: a tick
//! takes what it took, and 20 us at least.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement for a terminal"
)]

mod rig;
#[path = "rig/talk.rs"]
mod talk;

use std::collections::HashSet;
use std::time::Instant;

use npcc_cnp::control::ControlCore;
use npcc_cnp::flow_cache::FlowCache;
use npcc_pipeline::units::Nanos;

use rig::{HARD, KNOWN, NEW, TICK, WAN, config, scattered};
use talk::Talk;

/// Duration that an interrupted tick counts as.
const LONGEST: Nanos = Nanos::from_millis(2);
const TICKS: u32 = 2_000;

struct Bench {
    cache: FlowCache,
    core: ControlCore,
    now: Nanos,
    talk: Talk,
    signalled: HashSet<u32>,
    took: Vec<u64>,
}

impl Bench {
    fn new(listed: u32) -> Bench {
        let (cache, reader) = FlowCache::new(4 * listed as usize, WAN.bit(), 65_536, 7);
        let mut config = config(listed);
        (config.settings.cap, config.settings.cap_per_second) = (1_000, 1_000_000_000);
        let mut core = ControlCore::new(&config);
        core.touch_memory();
        assert!(core.attach(reader));
        Bench {
            cache,
            core,
            now: Nanos::from_millis(1),
            talk: Talk::new(),
            signalled: HashSet::new(),
            took: Vec::new(),
        }
    }

    /// Hosts of connection `n`: connections are of 64 pairs of hosts, as their ports are hashes of 14 bits.
    fn hosts(n: u32) -> (u32, u32) {
        (n % 64, scattered(n))
    }

    fn send(&mut self, n: u32) {
        self.talk.send(&mut self.cache, Bench::hosts(n), self.now);
    }

    fn answer(&mut self, n: u32) {
        self.talk.answer(&mut self.cache, Bench::hosts(n), self.now);
    }

    /// Runs one tick; returns the number of CNPs that left.
    fn tick(&mut self, depth: u64) -> usize {
        let (signalled, mut sent) = (&mut self.signalled, 0);
        let begin = Instant::now();
        self.core.run_call(self.now, |_, _| depth, &mut |order| {
            signalled.insert(order.flow.dest_qp().get());
            sent += 1;
            Ok(())
        });
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap();
        self.took.push(took);
        self.now += Nanos(took).clamp(TICK, LONGEST);
        sent
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse().unwrap());
    let (listed, active) = (
        arguments.next().unwrap_or(65_536),
        arguments.next().unwrap_or(128),
    );
    let mut bench = Bench::new(listed);
    for n in 0..listed {
        bench.send(n);
        bench.answer(n);
        if n % NEW == NEW / 2 {
            bench.tick(0);
        }
    }
    for _ in 0..6 * KNOWN {
        bench.tick(0);
    }
    // Those that send do so all the time, into a queue that is above hard and rises.
    let sending: Vec<u32> = (0..active).map(|n| n * (listed / active)).collect();
    let (began, status) = (bench.now, bench.core.status());
    let (mut reached, mut weighed) = (None, 0);
    bench.signalled.clear();
    bench.took.clear();
    for turn in 0..TICKS {
        sending.iter().for_each(|n| bench.send(*n));
        let before = status.flows_weighed.get();
        bench.tick(HARD + u64::from(turn) * 10_000);
        weighed += status.flows_weighed.get() - before;
        // Some share a port of the hash with others.
        if reached.is_none() && bench.signalled.len() * 100 >= sending.len() * 95 {
            reached = Some(bench.now.since(began));
        }
    }
    let took = &mut bench.took;
    took.sort_unstable();
    let share = |percent: usize| took[(took.len() - 1) * percent / 100] / 100;
    println!(
        "{listed} listed, {active} send: a tick takes {}.{} us in the middle, {}.{} us of 100 the 90th; it weighs {} flows",
        share(50) / 10,
        share(50) % 10,
        share(90) / 10,
        share(90) % 10,
        weighed / u64::from(TICKS)
    );
    match reached {
        Some(time) => println!("95 % of them are signalled within {} us", time.0 / 1_000),
        None => println!("{} of them are told", bench.signalled.len()),
    }
}

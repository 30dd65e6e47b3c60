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

use std::collections::HashSet;
use std::time::Instant;

use npcc_cnp::control::ControlCore;
use npcc_cnp::flow_cache::FlowCache;
use npcc_cnp::key::Qpn;
use npcc_cnp::pair::port_hash::port_of;
use npcc_pipeline::units::Nanos;
use npcc_pipeline::wire::checksum;

use rig::{
    DEST_QP, HARD, KNOWN, NEAR, NEW, Packets, READ_RESPONSE_MIDDLE, TICK, WAN, config, scattered,
};

const ACKNOWLEDGE: u8 = 0x11;
/// Offsets of the UDP source port in a crafted IPv4 frame, and of the last octet of each address.
const PORT: usize = 34;
const SOURCE: usize = 29;
const DESTINATION: usize = 33;
/// Duration that an interrupted tick counts as.
const LONGEST: Nanos = Nanos::from_millis(2);
const TICKS: u32 = 2_000;

struct Bench {
    cache: FlowCache,
    core: ControlCore,
    now: Nanos,
    forth: Packets,
    back: Packets,
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
            forth: Packets::new(READ_RESPONSE_MIDDLE, 4_096, NEAR, WAN),
            back: Packets::new(ACKNOWLEDGE, 0, WAN, NEAR),
            signalled: HashSet::new(),
            took: Vec::new(),
        }
    }

    /// Hosts of connection `n`: connections are of 64 pairs of hosts, as their ports are hashes of 14 bits.
    fn hosts(n: u32) -> (u32, u32) {
        (n % 64, scattered(n))
    }

    fn send(&mut self, n: u32) {
        let (host, qp) = Bench::hosts(n);
        let port = port_of(Qpn::new(qp ^ 1), Qpn::new(qp));
        self.forth.put::<3>(DEST_QP, qp);
        self.forth.put::<2>(PORT, port.into());
        address(&mut self.forth.frame, SOURCE, host);
        self.forth.show(&mut self.cache, self.now);
    }

    fn answer(&mut self, n: u32) {
        let (host, qp) = Bench::hosts(n);
        let port = port_of(Qpn::new(qp ^ 1), Qpn::new(qp));
        self.back.frame[26..30].copy_from_slice(&[10, 9, 2, 2]);
        self.back.frame[30..34].copy_from_slice(&[10, 0, 0, 0]);
        self.back.put::<3>(DEST_QP, qp ^ 1);
        self.back.put::<2>(PORT, port.into());
        address(&mut self.back.frame, DESTINATION, host);
        self.back.show(&mut self.cache, self.now);
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

/// Writes the last octet of an address.
fn address(frame: &mut [u8], at: usize, host: u32) {
    frame[at] = host.to_le_bytes()[0];
    frame[24..26].fill(0);
    let sum = !checksum::sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
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
        Some(time) => println!("95 % of them are told within {} us", time.0 / 1_000),
        None => println!("{} of them are told", bench.signalled.len()),
    }
}

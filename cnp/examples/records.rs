//! Cost of a record to the control core, with many flows: first data alone between two hosts, then connections between
//! many, both directions of which are seen.
//!
//! `cargo run --release -p npcc-cnp --example records [FLOWS [ROUNDS [data | connections]]]`; `READS` in the environment: flows
//! read a tick, at most.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement for a terminal"
)]

mod rig;

use std::time::{Duration, Instant};

use npcc_cnp::control::ControlCore;
use npcc_cnp::control::config::ControlConfig;
use npcc_cnp::flow_cache::FlowCache;
use npcc_pipeline::units::Nanos;
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;

use rig::{DEST_QP, KNOWN, NEAR, NEW, Packets, READ_RESPONSE_MIDDLE, TICK, WAN, config, scattered};

const SEND_ONLY: u8 = 0x04;
const ACK: u8 = 0x11;

/// Range of the IPv4 header in a crafted frame, and offsets of its fields.
const HEADER: std::ops::Range<usize> = 14..34;
const CHECKSUM: usize = 24;
const SOURCE: usize = 26;
const DESTINATION: usize = 30;
const UDP_PORT: usize = 34;
const PSN: usize = 51;

/// Updates the IPv4 header's checksum.
fn seal(packet: &mut Packets) {
    packet.put::<2>(CHECKSUM, 0);
    let words = packet.frame[HEADER]
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet.put::<2>(CHECKSUM, !((folded & 0xffff) + (folded >> 16)));
}

struct Bench {
    cache: FlowCache,
    core: ControlCore,
    now: Nanos,
    spent: Duration,
}

impl Bench {
    fn new(flows: u32) -> Bench {
        let config = ControlConfig {
            reads_per_tick: std::env::var("READS").map_or(512, |n| n.parse().unwrap()),
            ..config(flows)
        };
        let (cache, reader) = FlowCache::new(4 * flows as usize, WAN.bit(), 65_536, 7);
        let mut core = ControlCore::new(&config);
        core.touch_memory();
        assert!(core.attach(reader));
        Bench {
            cache,
            core,
            now: Nanos::from_millis(1),
            spent: Duration::ZERO,
        }
    }

    #[inline(never)]
    fn tick(&mut self) {
        self.now += TICK;
        let begin = Instant::now();
        self.core.run_call(self.now, |_, _| 0, &mut |_| Ok(()));
        self.spent += begin.elapsed();
    }

    /// Shows all flows once, `burst` of them between two ticks; returns the cost of a record in ns.
    fn round(
        &mut self,
        flows: u32,
        burst: u32,
        show: &mut impl FnMut(&mut FlowCache, u32, Nanos),
    ) -> f64 {
        let status = self.core.status();
        let before = status.records.get();
        self.now += Nanos::from_millis(20);
        self.spent = Duration::ZERO;
        for n in 0..flows {
            show(&mut self.cache, n, self.now);
            if n % burst == burst - 1 {
                self.tick();
            }
        }
        self.spent.as_nanos() as f64 / (status.records.get() - before) as f64
    }
}

fn measure(
    name: &str,
    flows: u32,
    rounds: u32,
    a_flow: u32,
    mut show: impl FnMut(&mut FlowCache, u32, Nanos),
) {
    let mut bench = Bench::new(flows);
    let entering = bench.round(flows, NEW / a_flow, &mut show);
    (0..100).for_each(|_| bench.tick());
    let mut again: Vec<f64> = (0..rounds)
        .map(|_| bench.round(flows, KNOWN / a_flow, &mut show))
        .collect();
    again.sort_by(f64::total_cmp);
    let status = bench.core.status();
    println!(
        "{name}: {} flows, {} ends; entering {entering:.0} ns a record; again {:.0} (best), {:.0} (median): {:.1} M/s",
        status.flows.get(),
        status.ends.get(),
        again[0],
        again[again.len() / 2],
        1_000.0 / again[again.len() / 2],
    );
}

fn data_alone(flows: u32, rounds: u32) {
    let mut data = Packets::new(READ_RESPONSE_MIDDLE, 4_096, NEAR, WAN);
    measure("data alone", flows, rounds, 1, |cache, n, now| {
        data.put::<3>(DEST_QP, scattered(n));
        data.show(cache, now);
    });
}

fn connections(flows: u32, rounds: u32) {
    let mut data = Packets::new(SEND_ONLY, 4_096, NEAR, WAN);
    let mut back = Packets::new(ACK, 4, WAN, NEAR);
    let mut turn = 0;
    measure("connections", flows, rounds, 2, |cache, n, now| {
        turn += 1;
        let (near, far) = (scattered(n), scattered(n ^ 0x80_0000));
        let psn = scattered(n).wrapping_add(turn / flows) & 0xff_ffff;
        let port = u32::from(port_of(Qpn::new(near), Qpn::new(far)));
        let (sender, receiver) = (0x0a00_0100 | n & 0x1f, 0x0a09_0100 | n >> 5 & 0x1f);
        for (packet, from, to, qpn) in [
            (&mut data, sender, receiver, far),
            (&mut back, receiver, sender, near),
        ] {
            packet.put::<4>(SOURCE, from);
            packet.put::<4>(DESTINATION, to);
            packet.put::<2>(UDP_PORT, port);
            packet.put::<3>(DEST_QP, qpn);
            packet.put::<3>(PSN, psn);
            seal(packet);
            packet.show(cache, now);
        }
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|n| n.parse().ok());
    let (flows, rounds) = (number(0).unwrap_or(1 << 20), number(1).unwrap_or(5));
    let which = arguments.get(2).map(String::as_str);
    if which != Some("connections") {
        data_alone(flows, rounds);
    }
    if which != Some("data") {
        connections(flows, rounds);
    }
}

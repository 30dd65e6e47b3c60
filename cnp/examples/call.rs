//! Duration of a call of the control core by what it does: a call alone, a record, a flow that is read, a CNP. The simulator's
//! `control_cost` has these figures (`sim/src/scenario/limits.rs`).
//!
//! `cargo run --release -p npcc-cnp --example call [POLICY]`; one call in 4 us, medians of calls that do no more than what is measured.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement for a terminal"
)]

mod rig;
#[path = "rig/talk.rs"]
mod talk;

use std::hint::black_box;
use std::time::Instant;

use npcc_cnp::control::ControlCore;
use npcc_cnp::control::config::WatchedQueueConfig;
use npcc_cnp::flow_cache::FlowCache;
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::units::{Mac, Nanos};
use npcc_roce::build::{CnpHeader, CnpSpec};

use rig::{HARD, KNOWN, NEW, TICK, WAN, config, scattered};
use talk::Talk;

/// Time between two calls while the policy `model` runs.
const PERIOD: Nanos = Nanos::from_micros(4);
/// Calls of one phase.
const CALLS: u32 = 20_000;

/// Work of one call, and the nanoseconds it took.
#[derive(Debug, Clone, Copy, Default)]
struct Did {
    records: u64,
    flows: u64,
    cnps: u64,
    took: f64,
}

struct Bench {
    cache: FlowCache,
    core: ControlCore,
    now: Nanos,
    talk: Talk,
}

impl Bench {
    fn new(flows: u32, policy: PolicyName) -> Bench {
        let (cache, reader) = FlowCache::new(4 * flows.max(1_024) as usize, WAN.bit(), 65_536, 7);
        let mut config = config(flows.max(1_024));
        let queue = config.settings.queues[0];
        config.settings.queues = vec![WatchedQueueConfig::new(
            (queue.port, queue.priority),
            queue.detector,
            policy.defaults(),
        )];
        (config.settings.cap, config.settings.cap_per_second) = (1_000, 1_000_000_000);
        let mut core = ControlCore::new(&config);
        core.touch_memory();
        assert!(core.attach(reader));
        Bench {
            cache,
            core,
            now: Nanos::from_millis(1),
            talk: Talk::new(),
        }
    }

    /// All connections are of one host.
    fn send(&mut self, n: u32) {
        self.talk.send(&mut self.cache, (0, scattered(n)), self.now);
    }

    fn answer(&mut self, n: u32) {
        self.talk
            .answer(&mut self.cache, (0, scattered(n)), self.now);
    }

    fn call(&mut self, depth: u64, period: Nanos) -> Did {
        self.now += period;
        let status = self.core.status();
        let (records, flows) = (status.records.get(), status.flows_read.get());
        let mut cnps = 0;
        let begin = Instant::now();
        self.core.run_call(self.now, |_, _| depth, &mut |order| {
            let spec = CnpSpec {
                flow: order.flow,
                sender_qpn: order.sender_qpn,
                dst_mac: Mac([2, 0, 0, 0, 1, 3]),
                src_mac: Mac([2, 0, 0, 0, 1, 1]),
                vlan: None,
                ip_id: 0,
                header: CnpHeader::default(),
            };
            black_box(spec.build());
            cnps += 1;
            Ok(())
        });
        let took = begin.elapsed().as_nanos() as f64;
        Did {
            records: status.records.get() - records,
            flows: status.flows_read.get() - flows,
            cnps,
            took,
        }
    }
}

/// Time of a call's decision and of each CNP besides, by least squares over the calls that made any.
fn decision_and_cnp(calls: &[Did], rest: impl Fn(&Did) -> f64) -> (f64, f64) {
    let points: Vec<(f64, f64)> = calls
        .iter()
        .filter(|did| did.cnps > 0)
        .map(|did| (did.cnps as f64, rest(did)))
        // An interrupt, and not work of this call.
        .filter(|(_, time)| *time < 200_000.0)
        .collect();
    let n = points.len() as f64;
    let mean = |value: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / n;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let slope = mean(&|point| (point.0 - x) * (point.1 - y)) / mean(&|point| (point.0 - x).powi(2));
    (y - slope * x, slope)
}

/// Median of `value` over the calls that `fits` selects, with their number.
fn median(
    calls: &[Did],
    fits: impl Fn(&Did) -> bool,
    value: impl Fn(&Did) -> f64,
) -> Option<(f64, usize)> {
    let mut values: Vec<f64> = calls.iter().filter(|did| fits(did)).map(value).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.get(values.len() / 2)?;
    Some((*middle, values.len()))
}

fn main() {
    let policy = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "model".to_owned());
    let policy = PolicyName::named(&policy).unwrap();
    println!(
        "flows   call  record   flow  decision    CNP   ns; calls of each kind: idle, with records, that read flows, with CNPs"
    );
    for flows in [4, 16, 64, 512, 2_048] {
        let mut bench = Bench::new(flows, policy);
        for n in 0..flows {
            bench.send(n);
            bench.answer(n);
            if n % NEW == NEW / 2 {
                bench.call(0, TICK);
            }
        }
        for _ in 0..KNOWN {
            bench.call(0, TICK);
        }
        let mut calls: Vec<Did> = (0..CALLS).map(|_| bench.call(0, PERIOD)).collect();
        // 100G are twelve frames of 4,178 bytes in a call; those of one flow stand together, as a queue pair's do.
        let (mut next, mut depth) = (0, 0);
        for turn in 0..2 * CALLS {
            for frame in 0..12 {
                bench.send((next + frame / 4) % flows);
            }
            next = (next + 3) % flows;
            if turn % 7 == 0 {
                bench.answer(next);
            }
            // First no depth; then a queue that rises to `hard` and falls, again and again.
            depth = match turn {
                turn if turn < CALLS => 0,
                turn if turn / 400 % 2 == 0 => (depth + 20_000).min(HARD + 500_000),
                _ => depth.saturating_sub(15_000),
            };
            calls.push(bench.call(depth, PERIOD));
        }
        let idle = |did: &Did| (did.records, did.flows, did.cnps) == (0, 0, 0);
        let (call, n_call) = median(&calls, idle, |did| did.took).unwrap();
        let (flow, n_flow) = median(
            &calls,
            |did| did.records == 0 && did.cnps == 0 && did.flows > 0,
            |did| (did.took - call) / did.flows as f64,
        )
        .unwrap_or_default();
        let known = |did: &Did| call + flow * did.flows as f64;
        let (record, n_record) = median(
            &calls,
            |did| did.cnps == 0 && did.records > 0,
            |did| (did.took - known(did)) / did.records as f64,
        )
        .unwrap_or_default();
        let rest = |did: &Did| did.took - known(did) - record * did.records as f64;
        let (decision, cnp) = decision_and_cnp(&calls, rest);
        let cnps: Vec<u64> = calls
            .iter()
            .map(|did| did.cnps)
            .filter(|n| *n > 0)
            .collect();
        let most = cnps.iter().max().copied().unwrap_or_default();
        println!(
            "{flows:5} {call:6.0} {record:7.0} {flow:6.0} {decision:9.0} {cnp:6.0}   {n_call}, {n_record}, {n_flow}, {} with up to {most}",
            cnps.len()
        );
    }
}

//! Work per tick, counted and not timed, with many more flows than a tick can look at; and the time for which state is kept.
//!
//! 2^17 flows here; `cargo run --release -p npcc-cnp --example speed` does a million, and says how long a tick took.

use npcc_pipeline::frame::{FrameBuf, wire_len};
use npcc_pipeline::units::Nanos;

use crate::control::config::ControlConfig;
use crate::flow_cache::FlowCache;
use crate::policy::PolicyName;
use crate::table::RECENT;
use crate::traffic_tests::rig::{Packet, Rig, WAN, config};
use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;
use npcc_roce::pair::port_hash::port_of;

const TICK: Nanos = Nanos::from_micros(20);
const MANY: u32 = 1 << 17;

/// A data packet that needs only its own few bytes; flow `n` of many hosts.
fn data(n: u32) -> Packet {
    let [_, high, middle, low] = n.to_be_bytes();
    Packet {
        src: [10, high, middle, low],
        dst: [10, 200, 2, 2],
        port: 50_000,
        opcode: 0x0a,
        qpn: n & 0xff_ffff,
        psn: 0,
        payload: 64,
    }
}

fn rig(config: &ControlConfig, flows: u32) -> Rig {
    let mut rig = Rig::new(config);
    let (cache, reader) = FlowCache::new(8 * flows as usize, WAN.bit(), 4 * flows as usize, 7);
    assert!(rig.core.attach(reader));
    rig.cache = cache;
    rig
}

fn big(flows: u32) -> ControlConfig {
    ControlConfig {
        // They are not answered, and such flows have three quarters of the table.
        flows: flows as usize / 3 * 4 + 4,
        ends: 2 * flows as usize,
        new_flows: u64::MAX,
        new_flows_burst: u64::MAX,
        ..config(TICK)
    }
}

/// Work of one tick: records processed, endpoints entered, flows read, flows weighed, CNPs.
fn work(rig: &mut Rig, time: Nanos, depth: u64) -> [u64; 5] {
    let status = rig.core.status();
    let counts = |sent: usize| {
        [
            status.records.get(),
            status.ends.get(),
            status.flows_read.get(),
            status.flows_weighed.get(),
            sent as u64,
        ]
    };
    let before = counts(rig.sent.len());
    rig.tick(time, depth);
    let after = counts(rig.sent.len());
    std::array::from_fn(|at| after[at].saturating_sub(before[at]))
}

fn most(one: [u64; 5], other: [u64; 5]) -> [u64; 5] {
    std::array::from_fn(|at| one[at].max(other[at]))
}

/// Lets all flows pause.
fn settle(rig: &mut Rig) {
    for _ in 0..200 {
        rig.tick(TICK, 0);
    }
}

#[test]
fn no_tick_does_more_than_its_share_however_many_flows_there_are() {
    let defaults = ControlConfig::default();
    let (reads, orders) = (
        defaults.reads_per_tick as u64,
        defaults.cnps_per_tick as u64,
    );
    let mut rig = rig(&big(MANY), MANY);
    // All begin at once.
    for n in 0..MANY {
        rig.out(&data(n));
    }
    let mut all = [0; 5];
    for _ in 0..=MANY / 64 {
        all = most(all, work(&mut rig, TICK, 0));
    }
    // A few of so many find their set of the cache busy.
    let flows = rig.core.status().flows.get();
    assert!(flows > u64::from(MANY) / 100 * 99, "{flows}");
    let [records, entered, read, ..] = all;
    assert_eq!((records, entered), (64, 64), "new ends");
    assert!(read <= reads, "{read}");
    // Paused flows of a quiet queue are read once in 10 ms.
    settle(&mut rig);
    let [_, _, read, ..] = work(&mut rig, TICK, 0);
    assert_eq!(read, flows * TICK.0 / 10_000_000 + 1);
    // All send on, once in five ticks, into a queue that is deep and rises.
    let mut all = [0; 5];
    for tick in 0..30 {
        for n in (tick % 5..MANY).step_by(5) {
            rig.out(&data(n));
        }
        let depth = 900_000 + u64::from(tick) * 100;
        all = most(all, work(&mut rig, TICK, depth));
    }
    let [records, _, read, weighed, sent] = all;
    assert!(records <= 512 && read <= reads && sent <= orders, "{all:?}");
    // A decision weighs flows of which bytes were read in its window of five ticks, and not all that are listed.
    assert!(rig.core.listed(0) as u64 == flows && read == reads);
    assert!(weighed > 4 * reads && weighed <= 6 * reads, "{all:?}");
    // No flow is answered: unpaired endpoints are forgotten after 6 s, eight a tick.
    let before = rig.core.status().ends.get();
    let all = work(&mut rig, Nanos::from_millis(6_100), 0);
    let gone = before - rig.core.status().ends.get();
    assert!(gone == 8 && all[2] <= reads, "{gone} {all:?}");
}

/// A ring of records overflows; flows not read in one tick are read in another, unless a decision needs them now.
#[test]
fn of_a_quiet_queue_less_is_read_in_ticks_that_take_in_records() {
    let mut rig = rig(&big(MANY), MANY);
    let all = |rig: &mut Rig| {
        for n in 0..MANY {
            rig.out(&data(n));
        }
    };
    all(&mut rig);
    for _ in 0..=MANY / 64 {
        rig.tick(TICK, 0);
    }
    settle(&mut rig);
    let slow = rig.core.listed(0) as u64 * TICK.0 / 10_000_000 + 1;
    let [records, _, read, ..] = work(&mut rig, TICK, 0);
    assert_eq!((records, read), (0, slow), "nothing to take in");
    // Their second packets are still shown.
    all(&mut rig);
    let [records, _, read, ..] = work(&mut rig, TICK, 0);
    assert_eq!((records, read), (512, 64), "quiet");
    let [records, _, read, ..] = work(&mut rig, TICK, 900_000);
    assert_eq!((records, read), (512, 512), "deep");
}

/// Regression: readings of many flows took all of each tick and half of the next: flows that needed a CNP waited.
#[test]
fn of_a_quiet_queue_less_is_read_in_ticks_that_come_late() {
    let mut rig = rig(&big(MANY), MANY);
    for n in 0..MANY {
        rig.out(&data(n));
    }
    for _ in 0..=MANY / 64 {
        rig.tick(TICK, 0);
    }
    settle(&mut rig);
    let reads = |rig: &mut Rig, time, depth| work(rig, time, depth)[2];
    let all = rig.core.listed(0) as u64 * TICK.0 / 10_000_000 + 1;
    assert_eq!(reads(&mut rig, TICK, 0), all, "on time");
    let late = TICK + TICK;
    let few: Vec<_> = (0..4).map(|_| reads(&mut rig, late, 0)).collect();
    assert_eq!(few, [256, 128, 64, 64]);
    assert_eq!(reads(&mut rig, late, 900_000), 64, "deep, and nobody sends");
    let more: Vec<_> = (0..4).map(|_| reads(&mut rig, TICK, 0)).collect();
    assert_eq!(more, [65, 66, 67, 68]);
    for _ in 0..512 {
        rig.tick(TICK, 0);
    }
    assert_eq!(reads(&mut rig, TICK, 0), all, "on time again");
}

/// With very many flows a round of readings takes 40 ms and more. A record of a flow that sends on is then not the end of a pause: the bytes
/// since its last reading were not all sent since the record.
#[test]
fn a_flow_that_is_seldom_read_has_not_paused() {
    const FLOWS: u32 = 70_000;
    let config = big(FLOWS);
    let mut rig = rig(&config, FLOWS);
    for n in 0..FLOWS {
        rig.out(&data(n));
    }
    for _ in 0..=FLOWS / 64 {
        rig.tick(TICK, 0);
    }
    // Most of them send now and then, and these few steadily.
    const STEADY: u32 = 48;
    let (mut most, mut rest) = (0, (STEADY..FLOWS).cycle());
    for tick in 0..22_000u32 {
        for n in (0..STEADY).filter(|n| n % 4 == tick % 4) {
            rig.out(&data(n));
        }
        for n in rest.by_ref().take(4) {
            rig.out(&data(n));
        }
        rig.tick(TICK + TICK, 0);
        if tick > 1_500 {
            let bytes = (0..STEADY).map(|flow| rig.core.in_window(flow, config.window(), rig.now));
            most = most.max(bytes.max().unwrap());
        }
    }
    let packet = wire_len(data(0).frame().data().len());
    assert!(
        most > 0 && most <= 2 * u64::from(packet),
        "{most} bytes in 100 us, of a packet of {packet} in 160"
    );
}

/// With more reads a tick than anybody configures, the flows of one window are more than a decision weighs.
#[test]
fn a_decision_weighs_and_signals_a_bounded_number_of_flows() {
    const FLOWS: u32 = 12_000;
    let mut config = ControlConfig {
        reads_per_tick: 3_000,
        ..big(FLOWS)
    };
    (config.settings.cap, config.settings.cap_per_second) = (1_000, 1_000_000_000);
    let mut rig = rig(&config, FLOWS);
    for n in 0..FLOWS {
        connect(&mut rig, n);
        if n % 16 == 15 {
            rig.tick(TICK, 0);
        }
    }
    let mut all = [0; 5];
    for tick in 0..20 {
        for n in 0..FLOWS {
            rig.out(&forth(n));
        }
        all = most(all, work(&mut rig, TICK, 900_000 + tick * 100));
    }
    let orders = config.cnps_per_tick as u64;
    assert_eq!(all[2..], [3_000, RECENT as u64, orders]);
    let contributors = rig.core.status().queues()[0].contributors.get();
    assert_eq!(contributors, RECENT as u64);
}

#[test]
fn contributions_age_between_three_and_six_seconds() {
    const FLOWS: u32 = 5_000;
    let mut rig = rig(&big(FLOWS), FLOWS);
    for n in 0..FLOWS {
        rig.out(&data(n));
    }
    for _ in 0..=FLOWS / 64 {
        rig.tick(TICK, 0);
    }
    let listed = |rig: &Rig| rig.core.listed(0);
    let all = listed(&rig);
    assert!(all > FLOWS as usize / 100 * 99);
    for _ in 0..2_900 {
        rig.tick(Nanos::from_millis(1), 0);
    }
    assert_eq!(listed(&rig), all, "2.9 s");
    for _ in 0..3_100 {
        rig.tick(Nanos::from_millis(1), 0);
    }
    assert_eq!(listed(&rig), 0, "6 s");
}

/// Data of connection `n`, with the hash as UDP source port.
fn forth(n: u32) -> Packet {
    let (a, b) = (0x10_0000 + n, 0x20_0000 + n);
    Packet {
        src: [10, 0, 1, 3],
        dst: [10, 0, 2, 2],
        port: port_of(Qpn::new(a), Qpn::new(b)),
        qpn: b,
        ..data(0)
    }
}

fn connect(rig: &mut Rig, n: u32) {
    let forth = forth(n);
    rig.out(&forth);
    rig.back(&Packet {
        src: forth.dst,
        dst: forth.src,
        opcode: 0x11,
        qpn: 0x10_0000 + n,
        payload: 0,
        ..forth
    });
}

#[test]
fn pairs_are_kept_for_hours_and_the_oldest_go_first_under_pressure() {
    let hour = Nanos::from_millis(3_600_000);
    let small = ControlConfig {
        flows: 64,
        ends: 64,
        ..config(TICK)
    };
    let mut rig = Rig::new(&small);
    for n in 0..32 {
        connect(&mut rig, n);
        rig.tick(TICK, 0);
    }
    let paired = |rig: &Rig| rig.core.status().paired(Evidence::PortHash).get();
    assert_eq!(paired(&rig), 32);
    for _ in 0..12 {
        rig.tick(hour, 0);
    }
    let status = rig.core.status();
    assert_eq!(
        (paired(&rig), status.ends.get(), status.ends_displaced.get()),
        (32, 64, 0),
        "12 hours"
    );
    // Nothing has come back since, and yet it is signalled at its first packet: pair 0 is in use again.
    connect(&mut rig, 0);
    assert_eq!(rig.tick(TICK, 900_000), 1);
    // Eight more connections: the eight longest unused make room, pair 0 does not.
    for n in 100..108 {
        connect(&mut rig, n);
        rig.tick(TICK, 0);
    }
    assert_eq!((status.ends.get(), status.ends_displaced.get()), (64, 16));
    // Of these only the data are seen: the pairing was remembered.
    let mut signalled = |n| {
        rig.tick(Nanos::from_millis(1), 900_000);
        rig.out(&forth(n));
        rig.tick(TICK, 900_000) == 1
    };
    let all = [0, 107, 20, 30].map(&mut signalled);
    assert_eq!(all, [true; 4]);
    let all = [1, 8].map(&mut signalled);
    assert_eq!(all, [false; 2]);
}

/// Connections that were all used a second ago, of which `ELEPHANTS` send now.
fn listed(config: &ControlConfig, flows: u32) -> Rig {
    let mut rig = rig(config, 2 * flows);
    for n in 0..flows {
        connect(&mut rig, n);
        if n % 32 == 31 {
            rig.tick(TICK, 0);
        }
    }
    settle(&mut rig);
    assert_eq!(rig.core.listed(0), flows as usize);
    rig
}

const LISTED: u32 = 65_536;
const ELEPHANTS: u32 = 128;

/// Regression: they were weighed once in 128 ticks: a tick reads 512 flows of those that were seen within three seconds.
#[test]
fn of_many_listed_flows_those_that_send_are_weighed_in_every_tick() {
    let mut config = big(LISTED);
    (config.settings.cap, config.settings.cap_per_second) = (1_000, 1_000_000_000);
    let mut rig = listed(&config, LISTED);
    let elephant = |n: u32| forth(n * (LISTED / ELEPHANTS));
    for tick in 0..50 {
        for n in 0..ELEPHANTS {
            rig.out(&elephant(n));
        }
        let [_, _, read, weighed, sent] = work(&mut rig, TICK, 900_000 + tick * 1_000);
        // From the first tick on: their workers report that they send again.
        assert_eq!(weighed, u64::from(ELEPHANTS), "tick {tick}");
        assert!(read <= 128 + 64, "{read}");
        // Some share a port of the hash with others; later all are found not to respond.
        assert!(
            tick > 4 || (120..=128).contains(&sent),
            "tick {tick}: {sent}"
        );
    }
}

/// Regression: 1,600 listed flows were the most; `model` never ran at a site with more queue pairs.
#[test]
fn model_works_on_any_number_of_idle_queue_pairs() {
    let mut config = big(LISTED);
    config.settings.queues[0].policy = PolicyName::Model.defaults();
    let mut rig = listed(&config, LISTED);
    let every = rig.core.period();
    for step in 0..200u32 {
        for n in (0..64).filter(|n| n % 5 == step % 5) {
            rig.out(&forth(n * 1_000));
        }
        rig.tick(every, 50_000 + u64::from(step) * 10_000);
    }
    let status = rig.core.status();
    assert_eq!(
        (status.queues()[0].fallbacks.get(), rig.core.active(0)),
        (0, 64)
    );
    assert!(rig.sent.len() > 64, "{}", rig.sent.len());
}

/// All 65,536 begin at once, more than a ring of wakes takes: the slow round finds the others, as fast as it can.
#[test]
fn a_flow_whose_waking_was_lost_is_found_soon() {
    const FLOWS: u32 = 40_000;
    let config = big(FLOWS);
    let mut rig = listed(&config, FLOWS);
    for n in 0..FLOWS {
        rig.out(&forth(n));
    }
    rig.tick(TICK, 900_000);
    let status = rig.core.status();
    assert!(
        status.wakes_lost.get() > 20_000,
        "{}",
        status.wakes_lost.get()
    );
    // These send on, and pause no more.
    let last = |n| forth(FLOWS - 1 - n);
    for tick in 0..FLOWS as u64 / 400 {
        for n in 0..ELEPHANTS {
            rig.out(&forth(n));
            rig.out(&last(n));
        }
        rig.tick(TICK, 900_000 + tick);
    }
    let window = config.window();
    for n in (0..ELEPHANTS).chain(FLOWS - ELEPHANTS..FLOWS) {
        assert!(rig.core.in_window(n, window, rig.now) > 0, "{n}");
    }
}

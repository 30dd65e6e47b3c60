//! Floods by a port of their own, by the world's clock: connections of other ports are still paired and signalled. docs/pairing.md has the
//! numbers.
#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "a law says what is wrong by panicking"
)]

use npcc_roce::pair::Evidence;

use crate::world::config::Switch;
use crate::world::packets::{self, Way};
use crate::world::{MS, Traffic, US, World, seeds};

/// Time of the control core for eight messages, between two readings of its clock, when it has a core of its own.
const EIGHT: u64 = 1_200;

/// Time of a run.
const RUN: u64 = 8 * MS;

/// Outcome of an honest connection in a flood.
#[derive(Debug)]
struct Outcome {
    /// Time in us from the REP, which leaves a round trip after the REQ, to the first CNP; `None` if there was none.
    signalled: Option<u64>,
    /// Flows paired by messages at the end.
    paired: u64,
    /// Messages that the control core heard in a second.
    heard: u64,
}

/// Sets up a connection by its messages from port 0 to 2, with `rtt` between REQ and REP, in a flood of `per_second` requests by port 1, with a control
/// core that has the `share`-th part of a core. Nothing but the messages can pair it.
fn in_flood(per_second: u64, share: u64, rtt: u64) -> Outcome {
    let switch = Switch {
        workers: 1,
        link: "100G",
        pool: "64MB",
        flows: 65_536,
        far: ", speed: 1G",
        npcc: "cnp: { earned: 0B }, ",
    };
    let mut world = World::new(&switch.text(), 1);
    world.slow_control(EIGHT * share);
    world.settings.links[2].delay = rtt / 2;
    let until = world.now + RUN;
    world.flood_of_requests((1, 3), per_second, until);
    world.run_to(world.now + 2 * MS);
    let flow = world.connect(Traffic {
        from: 0,
        to: 2,
        gap: 5_000,
        until,
        managed: true,
        answers: false,
        ..Traffic::default()
    });
    world.run_to(until);
    let status = world.control.core.status();
    let first = world.flows[flow].cnps.first().copied();
    let begins = until - (RUN - 2 * MS) + rtt;
    Outcome {
        signalled: first.map(|first| first.saturating_sub(begins) / US),
        paired: status.counts.paired[Evidence::Cm as usize].get(),
        heard: status.counts.cm.heard.get() * (1_000 * MS / RUN),
    }
}

/// Guards against eviction of requests, and against messages of a port that wait behind another port's flood: at every load below what the
/// control core hears at most, and with a core of its own at any load that was tried, the connection is paired in time.
#[test]
fn a_connection_is_paired_at_every_load_that_the_control_core_hears() {
    let mut failed = Vec::new();
    for share in [1, 2, 4, 8] {
        let most = in_flood(5_000_000, share, MS);
        println!("1/{share} of a core, 5000000 requests/s: {most:?}");
        assert!(share > 1 || most.signalled.is_some(), "{most:?}");
        for per_second in [100_000, 500_000, 1_000_000, 2_500_000] {
            let outcome = in_flood(per_second, share, MS);
            println!("1/{share} of a core, {per_second} requests/s: {outcome:?}");
            let late = outcome.paired == 0 || outcome.signalled.is_none_or(|after| after > 1_000);
            if per_second < most.heard && late {
                failed.push((per_second, share));
            }
        }
    }
    assert_eq!(failed, [], "(requests/s, part of a core)");
}

/// Makes a world with small tables, which a flood fills at once, and whose far port has a hundredth of the links' speed.
fn small(seed: u64) -> World {
    let switch = Switch {
        workers: 1 + (seed % 2) as u8,
        link: "100G",
        pool: "64MB",
        flows: 4_096,
        far: ", speed: 1G",
        npcc: "cnp: { earned: 0B }, hosts: { answering: [10.0.1.0/24] }, ",
    };
    World::new(&switch.text(), seed)
}

/// Lets port 1 send data of connections that do not exist to port 3, which is idle, from so many sources, 200 at most.
fn flood_of_flows(world: &mut World, sources: u64, per_second: u64, until: u64) {
    let way = world.hosts[1].way(world.hosts[3].address);
    let [a, b, c, _] = way.from.octets();
    let forge = move |n: u64| {
        let from = [a, b, c, 4 + (n % sources) as u8].into();
        packets::any(
            Way { from, ..way },
            (packets::WRITE_ONLY, 0x1000 + (n as u32 & 0x7f_ffff), 50_000),
            7,
            vec![0; 24],
        )
    };
    world.flood(1, per_second, until, Box::new(forge));
}

/// Docs: a new connection that comes by another port than the flood gets its first CNP within two ticks of its first answer. Guards against
/// tables, rings and budgets that the flood takes from others: it lasts until the bursts that all sources share are used up.
#[test]
fn new_connections_are_signalled_in_a_flood_of_new_flows() {
    for seed in seeds::first(4) {
        let sources = [1, 200][(seed / 2 % 2) as usize];
        let mut world = small(seed);
        let until = world.now + 330 * MS;
        flood_of_flows(&mut world, sources, 2_000_000, until);
        world.run_to(until - 30 * MS);
        let mut times = Vec::new();
        for _ in 0..6 {
            let flow = world.connect(Traffic {
                from: 0,
                to: 2,
                until,
                ..Traffic::default()
            });
            let time = 3 * MS + world.chance(MS);
            world.run_to(world.now + time);
            let known = &world.flows[flow];
            times.push(known.first_at.zip(known.cnps.first().copied()));
        }
        let after = times
            .iter()
            .map(|times| times.map(|(answer, cnp)| cnp.saturating_sub(answer) / US));
        let after: Vec<_> = after.collect();
        println!(
            "seed {seed}, {sources} sources: us from the first answer to the first CNP {after:?}"
        );
        assert!(
            after
                .iter()
                .all(|time| time.is_some_and(|time| time <= SOON)),
            "{after:?}\n{}",
            world.replay()
        );
    }
}

/// Two ticks, and the way of answer and CNP over their links and through their workers, in us.
const SOON: u64 = 40 + 10;

/// Guards against eviction of requests: a connection whose REP came after its REQ was pushed out was never paired. The flood has ten times as
/// many requests as there is room for, between REQ and REP.
#[test]
fn a_connection_is_paired_in_a_flood_of_requests() {
    for seed in seeds::first(8) {
        let mut world = small(seed);
        let rtt = 5 * MS + world.chance(5 * MS);
        world.settings.links[2].delay = rtt / 2;
        let until = world.now + 20 * MS;
        let per_second = 500_000 + world.chance(1_000_000);
        world.flood_of_requests((1, 3), per_second, until);
        world.run_to(world.now + 5 * MS);
        let begin = world.now;
        // No answers: only the connection manager's messages can pair it.
        let flow = world.connect(Traffic {
            from: 0,
            to: 2,
            until,
            managed: true,
            answers: false,
            ..Traffic::default()
        });
        world.run_to(until);
        let first = world.flows[flow].cnps.first();
        let after = first.map(|first| first.saturating_sub(begin + rtt) / US);
        let displaced = world.control.core.status().counts.cm.displaced.get();
        println!(
            "seed {seed}: {per_second} requests/s, round trip {rtt} ns, first CNP after {after:?} us, {displaced} displaced"
        );
        assert!(displaced > 1_000, "{displaced} requests displaced");
        assert!(
            after.is_some_and(|after| after <= 300),
            "{after:?}\n{}",
            world.replay()
        );
    }
}

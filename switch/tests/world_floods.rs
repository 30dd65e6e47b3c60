//! Load at which a connection is paired by its messages while another port is flooded with requests, by the world's clock: docs/pairing.md
//! has the numbers.
#![allow(
    clippy::panic,
    clippy::print_stdout,
    reason = "a law says what is wrong by panicking"
)]

use npcc_cnp::pair::Evidence;

use crate::world::config::Switch;
use crate::world::{MS, Traffic, US, World};

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

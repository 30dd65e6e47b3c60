//! Two real switches at one edge, with their feeds and nats-servers: flows whose answers take the other path, a box that is killed, a bus
//! that fails, and a peer that lies.
//!
//! Needs root and nats-server. Touches only namespaces and links of its own.

mod feeds;
mod hosts;
mod liar;
mod lies;
mod pair;
mod relay;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::alone;
use crate::common::net::run;
use hosts::{HALF_OF_ANSWERS, Hosts, ONE_BOX, Paths, QUARTERS, SURVIVOR, Seen, numbers};
use npcc_testkit::wait;
use pair::Pair;

/// Rows of docs/pairing.md with asymmetric paths and ports by hash.
const ROWS: [Paths; 2] = [HALF_OF_ANSWERS, QUARTERS];

/// Time in s in which each connection sends some 125 frames: several times what earns a CNP.
fn enough(connections: u32) -> f64 {
    1.0 + f64::from(connections) / 128.0
}

/// Returns true if this is 99 % of the connections.
const fn is_nearly_all(count: usize, connections: u32) -> bool {
    count * 100 >= connections as usize * 99
}

/// Has the hosts go on until nearly all connections are known, then begin their last phase; asserts that nearly all are signalled in it. Returns the
/// time until they were known. Both boxes forget an end 3 s after its last frame, so connections are counted while they send.
fn assert_nearly_all(pair: &Pair, hosts: &mut Hosts, connections: u32, paths: Paths) -> Duration {
    let is_known = || is_nearly_all(pair.known(connections, paths), connections);
    let took = wait::until("nearly all are known", wait::LONG, is_known);
    hosts.next();
    let seen = hosts.phase(paths);
    // Those signalled as soon as they were known count too.
    let signalled = |seen: &Seen| {
        let all = seen.cnps.keys().chain(seen.between.keys());
        all.collect::<BTreeSet<_>>().len()
    };
    let signalled: usize = seen.iter().map(signalled).sum();
    let counts = format!("{paths:?}: of {connections} are {signalled} signalled");
    println!("{counts}, nearly all known after {took:.1?}");
    assert!(is_nearly_all(signalled, connections), "{counts}");
    took
}

/// Has the hosts send until nearly all connections are known, and for a time in s after that; see [`assert_nearly_all`].
fn play_until_known(pair: &Pair, connections: u32, paths: Paths, seconds: f64) {
    let mut hosts = Hosts::start(&pair.net, connections, &[(paths, 0.0), (paths, seconds)]);
    hosts.phase(paths);
    assert_nearly_all(pair, &mut hosts, connections, paths);
}

/// Lets the connections begin while both servers hang, for 5 s, and messages about ends are lost; asserts that nearly all are known soon after
/// it, and signalled.
fn play_over_a_bad_bus(connections: u32, paths: Paths) {
    const PERCENT: u64 = 30;
    let mut pair = Pair::new();
    pair.connect_and_lose(PERCENT);
    let [server, other, ..] = pair.feeds().processes();
    let signal = |name: &str| run(&format!("kill -{name} {server} {other}"));
    let mut hosts = Hosts::start(
        &pair.net,
        connections,
        &[(paths, 5.0), (paths, enough(connections))],
    );
    signal("STOP");
    hosts.phase(paths);
    let before = pair.known(connections, paths);
    signal("CONT");
    let half = connections as usize / 2;
    assert!(before <= half, "{before} are known without the bus");
    let took = assert_nearly_all(&pair, &mut hosts, connections, paths);
    let (sent, lost) = pair.feeds().lost();
    println!(
        "nearly all known {:.1} s after the cut; {lost} of {sent} messages about ends were lost",
        took.as_secs_f64()
    );
    // Too few messages for a share, which is a law of the relay.
    assert!(lost > 0, "{lost} of {sent} lost");
}

#[test]
fn flows_whose_answers_take_the_other_path_are_paired_by_the_other_box() {
    let _alone = alone();
    for paths in ROWS {
        for connections in [8, 64] {
            let mut pair = Pair::new();
            pair.play(connections, paths, 0.5);
            assert_eq!(
                pair.known(connections, paths),
                connections as usize / 2,
                "{paths:?}: each for itself"
            );
            let [routes, pairs] = pair.ready();
            assert!(routes.is_some() && pairs.is_none(), "{pairs:?}");
            pair.connect();
            play_until_known(&pair, connections, paths, 2.0);
            wait::until("the pairs are ready", wait::LONG, || {
                let [routes, pairs] = pair.ready();
                pairs > routes
            });
            let shares = pair.paired_shares();
            let is_share = |share: &f64| (0.0..=100.0).contains(share);
            assert!(shares.iter().all(is_share), "{shares:?}");
            assert!(shares.iter().any(|share| *share > 10.0), "{shares:?}");
        }
    }
}

#[test]
fn a_bus_that_was_cut_and_loses_three_in_ten_makes_up_for_what_was_missed() {
    let _alone = alone();
    play_over_a_bad_bus(64, QUARTERS);
}

#[test]
#[ignore = "takes minutes: scripts/test-long fleet"]
fn thousands_of_flows_are_paired_by_the_other_box() {
    let _alone = alone();
    for paths in ROWS {
        for connections in [1_024, 4_096] {
            let mut pair = Pair::new();
            pair.connect();
            play_until_known(&pair, connections, paths, enough(connections));
        }
    }
}

#[test]
#[ignore = "takes minutes: scripts/test-long fleet"]
fn a_bad_bus_makes_up_for_what_was_missed_at_every_number_of_flows() {
    let _alone = alone();
    for paths in ROWS {
        for connections in [8, 64, 1_024, 4_096] {
            play_over_a_bad_bus(connections, paths);
        }
    }
}

/// The first box is killed, with its feed and its server, while data and answers pass both. From the change of routes on all data pass the
/// second, and no answer does. That it signals them within a second is a law of NPCC:
/// `foreign_ends::the_survivor_signals_the_flows_of_a_dead_box_within_a_second`.
#[test]
fn the_survivor_signals_the_flows_of_a_box_that_was_killed() {
    const CONNECTIONS: u32 = 64;
    let _alone = alone();
    let mut pair = Pair::new();
    pair.play(CONNECTIONS, QUARTERS, 0.5);
    pair.connect();
    let mut hosts = Hosts::start(&pair.net, CONNECTIONS, &[(QUARTERS, 1.0), (SURVIVOR, 2.0)]);
    hosts.phase(QUARTERS);
    pair.boxes[0].kill();
    let [server, _, feed, _] = pair.feeds().processes();
    run(&format!("kill -KILL {server} {feed}"));
    hosts.next();
    let [_, survivor] = hosts.phase(SURVIVOR);
    let moved = (0..CONNECTIONS).filter(|n| QUARTERS.data_of(*n) == 0);
    let first = moved.map(|n| survivor.cnps.get(&numbers(n).0).map(|(_, first)| *first));
    let first: Vec<Option<f64>> = first.collect();
    let signalled = first.iter().flatten().count();
    let last = first
        .iter()
        .flatten()
        .fold(0.0, |last: f64, one| last.max(*one));
    println!(
        "{signalled} of {} signalled, the last at {last:.3} s",
        first.len()
    );
    assert!(signalled * 100 >= first.len() * 95, "{first:?}");
}

/// The feed of a box hangs, then both servers are killed: the boxes forward and signal as one box alone does.
#[test]
fn without_a_bus_each_box_is_as_one_alone() {
    const CONNECTIONS: u32 = 8;
    let _alone = alone();
    let mut pair = Pair::new();
    pair.connect();
    let [server, other, feed, _] = pair.feeds().processes();
    for (fault, processes) in [
        ("kill -STOP", &[feed][..]),
        ("kill -KILL", &[server, other]),
    ] {
        for process in processes {
            run(&format!("{fault} {process}"));
        }
        let [seen, _] = pair.play(CONNECTIONS, ONE_BOX, 1.0);
        assert_eq!(pair.known(CONNECTIONS, ONE_BOX), CONNECTIONS as usize);
        assert_eq!(seen.cnps.len(), CONNECTIONS as usize, "{fault}: {seen:?}");
        // A CNP shows that many frames came in; these went out.
        assert!(seen.received >= u64::from(CONNECTIONS), "{fault}: {seen:?}");
    }
    for switch in &mut pair.boxes {
        switch.stop();
    }
}

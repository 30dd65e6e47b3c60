//! Peers that are believed and lie about the ends of flows, and one that says the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;
use npcc_testkit::wait;
use serde_json::{Value, json};

use super::assert_nearly_all;
use super::hosts::{FRAME, Hosts, SURVIVOR, numbers};
use super::pair::Pair;
use crate::common::alone;
use crate::common::forge::{A, B};
use crate::common::switch::Switch;

const CONNECTIONS: u32 = 64;
/// The default of `npcc.cnp.earned`, in bytes, and the least that a CNP costs a slow flow.
const EARNED: u64 = 16_384;
const LEAST_EARNED: u64 = 2_048;

/// Starts hosts whose flows the survivor sees for half a second without an answer; `then` are the seconds of further phases.
fn unknown_flows(pair: &Pair, then: &[f64]) -> Hosts {
    let seconds = [&[0.5], then].concat();
    let phases: Vec<_> = seconds.iter().map(|seconds| (SURVIVOR, *seconds)).collect();
    let mut hosts = Hosts::start(&pair.net, CONNECTIONS, &phases);
    hosts.phase(SURVIVOR);
    hosts
}

/// UDP source port of a connection.
const fn port(connection: u32) -> u16 {
    let (sender, receiver) = numbers(connection);
    port_of(Qpn::new(sender), Qpn::new(receiver))
}

/// Row of an end of the far host: queue pair of the sender, and UDP source port.
fn row((queue_pair, udp_port): &(u32, u16)) -> Value {
    json!({"kind": "end", "from": IpAddr::from(B), "to": IpAddr::from(A), "queue_pair": queue_pair, "udp_port": udp_port,
        "transport": "rc", "first_seen": 0, "last_seen": 0, "packets": 1})
}

/// Returns ends of queue pairs that no connection has.
fn random(count: u32) -> Vec<(u32, u16)> {
    let random = |n| (numbers(CONNECTIONS + n).0, port(2 * n));
    (0..count).map(random).collect()
}

/// Reports ends as a peer's. All must be accepted.
fn report(switch: &Switch, peer: &str, ends: &[(u32, u16)]) {
    // A list has 8 MiB at most.
    for ends in ends.chunks(25_000) {
        let rows: Vec<String> = ends.iter().map(|end| row(end).to_string()).collect();
        std::fs::write(switch.path(peer), rows.join("\n")).unwrap();
        let said = switch.done(&["pair", "suggest", "--peer", peer, peer]);
        let all = format!("\"accepted\":{},", ends.len());
        assert!(said.contains(&all), "{said}");
    }
}

/// A peer that is believed reports three times 100,000 ends that are none; then another reports those of the flows' senders.
#[test]
fn lies_of_a_peer_signal_nobody_and_the_truth_all() {
    const LIES: u32 = 100_000;
    let _alone = alone();
    let pair = Pair::new();
    let mut hosts = unknown_flows(&pair, &[1.0, 1.5]);
    let switch = &pair.boxes[1];
    let end = |n| (numbers(n).0, port(n));
    // Queue pair of no connection here.
    let other = |n| numbers(CONNECTIONS + n).0;
    let replayed = (CONNECTIONS..CONNECTIONS + LIES).map(end);
    // The flows' own ports, without the hash.
    let blind = (0..LIES).map(|n| (other(n), port(n % CONNECTIONS)));
    for lies in [random(LIES), replayed.collect(), blind.collect()] {
        report(switch, "liar", &lies);
    }
    hosts.next();
    let [_, seen] = hosts.phase(SURVIVOR);
    assert!(seen.cnps.is_empty() && seen.between.is_empty(), "{seen:?}");
    assert_eq!(pair.known(CONNECTIONS, SURVIVOR), 0);
    switch.done(&["pair", "distrust", "liar"]);
    let truth: Vec<(u32, u16)> = (0..CONNECTIONS).map(end).collect();
    report(switch, "honest", &truth);
    assert_nearly_all(&pair, &mut hosts, CONNECTIONS, SURVIVOR);
}

/// An authenticated peer publishes 100,000 ends that are none; its feed passes on as many as a box may have, and the switch accepts each of
/// these and holds the last ones.
#[test]
fn lies_of_an_authenticated_peer_over_the_bus_signal_nobody() {
    const LIES: u32 = 100_000;
    const MOST: u64 = 65_536;
    let _alone = alone();
    let mut pair = Pair::new();
    let mut hosts = unknown_flows(&pair, &[1.0]);
    pair.connect();
    let mut liar = pair.feeds().impersonate_first(&pair.boxes);
    let lies: Vec<Value> = random(LIES).iter().map(row).collect();
    liar.publish(&lies);
    let peer = || {
        let peers = pair.boxes[1].show("peers");
        let listed = peers["peers"].as_array().unwrap();
        listed.iter().find(|peer| peer["peer"] == "edge-1").cloned()
    };
    wait::until("the lies are accepted", wait::LONG, || {
        peer().is_some_and(|peer| peer["accepted"].as_u64() >= Some(MOST))
    });
    hosts.next();
    let [_, seen] = hosts.phase(SURVIVOR);
    assert!(seen.cnps.is_empty() && seen.between.is_empty(), "{seen:?}");
    assert_eq!(pair.known(CONNECTIONS, SURVIVOR), 0);
    assert_eq!(peer().unwrap()["cnps"], 0);
}

/// A peer that is believed names another queue pair for each flow, one whose hash with the receiver's is the flow's port.
#[test]
fn a_peer_that_computes_the_hash_gets_one_cnp_for_earned_bytes_until_it_is_distrusted() {
    let _alone = alone();
    let pair = Pair::with_earned(EARNED);
    let mut hosts = unknown_flows(&pair, &[2.0, 1.0]);
    let switch = &pair.boxes[1];
    let lie = |n| {
        let (sender, receiver) = numbers(n);
        let fits = |other: &u32| {
            *other != sender && port_of(Qpn::new(*other), Qpn::new(receiver)) == port(n)
        };
        ((2..1 << 22).find(fits).unwrap(), port(n))
    };
    let lies: Vec<(u32, u16)> = (0..CONNECTIONS).map(lie).collect();
    report(switch, "liar", &lies);
    hosts.next();
    let [_, seen] = hosts.see();
    let signalled: BTreeSet<u32> = seen.cnps.keys().copied().collect();
    let named = lies.iter().map(|(queue_pair, _)| *queue_pair).collect();
    assert!(signalled.is_subset(&named), "{signalled:#x?}");
    // Flows send in turn.
    let each = (seen.sent / u64::from(CONNECTIONS) + 1) * FRAME;
    let most = seen.cnps.values().map(|(count, _)| *count).max();
    println!(
        "{} signalled, at most {most:?} CNPs for {each} bytes",
        signalled.len()
    );
    assert!(
        most.is_some_and(|most| (1..=each / LEAST_EARNED + 1).contains(&most)),
        "{most:?} for {each} bytes"
    );

    let said = switch.done(&["pair", "distrust", "liar"]);
    let peers = switch.show("peers");
    let listed = peers["peers"].as_array().unwrap();
    let liar = listed.iter().find(|peer| peer["peer"] == "liar").unwrap();
    assert_eq!(liar["distrusted"], true, "{said}: {peers}");
    hosts.next();
    let [_, after] = hosts.see();
    assert!(after.cnps.is_empty(), "{after:?}");
    let sum =
        |seen: &BTreeMap<u32, (u64, f64)>| seen.values().map(|(count, _)| *count).sum::<u64>();
    let received = sum(&seen.between) + sum(&seen.cnps) + sum(&after.between);
    assert_eq!(liar["cnps"], received, "{peers}");
}

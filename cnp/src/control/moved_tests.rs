//! Tests of flows of moved hosts: they stay known with the watched queue that they came from, and have no part in its depth.

use npcc_pipeline::moved_hosts::HostAddress;
use npcc_pipeline::units::{Nanos, Priority};

use crate::control::config::ControlConfig;
use crate::control::tests::{data, warm};
use crate::host_rules::{HostRules, Unresponsive};
use crate::traffic_tests::rig::{QUEUE, Rig, with};

const LOOK: Nanos = Nanos::from_micros(20);
const QPS: (u32, u32) = (0x1_0018, 0x11);
const MOVED: Priority = Priority::new(5);

fn moving() -> ControlConfig {
    with(LOOK, |settings| {
        settings.hosts = HostRules {
            unresponsive: Unresponsive::Queue(MOVED),
            ..HostRules::default()
        };
    })
}

/// Priorities of the flows that the table shows.
fn shown(rig: &Rig) -> Vec<Priority> {
    let mut all: Vec<_> = rig
        .core
        .flows()
        .flows()
        .map(|flow| flow.flow.priority)
        .collect();
    all.sort();
    all
}

/// Sends packets of the flow for a while; returns the contributors of the watched queue.
fn send(rig: &mut Rig) -> usize {
    for _ in 0..8 {
        rig.out(&data(QPS.0, QPS.1));
        rig.tick(LOOK, 0);
    }
    let mut out = Vec::with_capacity(16);
    rig.core.tracker.contributors(0, rig.now, &mut out);
    out.len()
}

#[test]
fn a_flow_of_a_moved_host_stays_known_and_contributes_nothing_to_the_watched_queue() {
    let mut rig = warm(1, &moving());
    assert_eq!(send(&mut rig), 1);
    rig.queue = MOVED;
    rig.now += Nanos::from_millis(1);
    assert_eq!(send(&mut rig), 0);
    assert_eq!(shown(&rig), [QUEUE, MOVED]);
    // It is paired, read, and signalled for marks: so it can show that it responds.
    let bytes = |rig: &Rig| {
        let flows = rig.core.flows();
        let mut all = flows.flows().filter(|flow| flow.flow.priority == MOVED);
        all.next().map(|flow| flow.bytes).unwrap()
    };
    let before = bytes(&rig);
    send(&mut rig);
    rig.now += Nanos::from_millis(20);
    send(&mut rig);
    assert!(bytes(&rig) > before);
    let slot = rig.out(&data(QPS.0, QPS.1));
    assert!(rig.owes(slot));
    assert_eq!(rig.tick(LOOK, 0), 1);
    // Back in its queue it is a contributor again.
    rig.queue = QUEUE;
    rig.now += Nanos::from_millis(1);
    assert_eq!(send(&mut rig), 1);
}

/// Flows of the old priority would stay in a list from which nothing takes them.
#[test]
fn other_treatment_takes_all_hosts_back_and_their_flows_off_the_lists() {
    let mut rig = warm(4, &moving());
    let table = rig.core.moved_hosts().clone();
    let host = HostAddress::from(std::net::IpAddr::from([10, 0, 1, 3]));
    assert!(table.add(host) && table.priority() == MOVED);
    rig.queue = MOVED;
    for flow in 0..4 {
        rig.out(&data(QPS.0 + flow, QPS.1 + flow));
    }
    rig.tick(LOOK, 0);
    let before = rig.core.listed(0);
    let other = Priority::new(4);
    rig.configure(|settings| settings.hosts.unresponsive = Unresponsive::Queue(other))
        .unwrap();
    assert!(table.hosts().is_empty() && table.priority() == other);
    assert_eq!(rig.core.listed(0), before - 4);
    // What changes nothing takes nobody back.
    table.add(host);
    rig.configure(|settings| settings.earned = 7).unwrap();
    assert!(table.holds(host));
    rig.configure(|settings| settings.hosts.unresponsive = Unresponsive::Mark)
        .unwrap();
    assert!(table.hosts().is_empty());
    for _ in 0..8 {
        rig.tick(Nanos::from_millis(700), 0);
    }
}

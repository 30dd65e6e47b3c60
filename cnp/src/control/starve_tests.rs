//! Flows that cannot be signalled, heavier than all others: the others are signalled in the same tick.

use super::tests::{back, data};
use super::*;
use crate::admission::{CnpRequest, CnpSink, Suppressed};
use crate::control::config::Settings;
use crate::table::FlowSnapshot;
use crate::traffic_tests::rig::{DC, Packet, RATE, Rig, WAN, with};
use npcc_pipeline::units::{BitRate, PortId};
use std::net::IpAddr;

const TICK: Nanos = Nanos::from_micros(20);
/// Port of flows that are not trusted, or have no way back.
const OTHER: PortId = PortId(2);
/// Number of flows that can be signalled.
const OTHERS: u32 = 4;

/// A setup that reads and pairs any number of flows at once.
fn setup() -> ControlConfig {
    let three_ports = |settings: &mut Settings| {
        settings.port_rates = vec![RATE; 3];
        settings.trusted_ports = DC.bit() | WAN.bit();
    };
    ControlConfig {
        reads_per_tick: 8_192,
        ..with(TICK, three_ports)
    }
}

fn heavy(n: u32) -> Packet {
    Packet {
        src: [10, 0, 1, 9],
        ..data(0x10_0000 + n, 0x20_0000 + n)
    }
}

fn light(n: u32) -> Packet {
    data(0x1_0018 + n, 0x11 + n)
}

/// Passes heavy flows by a port, and the light ones, which are paired; the heavy ones have an answer of their own if `answered` is set.
fn flows(config: &ControlConfig, heavies: u32, port: PortId, answered: Option<u16>) -> Rig {
    let mut rig = Rig::new(config);
    for n in 0..OTHERS {
        rig.out(&light(n));
        rig.back(&back(0x1_0018 + n, 0x11 + n, 0x11));
    }
    for n in 0..heavies {
        rig.pass(&heavy(n), port, WAN);
        if let Some(port) = answered {
            let answer = Packet {
                dst: heavy(n).src,
                ..back(0x10_0000 + n, 0x20_0000 + n, 0x11)
            };
            let port = if port == 0 { answer.port } else { port };
            rig.back(&Packet { port, ..answer });
        }
        if n % 16 == 15 {
            rig.tick(TICK, 0);
        }
    }
    for _ in 0..=heavies / 16 {
        rig.tick(TICK, 0);
    }
    // All send, and are known to.
    for _ in 0..6 {
        send(&mut rig, heavies, port);
        rig.tick(TICK, 0);
    }
    rig
}

/// Sends packets of all flows, more of the heavy ones.
fn send(rig: &mut Rig, heavies: u32, port: PortId) {
    for n in 0..heavies {
        rig.pass(&heavy(n), port, WAN);
        rig.pass(&heavy(n), port, WAN);
    }
    for n in 0..OTHERS {
        rig.out(&light(n));
    }
}

/// Sends packets of all flows, then runs a tick of a queue that rises above `hard`. Returns the number of light flows that were signalled.
fn signalled(rig: &mut Rig, heavies: u32, port: PortId) -> usize {
    send(rig, heavies, port);
    rig.now += TICK;
    let mut signalled = 0;
    rig.core
        .run_call(rig.now, |_, _| 900_000, &mut |order: CnpRequest| {
            if order.ingress == OTHER {
                return Err(Suppressed::NoNeighbor);
            }
            signalled += usize::from(order.flow.dest_qp().get() < 0x1_0000);
            Ok(())
        });
    signalled
}

/// A tick may order 128 CNPs.
#[test]
fn heavier_ineligible_flows_cost_the_others_no_cnp() {
    let mut trusts_all = setup();
    trusts_all.settings.trusted_ports = u32::MAX;
    let cases = [
        (Suppressed::Cold, setup(), DC, None),
        (Suppressed::Unpaired, setup(), DC, Some(50_000)),
        (Suppressed::Untrusted, setup(), OTHER, None),
        (Suppressed::NoNeighbor, trusts_all, OTHER, Some(0)),
    ];
    for (reason, config, port, answered) in cases {
        for heavies in [0, 128, 1_000] {
            let mut rig = flows(&config, heavies, port, answered);
            let status = rig.core.status();
            let count = || status.cnps_suppressed(reason);
            assert_eq!(count(), 0, "{reason:?}");
            assert_eq!(
                signalled(&mut rig, heavies, port),
                4,
                "{heavies} {reason:?}"
            );
            // What comes in by a port that is not trusted has no place in the table.
            let listed = if reason == Suppressed::Untrusted {
                0
            } else {
                heavies
            };
            assert_eq!(count(), u64::from(listed), "{heavies} {reason:?}");
        }
    }
}

/// Covers more flows that are refused only when a CNP is to leave than a call looks at: all others are reached a few ticks later.
#[test]
fn more_refused_flows_than_a_call_may_try_delay_the_others_by_few_ticks() {
    let mut config = setup();
    config.settings.trusted_ports = u32::MAX;
    let mut rig = flows(&config, 3_500, OTHER, Some(0));
    let ticks = (1..20).find(|_| signalled(&mut rig, 3_500, OTHER) == 4);
    assert_eq!(ticks, Some(5));
}

/// Law: flows of unresponsive hosts get no CNP of a policy, and the others get theirs, whatever part of the queue those fill.
#[test]
fn flows_of_unresponsive_hosts_cost_the_others_nothing() {
    const UNRESPONSIVE: u32 = 16;
    let mut rig = flows(&setup(), UNRESPONSIVE, DC, Some(0));
    let is_unresponsive = |rig: &Rig, n| {
        let key = rig.core.tracker.flows.key(n).unwrap().key;
        key.dest_qp().get() >= 0x20_0000
    };
    let unresponsive = (0..OTHERS + UNRESPONSIVE)
        .find(|n| is_unresponsive(&rig, *n))
        .unwrap();
    rig.core.tracker.doubt(unresponsive, rig.now);
    let cnps = |rig: &Rig| {
        let (heavy, light): (Vec<_>, Vec<_>) = rig
            .core
            .flows()
            .flows()
            .partition(|flow| flow.flow.key.dest_qp().get() >= 0x20_0000);
        let sum = |flows: Vec<FlowSnapshot>| flows.iter().map(|flow| flow.cnps).sum::<u64>();
        (sum(heavy), sum(light))
    };
    // They send most of the queue's bytes.
    assert_eq!(signalled(&mut rig, UNRESPONSIVE, DC), 4);
    assert_eq!(cnps(&rig), (0, 4));
    let suppressed = rig.core.status().cnps_suppressed(Suppressed::Unresponsive);
    assert_eq!(suppressed, u64::from(UNRESPONSIVE));
}

/// The table signals 5 % in a queue that fills slowly.
#[test]
fn the_few_are_chosen_among_eligible_flows() {
    let mut rig = flows(&setup(), 36, DC, None);
    for depth in [50_000, 150_000, 250_000] {
        for n in 0..36 {
            rig.out(&heavy(n));
            rig.out(&heavy(n));
        }
        for n in 0..OTHERS {
            for _ in 0..OTHERS - n {
                rig.out(&light(n));
            }
        }
        rig.tick(TICK, depth);
    }
    let signalled: Vec<_> = rig
        .sent
        .iter()
        .map(|order| order.flow.dest_qp().get())
        .collect();
    assert_eq!(signalled, [0x11, 0x12], "5 % of 40");
}

/// Sink by which every CNP leaves by one port of 1 Gb/s.
struct OneWay {
    sent: u64,
}

impl CnpSink for OneWay {
    type NextHop = ();

    fn resolve(&mut self, _: IpAddr, _: PortId) -> Result<(PortId, ()), Suppressed> {
        Ok((OTHER, ()))
    }

    fn hand_over(&mut self, _: CnpRequest, (): ()) -> Result<(), Suppressed> {
        self.sent += 1;
        Ok(())
    }
}

/// Regression: the flows came in by a port of 100 Gb/s, whose cap was charged.
#[test]
fn a_cnp_is_charged_to_the_port_it_leaves_by() {
    let mut config = setup();
    config.settings.port_rates = vec![RATE, RATE, BitRate(1_000_000_000)];
    let mut rig = flows(&config, 100, DC, Some(0));
    let mut out = OneWay { sent: 0 };
    for tick in 0..100 {
        send(&mut rig, 100, DC);
        rig.now += TICK;
        let (now, depth) = (rig.now, 900_000 + tick * 1_000);
        rig.core
            .run_call_within(now, &|| now, |_, _| depth, &mut out);
    }
    // 5 % of it for 2 ms: 12,500 bytes, and a burst of 6,250.
    assert!(
        (120..=(12_500 + 6_250) / 98).contains(&out.sent),
        "{}",
        out.sent
    );
    assert!(rig.core.status().cnps_suppressed(Suppressed::CapPort) > 1_000);
}

/// Law: a flow signalled by its receiver waits as long as one signalled by us: to the next tick while the queue is deep and rises, and no longer.
#[test]
fn a_receivers_cnp_counts_like_one_of_ours() {
    let signalled = |passed: bool| {
        let mut rig = flows(&setup(), 0, DC, None);
        let mut sent = Vec::new();
        for depth in [900_000, 950_000, 1_000_000] {
            if passed && sent.is_empty() {
                for n in 0..OTHERS {
                    rig.back(&Packet {
                        port: 0,
                        ..back(0x1_0018 + n, 0x11 + n, 0x81)
                    });
                }
            }
            send(&mut rig, 0, DC);
            sent.push(rig.tick(Nanos::from_micros(16), depth));
        }
        sent
    };
    assert_eq!(signalled(false), [4, 4, 4]);
    assert_eq!(signalled(true), [0, 4, 4]);
}

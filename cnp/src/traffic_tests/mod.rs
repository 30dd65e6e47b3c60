//! Many queue pairs between two addresses, in every manner of traffic: no CNP may carry a wrong one.
//!
//! This does not prove that a network card exists with each of these manners; `docs/` says which were captured.

pub(crate) mod rig;

use std::collections::{HashMap, HashSet};

use npcc_pipeline::units::Nanos;

use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;
use npcc_roce::pair::port_hash::port_of;
use rig::{Packet, Rig, config};

const A: [u8; 4] = [10, 0, 1, 3];
const B: [u8; 4] = [10, 0, 2, 2];

/// Choice of UDP source ports by a network card.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ports {
    /// Port by Linux with flow label 0.
    Hash,
    /// Port by Linux with a flow label of the connection manager: equal in both directions, no hash of the queue pairs.
    Label,
    /// Port from the own queue pair only (older soft-RoCE).
    Own,
    /// One port for all connections.
    Fixed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Traffic {
    Write,
    Read,
    Both,
    Uc,
}

/// Relation of the queue pair numbers of both hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Numbers {
    Disjoint,
    /// Numbers shifted by one.
    Shifted,
    /// Equal sets of numbers, paired crosswise.
    Crossed,
    Random,
}

fn numbers(kind: Numbers, n: u32) -> Vec<(u32, u32)> {
    let scramble = |x: u32| (x.wrapping_mul(0x9e37_79b1) >> 8) | 2;
    (0..n)
        .map(|i| match kind {
            Numbers::Disjoint => (0x100 + i, 0x8000 + i),
            Numbers::Shifted => (0x100 + i, 0x101 + i),
            Numbers::Crossed => (0x100 + i, 0x100 + (i + 5) % n),
            Numbers::Random => (scramble(i + 1), scramble(i + 1_000_000)),
        })
        .collect()
}

/// Port by soft-RoCE before Linux 6.1: `0xc000 + hash_32(own, 14)`.
fn own_port(own: u32) -> u16 {
    0xc000 + u16::try_from(own.wrapping_mul(0x61c8_8647) >> 18).unwrap()
}

/// UDP source ports of both directions.
fn ports(kind: Ports, a: u32, b: u32) -> (u16, u16) {
    let same = |port: u16| (port, port);
    match kind {
        Ports::Hash => same(port_of(Qpn::new(a), Qpn::new(b))),
        Ports::Label => same(
            0xc000 + u16::try_from((a ^ b.rotate_left(7)).wrapping_mul(0x85eb_ca6b) >> 18).unwrap(),
        ),
        Ports::Own => (own_port(a), own_port(b)),
        Ports::Fixed => same(0xd000),
    }
}

struct Outcome {
    wrong: usize,
    signalled: usize,
    evidence: HashSet<Evidence>,
}

/// Runs 80 ms of traffic over `n` connections whose data leave by a deep and rising queue.
fn run(n: u32, kind: Ports, traffic: Traffic, layout: Numbers) -> Outcome {
    let tick = Nanos::from_micros(500);
    let mut rig = Rig::new(&config(tick));
    let pairs = numbers(layout, n);
    let truth: HashMap<u32, u32> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
    for psn in 0..80u32 {
        for half in 0..2 {
            for (at, (a, b)) in pairs.iter().enumerate() {
                // Half of them now, half later: connections do not move in lock step.
                if at % 2 != half {
                    continue;
                }
                exchange(&mut rig, kind, traffic, (*a, *b), psn);
            }
            rig.tick(tick, 500_000 + u64::from(psn % 64) * 2_000);
        }
    }
    let wrong = rig
        .sent
        .iter()
        .filter(|order| truth[&order.flow.dest_qp().get()] != order.sender_qpn.get())
        .count();
    let signalled: HashSet<u32> = rig
        .sent
        .iter()
        .map(|order| order.flow.dest_qp().get())
        .collect();
    Outcome {
        wrong,
        signalled: signalled.len(),
        evidence: rig.sent.iter().map(|order| order.evidence).collect(),
    }
}

fn exchange(rig: &mut Rig, kind: Ports, traffic: Traffic, (a, b): (u32, u32), psn: u32) {
    let (forth, back) = ports(kind, a, b);
    let data = |opcode| Packet {
        src: A,
        dst: B,
        port: forth,
        opcode,
        qpn: b,
        psn,
        payload: 1024,
    };
    let reply = |opcode, payload| Packet {
        src: B,
        dst: A,
        port: back,
        opcode,
        qpn: a,
        psn,
        payload,
    };
    match traffic {
        Traffic::Write => {
            rig.out(&data(0x0a));
            rig.back(&reply(0x11, 0));
        }
        Traffic::Read => {
            rig.back(&reply(0x0c, 0));
            rig.out(&data(0x10));
        }
        Traffic::Both => {
            rig.out(&data(0x0a));
            rig.back(&reply(0x0a, 1024));
            rig.out(&data(0x11));
            rig.back(&reply(0x11, 0));
        }
        Traffic::Uc => {
            rig.out(&data(0x2a));
        }
    }
}

const COUNTS: [u32; 4] = [1, 8, 64, 1024];
const LAYOUTS: [Numbers; 4] = [
    Numbers::Disjoint,
    Numbers::Shifted,
    Numbers::Crossed,
    Numbers::Random,
];

#[test]
fn with_the_hash_every_sender_is_signalled_and_none_wrongly() {
    for n in COUNTS {
        for traffic in [Traffic::Write, Traffic::Read, Traffic::Both] {
            for layout in LAYOUTS {
                let outcome = run(n, Ports::Hash, traffic, layout);
                assert_eq!(outcome.wrong, 0, "{n} {traffic:?} {layout:?}");
                assert_eq!(outcome.signalled, n as usize, "{n} {traffic:?} {layout:?}");
                assert_eq!(
                    outcome.evidence,
                    HashSet::from([Evidence::PortHash]),
                    "{n} {traffic:?} {layout:?}"
                );
            }
        }
    }
}

#[test]
fn ports_of_the_own_queue_pair_never_mispair() {
    for n in COUNTS {
        for traffic in [Traffic::Write, Traffic::Read, Traffic::Both] {
            for layout in LAYOUTS {
                let outcome = run(n, Ports::Own, traffic, layout);
                assert_eq!(
                    outcome.wrong, 0,
                    "{n} {traffic:?} {layout:?}: told {}",
                    outcome.signalled
                );
            }
        }
    }
}

#[test]
fn a_flow_label_gives_port_evidence_and_no_mistake() {
    for n in COUNTS {
        for layout in LAYOUTS {
            let outcome = run(n, Ports::Label, Traffic::Write, layout);
            assert_eq!(
                outcome.wrong, 0,
                "{n} {layout:?}: told {}",
                outcome.signalled
            );
            if layout == Numbers::Disjoint && n <= 8 {
                assert_eq!(outcome.signalled, n as usize, "{n} {layout:?}");
                assert_eq!(
                    outcome.evidence,
                    HashSet::from([Evidence::Port]),
                    "{n} {layout:?}"
                );
            }
        }
    }
}

#[test]
fn one_port_for_all_and_uc_are_left_alone() {
    for n in COUNTS {
        for layout in LAYOUTS {
            let fixed = run(n, Ports::Fixed, Traffic::Write, layout);
            assert_eq!(fixed.wrong, 0, "{n} {layout:?}");
            assert_eq!(fixed.signalled, usize::from(n == 1), "{n} {layout:?}");
            assert_eq!(
                run(n, Ports::Hash, Traffic::Uc, layout).signalled,
                0,
                "{n} {layout:?}"
            );
        }
    }
}

/// Datagrams of eight queue pairs to eight of the other host, over a deep and rising queue.
#[test]
fn datagrams_are_signalled_by_their_source_qp() {
    let tick = Nanos::from_micros(500);
    let mut rig = Rig::new(&config(tick));
    let datagram = |src, dst, from: u32, to: u32| {
        let packet = Packet {
            src,
            dst,
            port: 0xd000,
            opcode: 0x64,
            qpn: to,
            psn: 0,
            payload: 1_024,
        };
        // Source queue pair: after Ethernet, IP, UDP, BTH, Q_Key and a reserved octet.
        let at = 14 + 20 + 8 + 12 + 5;
        packet.changed(|frame| frame[at..at + 3].copy_from_slice(&from.to_be_bytes()[1..]))
    };
    for round in 0..20 {
        for n in 0..8 {
            rig.pass_frame(&datagram(A, B, 0x118 + n, 0x11 + n), rig::DC, rig::WAN);
        }
        if round >= 10 {
            for n in 0..8 {
                rig.pass_frame(&datagram(B, A, 0x11 + n, 0x118 + n), rig::WAN, rig::DC);
            }
        }
        rig.tick(tick, 500_000 + round * 2_000);
        assert!(round >= 10 || rig.sent.is_empty(), "nothing came back yet");
    }
    let signalled: HashSet<(u32, u32)> = rig
        .sent
        .iter()
        .map(|order| (order.sender_qpn.get(), order.flow.dest_qp().get()))
        .collect();
    assert_eq!(signalled, (0..8).map(|n| (0x118 + n, 0x11 + n)).collect());
    assert!(
        rig.sent
            .iter()
            .all(|order| order.evidence == Evidence::Deth)
    );
}

/// Two queue pairs between the same addresses send: the one whose data leave by another port is left alone; then the other.
#[test]
fn only_queue_pairs_in_the_congested_queue_are_signalled() {
    let tick = Nanos::from_micros(20);
    let elsewhere = npcc_pipeline::units::PortId(2);
    let mut rig = Rig::new(&config(tick));
    let pairs = [(0x118, 0x11), (0x119, 0x12)];
    for (a, b) in pairs {
        exchange(&mut rig, Ports::Hash, Traffic::Write, (a, b), 0);
    }
    for (congesting, other) in [(pairs[0], pairs[1]), (pairs[1], pairs[0])] {
        rig.sent.clear();
        let data = |(a, b): (u32, u32)| Packet {
            src: A,
            dst: B,
            port: port_of(Qpn::new(a), Qpn::new(b)),
            opcode: 0x0a,
            qpn: b,
            psn: 1,
            payload: 1_024,
        };
        // Quiet for longer than contributions count.
        for _ in 0..10 {
            rig.tick(tick, 0);
        }
        for depth in [200_000, 500_000, 900_000, 1_000_000, 1_100_000] {
            for _ in 0..8 {
                rig.out(&data(congesting));
                rig.pass(&data(other), rig::DC, elsewhere);
            }
            rig.tick(tick, depth);
        }
        let signalled: HashSet<u32> = rig
            .sent
            .iter()
            .map(|order| order.sender_qpn.get())
            .collect();
        assert_eq!(signalled, HashSet::from([congesting.0]));
    }
}

//! Two boxes that report ends to each other: who is paired by it, and what a peer that lies can do.
//!
//! Not shown here: the bus and its sync machine (package `feed`), and two real processes.

use std::collections::HashMap;

use crate::edges::{Bus, Edge, OTHER, PEER, World};
use crate::traffic::{Manner, numbers, packet, scatter};
use npcc_cnp::control::command::ControlCommand;
use npcc_pipeline::units::Nanos;
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::Evidence;
use npcc_roce::pair::foreign::{HOLDS, RefusedEnd, Report, ReportedEnd};
use npcc_roce::pair::port_hash::port_of;

const COUNTS: [u32; 4] = [8, 64, 1_024, 4_096];

/// Every other answer by the other box.
fn half_of_answers(n: u32) -> [Option<usize>; 2] {
    [Some(0), Some(usize::from(n % 2 == 1))]
}

/// A quarter of data, a quarter of answers by the other box.
fn quarter_each(n: u32) -> [Option<usize>; 2] {
    [Some(usize::from(n % 4 == 1)), Some(usize::from(n % 4 == 2))]
}

type Paths = fn(u32) -> [Option<usize>; 2];

/// Runs both asymmetric rows with ports by hash.
fn rows(bus: Bus, time: u64) {
    for (manner, paths) in [
        (Manner::Asymmetric, half_of_answers as Paths),
        (Manner::AsymmetricBoth, quarter_each as Paths),
    ] {
        for count in COUNTS {
            let mut world = World::new(manner, count, bus);
            world.run(time, paths);
            let (paired, wrong) = world.result();
            assert_eq!(wrong, 0, "{manner:?} {count}");
            assert!(
                paired * 100 >= count as usize * 99,
                "{manner:?}: {paired} of {count}"
            );
            let cnps = world.boxes[0].of_peer(|peer| peer.cnps.get());
            assert!(cnps > 0, "{manner:?} {count}");
        }
    }
}

#[test]
fn nearly_all_are_paired_where_every_other_answer_takes_the_other_path() {
    rows(Bus::GOOD, 1_500);
}

#[test]
fn nearly_all_are_paired_through_a_bus_that_loses_a_third_and_was_cut_for_five_seconds() {
    let bus = Bus {
        loss: 30,
        cut: (Nanos::from_millis(20), Nanos::from_millis(5_020)),
    };
    rows(bus, 7_500);
}

/// Reports carry no UDP source port that tells connections apart, and sequence numbers up to a second old (docs/pairing.md).
#[test]
fn one_port_for_all_stays_out_of_reach_and_signals_nobody_wrongly() {
    for count in COUNTS {
        let mut world = World::new(Manner::RandomPsnAsymmetric, count, Bus::GOOD);
        world.run(1_000, quarter_each);
        assert_eq!(world.result().1, 0, "{count}");
        assert_eq!(world.boxes[0].of_peer(|peer| peer.pairs.get()), 0);
    }
}

/// One box of the two dies, and the data of its flows pass the other; answers pass neither, so that only reports can tell their senders.
#[test]
fn the_survivor_signals_the_flows_of_a_dead_box_within_a_second() {
    const COUNT: u32 = 1_024;
    let mut world = World::new(Manner::AsymmetricBoth, COUNT, Bus::GOOD);
    // A quarter of all pairs of paths each.
    let path = |n: u32| [Some((n % 2) as usize), Some((n / 2 % 2) as usize)];
    world.run(2_000, path);
    let moved = |n: u32| n % 2 == 1;
    let signalled = |world: &World| {
        let cnps = &world.boxes[0].cnps;
        (0..COUNT)
            .filter(|n| moved(*n) && cnps.contains_key(&numbers(*n).1))
            .count()
    };
    assert_eq!(signalled(&world), 0);
    world.run(1_000, |_| [Some(0), None]);
    assert_eq!(world.boxes[0].wrong, 0);
    let signalled = signalled(&world);
    assert!(signalled * 100 >= 512 * 95, "{signalled} of 512");
}

/// Key of answers to a queue pair of the sender.
fn back(sender: u32) -> FlowKey {
    FlowKey::new([10, 0, 2, 2].into(), [10, 0, 1, 1].into(), Qpn::new(sender))
}

fn forged(sender: u32, udp_port: u16) -> Report {
    Report::Seen(ReportedEnd {
        key: back(sender),
        udp_port,
        partner: None,
        holds: HOLDS,
    })
}

/// Number of connections that a peer lies about, and of its lies.
const VICTIMS: u32 = 64;
const LIES: u32 = 100_000;

/// Shows 200 packets of each of 64 connections, no answer, and the lies of a peer. Returns the box, and the bytes that each connection sent.
fn lied_to(lies: Vec<Report>) -> (Edge, u64) {
    let truth: HashMap<u32, u32> = (0..VICTIMS).map(|n| (numbers(n).1, numbers(n).0)).collect();
    let (mut edge, mut bytes, mut now) = (Edge::new(), 0, Nanos::from_millis(1));
    let mut lies = lies.into_iter();
    for round in 0..200 {
        for n in 0..VICTIMS {
            let (a, b) = numbers(n);
            let frame = packet(true, port_of(Qpn::new(a), Qpn::new(b)), 0x0a, b, round);
            bytes += frame.len() as u64;
            edge.pass(&frame, true, now);
        }
        edge.take(lies.by_ref().take(1_000).collect(), now);
        now += Nanos::from_millis(1);
        edge.tick(now, &truth);
    }
    assert_eq!(lies.next(), None, "all were reported");
    (edge, bytes / u64::from(VICTIMS))
}

#[test]
fn lies_without_the_hash_signal_no_queue_pair_that_did_not_send() {
    let port = |n: u32| {
        let (a, b) = numbers(n);
        port_of(Qpn::new(a), Qpn::new(b))
    };
    let any = |n: u32| 2 + scatter(n) % 0xff_fff0;
    let low = |n: u32| 0xc000 | u16::try_from(scatter(n) & 0x3fff).unwrap();
    let random = (0..LIES).map(|n| forged(any(n), low(n + LIES))).collect();
    // Ends of connections that were here before.
    let replayed = (0..LIES).map(|n| {
        let (a, b) = numbers(VICTIMS + n % 50_000);
        forged(a, port_of(Qpn::new(a), Qpn::new(b)))
    });
    // The ports of the connections, many for each and few for each.
    let blind = (0..LIES).map(|n| forged(any(n), port(n % VICTIMS)));
    let few = (0..4 * VICTIMS).map(|n| forged(any(n), port(n % VICTIMS)));
    for (name, lies) in [
        ("random", random),
        ("replayed", replayed.collect::<Vec<_>>()),
        ("blind", blind.collect()),
        ("few", few.collect()),
    ] {
        let count = lies.len() as u64;
        let (edge, _) = lied_to(lies);
        assert_eq!(edge.cnps.len(), 0, "{name}");
        assert_eq!(
            edge.of_peer(|peer| peer.accepted.get()),
            count,
            "{name}: none was refused"
        );
    }
}

#[test]
fn a_peer_that_computes_the_hash_gets_one_cnp_for_earned_bytes_and_is_counted() {
    let lie = |n: u32| {
        let (a, b) = numbers(n);
        let port = port_of(Qpn::new(a), Qpn::new(b));
        let fits = |one: &u32| *one != a && port_of(Qpn::new(*one), Qpn::new(b)) == port;
        let other = (2..1 << 22).find(fits).unwrap();
        forged(other, port)
    };
    let (edge, bytes) = lied_to((0..VICTIMS).map(lie).collect());
    assert!(edge.wrong > 0, "fourteen bits are no proof");
    // Each of these flows has next to nothing of the drain rate, and pays the least for a CNP.
    let least = u64::from(2u32 << 10);
    for (qpn, cnps) in &edge.cnps {
        assert!(u64::from(*cnps) <= bytes / least + 1, "{cnps} to {qpn:#x}");
    }
    let counted = edge.of_peer(|peer| peer.cnps.get());
    assert_eq!(
        counted,
        edge.cnps.values().map(|cnps| u64::from(*cnps)).sum::<u64>()
    );
    assert_eq!(edge.of_peer(|peer| peer.pairs.get()), u64::from(VICTIMS));
}

#[test]
fn a_distrusted_peer_is_refused_and_what_it_said_is_forgotten() {
    let mut world = World::new(Manner::Asymmetric, 64, Bus::GOOD);
    world.run(300, half_of_answers);
    assert_eq!(world.result().0, 64);
    let [edge, _] = &mut world.boxes;
    edge.core()
        .execute(&ControlCommand::Distrust(PEER), world.now)
        .unwrap();
    world.run(300, half_of_answers);
    assert_eq!(world.result().0, 32, "by own evidence");
    let edge = &world.boxes[0];
    assert_eq!(
        edge.of_peer(|peer| (peer.held.get(), peer.distrusted.get())),
        (0, 1)
    );
    world.run(1_000, half_of_answers);
    let edge = &world.boxes[0];
    let refused = edge.of_peer(|peer| RefusedEnd::Distrusted.pick(&peer.refused).get());
    assert!(refused > 0);
    let [edge, _] = &mut world.boxes;
    edge.core()
        .execute(&ControlCommand::Trust(PEER), world.now)
        .unwrap();
    world.run(1_200, half_of_answers);
    assert_eq!(world.result().0, 64);
}

#[test]
fn ends_whose_sender_is_not_behind_a_port_of_ours_are_refused() {
    let mut edge = Edge::new();
    let now = Nanos::from_millis(1);
    let between = |from: [u8; 4], to: [u8; 4]| {
        let key = FlowKey::new(from.into(), to.into(), Qpn::new(7));
        let end = ReportedEnd {
            key,
            udp_port: 50_000,
            partner: None,
            holds: HOLDS,
        };
        Report::Seen(end)
    };
    let (here, there, nowhere) = ([10, 0, 1, 1], [10, 0, 2, 2], [10, 0, 3, 3]);
    edge.take(vec![between(there, here)], now);
    assert_eq!(edge.of_peer(|peer| peer.accepted.get()), 1);
    // The other direction, of no flow that leaves by a watched port, and hosts without a route.
    let refused = [(here, there), (there, nowhere), (nowhere, here)];
    edge.take(refused.map(|(from, to)| between(from, to)).to_vec(), now);
    let refused =
        |edge: &Edge, reason: RefusedEnd| edge.of_peer(|peer| reason.pick(&peer.refused).get());
    assert_eq!(
        (
            edge.of_peer(|peer| peer.accepted.get()),
            refused(&edge, RefusedEnd::NotBehindPort)
        ),
        (1, 3)
    );
    // Behind a port whose packets are not believed.
    let elsewhere = [10, 0, 4, 4];
    edge.take(vec![between(there, elsewhere)], now);
    assert_eq!(edge.of_peer(|peer| peer.accepted.get()), 2);
    let mut settings = edge.core().settings().clone();
    settings.trusted_ports &= !OTHER.bit();
    edge.core()
        .execute(&ControlCommand::Configure(Box::new(settings)), now)
        .unwrap();
    edge.take(vec![between(there, elsewhere)], now);
    assert_eq!(refused(&edge, RefusedEnd::NotBehindPort), 4);
    // More than a peer may say at once.
    edge.take(vec![between(there, here); 131_073], now);
    assert!(refused(&edge, RefusedEnd::Rate) > 0);
}

#[test]
fn below_the_configured_evidence_a_report_is_shown_and_signals_nobody() {
    let mut world = World::new(Manner::Asymmetric, 8, Bus::GOOD);
    let [edge, _] = &mut world.boxes;
    let mut settings = edge.core().settings().clone();
    settings.evidence = Evidence::Port;
    edge.core()
        .execute(&ControlCommand::Configure(Box::new(settings)), Nanos(1))
        .unwrap();
    world.run(1_500, half_of_answers);
    assert_eq!(world.result().0, 8, "known");
    let [edge, _] = &world.boxes;
    assert_eq!(
        (
            edge.of_peer(|peer| peer.pairs.get()),
            edge.of_peer(|peer| peer.cnps.get())
        ),
        (4, 0)
    );
    assert!(!edge.cnps.is_empty(), "the others");
}

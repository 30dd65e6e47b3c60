//! Attacks with any packet through a trusted port: no CNP may reach a queue pair it is not for.
//!
//! Attackers can take evidence away: a flow that is lied about keeps ordinary ECN marks.

use std::net::IpAddr;

use npcc_pipeline::craft::Craft;
use npcc_pipeline::frame::HeapFrame;
use npcc_pipeline::units::Nanos;

use crate::admission::CnpRequest;
use crate::control::ControlCore;
use crate::flow_cache::FlowCache;
use crate::limits_tests::checked;
use crate::traffic_tests::rig::{DC, Packet, Rig, WAN, config};
use crate::uncounted::Uncounted;
use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;
use npcc_roce::pair::port_hash::port_of;

const TICK: Nanos = Nanos::from_micros(20);
const A: [u8; 4] = [10, 0, 1, 3];
const B: [u8; 4] = [10, 0, 2, 2];
const SENDER: u32 = 0x18;
const RECEIVER: u32 = 0x11;
/// Queue pair of A that is a bystander.
const BYSTANDER: u32 = 0x999;

fn data() -> Packet {
    Packet {
        src: A,
        dst: B,
        port: port_of(Qpn::new(SENDER), Qpn::new(RECEIVER)),
        opcode: 0x0a,
        qpn: RECEIVER,
        psn: 0,
        payload: 1024,
    }
}

fn ack(qpn: u32, psn: u32) -> Packet {
    Packet {
        src: B,
        dst: A,
        opcode: 0x11,
        qpn,
        psn,
        payload: 0,
        ..data()
    }
}

/// Frame with a message of the connection manager; `good` gives it a right ICRC.
pub(crate) fn message(
    from: [u8; 4],
    to: [u8; 4],
    attribute: u8,
    fields: &[(usize, u32)],
    good: bool,
) -> HeapFrame {
    let mut craft = Craft::roce(from.into(), to.into(), 0x64, 1, 264);
    craft.payload[..12].copy_from_slice(&[0x80, 1, 0, 0, 0, 0, 0, 1, 1, 7, 2, 3]);
    craft.payload[25] = attribute;
    for (offset, value) in fields {
        craft.payload[32 + offset..36 + offset].copy_from_slice(&value.to_be_bytes());
    }
    let mut frame = craft.frame();
    *frame.last_mut().unwrap() ^= u8::from(!good);
    HeapFrame::new(&frame)
}

fn connect(rig: &mut Rig, id: u32, sender: u32, receiver: u32, good: bool) {
    let req = message(
        A,
        B,
        0x10,
        &[(0, id), (32, sender << 8), (88, 0x1234_5000)],
        good,
    );
    rig.pass_frame(&req, DC, WAN);
    let rep = message(B, A, 0x13, &[(0, 9), (4, id), (12, receiver << 8)], good);
    rig.pass_frame(&rep, WAN, DC);
    rig.tick(TICK, 0);
}

/// A living flow, paired by the hash.
fn living() -> Rig {
    let mut rig = Rig::new(&config(TICK));
    rig.out(&data());
    rig.back(&ack(SENDER, 0));
    rig.tick(TICK, 0);
    rig
}

/// Congests the queue for a while; returns the queue pairs that were signalled.
fn signalled(rig: &mut Rig) -> Vec<u32> {
    signalled_of(rig, &data())
}

/// Congests the queue with this packet for a while; returns the queue pairs that were signalled.
fn signalled_of(rig: &mut Rig, packet: &Packet) -> Vec<u32> {
    let before = rig.sent.len();
    for tick in 0..50u64 {
        rig.out(packet);
        rig.tick(TICK, 900_000 + tick * 1_000);
    }
    let mut signalled: Vec<_> = rig.sent[before..]
        .iter()
        .map(|order| order.sender_qpn.get())
        .collect();
    signalled.sort_unstable();
    signalled.dedup();
    signalled
}

#[test]
fn the_living_flow_is_told() {
    assert_eq!(signalled(&mut living()), [SENDER]);
}

#[test]
fn forged_acknowledgements_do_not_move_the_pair() {
    let mut rig = living();
    for psn in 0..64 {
        rig.out(&Packet { psn, ..data() });
        rig.back(&ack(BYSTANDER, psn));
        rig.tick(TICK, 0);
    }
    let signalled = signalled(&mut rig);
    assert!(!signalled.contains(&BYSTANDER), "{signalled:x?}");
}

#[test]
fn a_forged_connection_over_an_active_flow_is_not_believed() {
    let mut rig = living();
    connect(&mut rig, 7, BYSTANDER, RECEIVER, true);
    assert_eq!(rig.core.status().cm.contradicted.get(), 1);
    assert_eq!(signalled(&mut rig), [SENDER]);
}

/// Six packets over a flow that the connection manager set up: a REQ and a REP of a made-up connection, with other ids.
#[test]
fn a_forged_connection_over_a_connection_reaches_no_bystander() {
    for pause in [0, 100, 2_900] {
        let mut rig = Rig::new(&config(TICK));
        connect(&mut rig, 7, SENDER, RECEIVER, true);
        assert_eq!(signalled(&mut rig), [SENDER]);
        rig.now += Nanos::from_millis(pause);
        for id in 8..11 {
            connect(&mut rig, id, BYSTANDER, RECEIVER, true);
            let signalled = signalled(&mut rig);
            assert!(
                !signalled.contains(&BYSTANDER),
                "{signalled:x?} after {pause} ms"
            );
        }
        assert_eq!(rig.core.status().cm.contradicted.get(), 4);
        // Nor later, when its maker ends it and begins again.
        let dreq = message(A, B, 0x15, &[(0, 8), (4, 9), (8, RECEIVER << 8)], true);
        rig.pass_frame(&dreq, DC, WAN);
        rig.tick(TICK, 0);
        connect(&mut rig, 12, BYSTANDER, RECEIVER, true);
        let signalled = signalled(&mut rig);
        assert!(!signalled.contains(&BYSTANDER), "{signalled:x?}");
    }
}

/// The forged connection comes while the flow pauses for long, at a checkpoint.
#[test]
fn a_forged_connection_over_one_that_pauses_reaches_no_bystander() {
    // Once, and twice with the same id.
    for forged in [&[BYSTANDER][..], &[0x998, BYSTANDER]] {
        let mut rig = Rig::new(&config(TICK));
        connect(&mut rig, 7, SENDER, RECEIVER, true);
        assert_eq!(signalled(&mut rig), [SENDER]);
        rig.now += Nanos::from_millis(60_000);
        for sender in forged {
            connect(&mut rig, 8, *sender, RECEIVER, true);
        }
        rig.now += Nanos::from_millis(60_000);
        let signalled = signalled(&mut rig);
        assert!(!signalled.contains(&BYSTANDER), "{signalled:x?}");
    }
}

/// An attacker on the far side writes both hosts' addresses; no packet of the flow was seen that could contradict it.
#[test]
fn a_made_up_request_by_the_far_port_is_not_heard() {
    for (port, known) in [(DC, true), (WAN, false)] {
        let mut rig = checked(config(TICK));
        let req = [(0, 7), (32, BYSTANDER << 8), (88, 0x1234_5000)];
        rig.pass_frame(&message(A, B, 0x10, &req, true), port, WAN);
        let rep = [(0, 9), (4, 7), (12, RECEIVER << 8)];
        rig.pass_frame(&message(B, A, 0x13, &rep, true), WAN, DC);
        rig.tick(TICK, 0);
        assert_eq!(rig.core.status().wrong_port.get(), u64::from(!known));
        assert_eq!(signalled(&mut rig).contains(&BYSTANDER), known);
    }
}

/// The flow began before the switch did, or its answers take another path: nothing is known but that it lives.
#[test]
fn a_forged_connection_over_a_cold_flow_reaches_no_bystander() {
    let mut rig = Rig::new(&config(TICK));
    for _ in 0..20 {
        rig.out(&data());
        rig.tick(Nanos::from_millis(1), 0);
    }
    connect(&mut rig, 7, BYSTANDER, RECEIVER, true);
    assert_eq!(signalled(&mut rig), [] as [u32; 0]);
    assert_eq!(rig.core.status().cm.contradicted.get(), 1);
}

/// Datagrams each way before a flow begins, which name a bystander.
#[test]
fn forged_datagrams_before_a_connection_reach_no_bystander() {
    let mut rig = Rig::new(&config(TICK));
    let datagram = |src, dst, from: u32, to| {
        let mut craft = Craft::roce(IpAddr::from(src), IpAddr::from(dst), 0x64, to, 64);
        craft.payload[4..8].copy_from_slice(&from.to_be_bytes());
        HeapFrame::new(&craft.frame())
    };
    for _ in 0..40 {
        rig.pass_frame(&datagram(A, B, BYSTANDER, RECEIVER), DC, WAN);
        rig.pass_frame(&datagram(B, A, 0x40, 0x41), WAN, DC);
        rig.tick(TICK, 0);
    }
    for _ in 0..500 {
        rig.out(&data());
        rig.back(&ack(SENDER, 0));
        rig.tick(Nanos::from_millis(10), 0);
        rig.sent.clear();
        rig.out(&data());
        rig.tick(TICK, 900_000);
        let signalled = |order: &CnpRequest| order.sender_qpn.get();
        assert!(rig.sent.iter().map(signalled).all(|qpn| qpn == SENDER));
    }
    assert_eq!(signalled(&mut rig), [SENDER]);
}

#[test]
fn a_forged_grant_takes_evidence_away_and_gives_none() {
    let mut rig = Rig::new(&config(TICK));
    connect(&mut rig, 7, SENDER, RECEIVER, true);
    assert_eq!(signalled(&mut rig), [SENDER]);
    let forged = message(B, A, 0x13, &[(0, 9), (4, 7), (12, 0x666 << 8)], true);
    rig.pass_frame(&forged, WAN, DC);
    rig.now += Nanos::from_millis(1);
    rig.tick(TICK, 0);
    assert_eq!(signalled(&mut rig), [] as [u32; 0]);
}

#[test]
fn messages_with_a_wrong_icrc_teach_nothing() {
    let mut rig = Rig::new(&config(TICK));
    connect(&mut rig, 7, SENDER, RECEIVER, false);
    assert_eq!(rig.core.status().cm.damaged.get(), 2);
    assert_eq!(signalled(&mut rig), [] as [u32; 0]);
}

#[test]
fn ids_that_collide_pair_each_with_its_own() {
    let mut rig = Rig::new(&config(TICK));
    connect(&mut rig, 7, SENDER, RECEIVER, true);
    // The same id from another host, granted by the same receiver under the same name.
    let other = [10, 0, 1, 4];
    let req = message(other, B, 0x10, &[(0, 7), (32, 0x77 << 8)], true);
    rig.pass_frame(&req, DC, WAN);
    let rep = message(B, other, 0x13, &[(0, 9), (4, 7), (12, 0x78 << 8)], true);
    rig.pass_frame(&rep, WAN, DC);
    rig.tick(TICK, 0);
    assert_eq!(signalled(&mut rig), [SENDER]);
}

#[test]
fn a_made_up_connection_without_data_reaches_nobody() {
    let mut rig = living();
    connect(&mut rig, 7, BYSTANDER, 0x4000, true);
    let signalled = signalled(&mut rig);
    assert_eq!(signalled, [SENDER], "only who fills the queue is told");
}

#[test]
fn a_flood_of_new_flows_does_not_delay_the_active_one() {
    let mut rig = living();
    for n in 0..5_000 {
        rig.out(&Packet {
            src: [10, 9, 9, 9],
            qpn: 0x10_0000 + n,
            ..data()
        });
    }
    rig.out(&data());
    assert_eq!(rig.tick(TICK, 900_000), 1, "at the next tick");
    assert_eq!(rig.sent[0].sender_qpn.get(), SENDER);
}

/// A slot's control word names eleven bits of the generation it is for: 2,048 flows later it seems to be for another.
#[test]
fn a_word_of_2048_flows_ago_does_not_silence_a_flow() {
    let mut rig = Rig::new(&config(TICK));
    let (cache, reader) = FlowCache::new(1, WAN.bit(), 64, 11);
    (rig.cache, rig.core) = (cache, ControlCore::new(&config(TICK)));
    assert!(rig.core.attach(reader));
    let other = |qpn| Packet {
        src: [10, 0, 1, 9],
        qpn,
        ..data()
    };
    let slot = rig.out(&data());
    rig.back(&ack(SENDER, 0));
    rig.tick(TICK, 0);
    let (mut qpn, mut renewed) = (0x1000, 0);
    while renewed < 2_048 {
        qpn += 1;
        rig.now += Nanos::from_millis(11);
        renewed += u32::from(rig.out(&other(qpn)) == slot);
        rig.tick(TICK, 0);
    }
    rig.tick(Nanos::from_millis(11), 0);
    rig.out(&other(qpn));
    rig.tick(TICK, 0);
    let before = rig.core.status().records.get();
    for _ in 0..8 {
        rig.out(&other(qpn));
    }
    rig.tick(TICK, 0);
    assert_eq!(rig.core.status().records.get() - before, 8);
}

#[test]
fn farewell_and_reuse_leave_no_stale_pair() {
    let mut rig = Rig::new(&config(TICK));
    connect(&mut rig, 7, SENDER, RECEIVER, true);
    assert_eq!(signalled(&mut rig), [SENDER]);
    let dreq = message(A, B, 0x15, &[(0, 7), (4, 9), (8, RECEIVER << 8)], true);
    rig.pass_frame(&dreq, DC, WAN);
    rig.now += Nanos::from_millis(1);
    rig.tick(TICK, 0);
    assert_eq!(
        signalled(&mut rig),
        [] as [u32; 0],
        "between DREQ and the next REQ nobody is told"
    );
    connect(&mut rig, 8, 0x55, RECEIVER, true);
    rig.now += Nanos::from_millis(1);
    assert_eq!(
        signalled(&mut rig),
        [] as [u32; 0],
        "a request made up just after a farewell looks the same, and packets of the old connection are on their way"
    );
    // Packets that only the new connection sends tell the two apart.
    let new = Packet {
        port: port_of(Qpn::new(0x55), Qpn::new(RECEIVER)),
        psn: 0x0050_0000,
        ..data()
    };
    assert_eq!(signalled_of(&mut rig, &new), [0x55]);
}

/// Regression: made-up data and requests with a host's address used up the same limit as the host's own requests.
#[test]
fn a_host_can_connect_whatever_else_comes_in_its_name() {
    let mut rig = Rig::new(&crate::control::config::ControlConfig {
        new_flows_burst: 16,
        new_connections_burst: 16,
        ..config(TICK)
    });
    for n in 0..400 {
        // Made-up data by its own port, and made-up requests by another one.
        rig.out(&Packet {
            qpn: 0x4000 + n,
            ..data()
        });
        let req = message(A, B, 0x10, &[(0, 100 + n), (32, n << 8)], true);
        rig.pass_frame(&req, WAN, DC);
        rig.tick(Nanos(10), 0);
    }
    assert!(rig.core.status().rate_limited.get() > 700);
    connect(&mut rig, 7, SENDER, RECEIVER, true);
    rig.out(&data());
    rig.tick(TICK, 0);
    assert_eq!(signalled(&mut rig), [SENDER]);
}

/// READ RESPONSEs without a request, in the name of a light connection of which the other queue pair is known, and no number.
#[test]
fn unrequested_read_responses_neither_pair_nor_contradict() {
    let mut rig = living();
    for turn in 0..400 {
        rig.out(&data());
        rig.back(&ack(SENDER, 0));
        let response = Packet {
            opcode: 0x0e,
            port: 50_000 + turn % 7,
            psn: (0x12_3457 * (u32::from(turn) + 1)) & 0x7f_ffff | 0x40_0000,
            ..data()
        };
        (0..5).for_each(|_| {
            rig.out(&response);
        });
        rig.tick(Nanos::from_millis(1), 0);
        let flows: Vec<_> = rig.core.flows().flows().collect();
        let known: Vec<_> = flows
            .iter()
            .map(|flow| (flow.sender_qpn.get(), flow.evidence))
            .collect();
        assert_eq!(known, [(SENDER, Evidence::PortHash)], "{turn}");
    }
    assert_eq!(signalled(&mut rig), [SENDER]);
    // Nothing is known that could contradict another endpoint on its port, whose answers were never seen.
    let status = rig.core.status();
    let unasked = Uncounted::Unrequested.pick(&status.uncounted);
    assert_eq!(unasked.records.get(), 0, "the flow is counted");
}

#[test]
fn requested_read_responses_pair() {
    let mut rig = Rig::new(&config(TICK));
    for turn in 0..50 {
        rig.back(&Packet {
            src: B,
            dst: A,
            opcode: 0x0c,
            qpn: SENDER,
            psn: 0x60_0000 + 64 * turn,
            payload: 0,
            ..data()
        });
        for n in 0..64 {
            rig.out(&Packet {
                opcode: 0x0e,
                psn: 0x60_0000 + 64 * turn + n,
                ..data()
            });
        }
        rig.tick(Nanos::from_millis(1), 0);
    }
    let read = Packet {
        opcode: 0x0e,
        psn: 0x60_0000 + 64 * 50,
        ..data()
    };
    assert_eq!(signalled_of(&mut rig, &read), [SENDER]);
}

/// Two hosts that have nothing to do with A and B.
const C: [u8; 4] = [10, 0, 1, 4];
const D: [u8; 4] = [10, 0, 2, 3];

/// Forges the messages by which the connection of A and B changes over to the path between C and D.
fn change_over(rig: &mut Rig) {
    let mapped = |address| u32::from_be_bytes(address);
    let path = [(32, 0xffff), (36, mapped(C)), (48, 0xffff), (52, mapped(D))];
    let lap = message(A, B, 0x19, &[&[(0, 7), (4, 9)][..], &path].concat(), true);
    rig.pass_frame(&lap, DC, WAN);
    rig.pass_frame(&message(B, A, 0x1a, &[(0, 9), (4, 7)], true), WAN, DC);
    rig.tick(TICK, 0);
}

/// Regression: a queue pair at C with the number of A's was named as the sender of packets from C to D's queue pair with the number of B's.
#[test]
fn a_made_up_path_between_real_addresses_moves_no_cnp() {
    let flow = |psn| Packet {
        src: C,
        dst: D,
        port: port_of(Qpn::new(BYSTANDER), Qpn::new(RECEIVER)),
        psn,
        ..data()
    };
    let answer = |psn| Packet {
        src: D,
        dst: C,
        opcode: 0x11,
        qpn: BYSTANDER,
        payload: 0,
        ..flow(psn)
    };
    for begins_before in [true, false] {
        let mut rig = Rig::new(&config(TICK));
        connect(&mut rig, 7, SENDER, RECEIVER, true);
        rig.out(&data());
        rig.tick(TICK, 0);
        let exchange = |rig: &mut Rig, from: u32| {
            for psn in from..from + 100 {
                rig.out(&flow(psn));
                rig.back(&answer(psn));
                rig.tick(TICK, 0);
            }
        };
        if begins_before {
            exchange(&mut rig, 0);
        }
        change_over(&mut rig);
        exchange(&mut rig, 100);
        let signalled = signalled_of(&mut rig, &flow(200));
        assert!(
            !signalled.contains(&SENDER),
            "begins before {begins_before}: {signalled:x?}"
        );
        if begins_before {
            assert_eq!(signalled, [BYSTANDER]);
        }
    }
}

use npcc_pipeline::units::PortId;

use super::*;
use crate::admission::Suppressed;
use crate::control::config::WatchedQueueConfig;
use crate::detector::Zone;
use crate::policy::{Amount, Reason};
use crate::response::Response;
use crate::status::Row;
use crate::traffic_tests::rig::{DC, Packet, QUEUE, RATE, Rig, WAN, config, queue, with};
use crate::uncounted::Uncounted;
use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;
use npcc_roce::pair::port_hash::port_of;

const TICK: Nanos = Nanos::from_micros(20);

pub(super) fn data(a: u32, b: u32) -> Packet {
    let port = port_of(Qpn::new(a), Qpn::new(b));
    Packet {
        src: [10, 0, 1, 3],
        dst: [10, 0, 2, 2],
        port,
        opcode: 0x0a,
        qpn: b,
        psn: 0,
        payload: 1024,
    }
}

pub(super) fn back(a: u32, b: u32, opcode: u8) -> Packet {
    let forth = data(a, b);
    Packet {
        src: forth.dst,
        dst: forth.src,
        opcode,
        qpn: a,
        payload: 0,
        ..forth
    }
}

/// A rig with one paired flow per queue pair 0x11.., sender 0x18.., having just sent.
pub(super) fn warm(flows: u32, config: &ControlConfig) -> Rig {
    let mut rig = Rig::new(config);
    for n in 0..flows {
        rig.out(&data(0x1_0018 + n, 0x11 + n));
        rig.back(&back(0x1_0018 + n, 0x11 + n, 0x11));
    }
    rig.tick(TICK, 0);
    rig
}

fn send(rig: &mut Rig, flows: u32) {
    for n in 0..flows {
        // The first is the heaviest.
        for _ in 0..=(flows - n) {
            rig.out(&data(0x1_0018 + n, 0x11 + n));
        }
    }
}

/// Walks through the table cell by cell, with flows that all send all the time.
#[test]
fn every_cell_sends_what_the_table_says() {
    let flows = 40;
    let mut rig = warm(flows, &config(TICK));
    let mut step = |depth| {
        send(&mut rig, flows);
        rig.tick(TICK, depth)
    };
    let (few, many) = (2, 40);
    assert_eq!(step(50_000), 0, "idle, rising");
    assert_eq!(step(150_000), 0, "shallow, jitter");
    assert_eq!(step(250_000), few, "shallow, rising");
    assert_eq!(step(350_000), 0, "shallow, rising: within recovery");
    assert_eq!(
        step(450_000),
        0,
        "deep, jitter: counts as shallow, within recovery"
    );
    assert_eq!(step(550_000), many, "deep, rising");
    assert_eq!(step(650_000), many, "deep, rising: once a tick");
    assert_eq!(step(600_000), 0, "deep, falling: within recovery");
    let drained = (0..20).filter(|_| step(600_000 - 10_000) > 0).count();
    assert!(drained <= 1, "within recovery");
    assert_eq!(step(300_000), 0, "shallow, falling");
    assert_eq!(step(50_000), 0, "idle, falling");
    let status = rig.core.status();
    let queue = &status.queues()[0];
    assert_eq!(queue.cnps.get(), rig.sent.len() as u64);
    assert_eq!(queue.cell(Zone::Shallow, Row::Jitter).get(), 1);
    assert_eq!(queue.cell(Zone::Deep, Row::Jitter).get(), 1);
    assert!(queue.cell(Zone::Deep, Row::Falling).get() >= 20);
    assert_eq!(queue.decided(Amount::Many).get(), 2);
    // One shallow, and while draining again and again: these flows do not slow down, so that nobody is signalled.
    assert!(queue.decided(Amount::Few).get() >= 2);
    assert_eq!(
        (queue.depth.get(), queue.peak.get(), queue.zone()),
        (50_000, 650_000, Zone::Idle)
    );
}

/// Returns a warm rig of one flow that watches a queue of another port, too.
fn warm_with(other: PortId) -> Rig {
    let mut setup = with(TICK, |settings| settings.port_rates.push(RATE));
    let second = WatchedQueueConfig {
        port: other,
        ..queue(TICK)
    };
    setup.settings.queues.push(second);
    warm(1, &setup)
}

/// Law: the entry of a flow in another queue has the alpha of its sender, and does not begin at 1.
#[test]
fn a_flow_whose_route_changes_keeps_the_state_of_its_sender() {
    let other = PortId(2);
    let mut rig = warm_with(other);
    for depth in [500_000, 550_000, 600_000, 650_000] {
        send(&mut rig, 1);
        rig.tick(TICK, depth);
    }
    let later = rig.now + Nanos::from_micros(500);
    let share = |rig: &Rig, index| {
        rig.core
            .tracker
            .flows
            .get(index)
            .unwrap()
            .dcqcn
            .cut_share(later)
    };
    let before = share(&rig, 0);
    assert!(!rig.sent.is_empty() && before < 1 << 13, "{before}");
    let packet = data(0x1_0018, 0x11);
    rig.pass(&packet, DC, other);
    rig.tick(TICK, 0);
    assert_eq!(share(&rig, 1), before);
}

/// Law: a queue pair gets one CNP in the interval, by whichever of its flows: here one data stream in two congested queues.
#[test]
fn flows_of_one_queue_pair_share_its_interval() {
    let other = PortId(2);
    let mut rig = warm_with(other);
    let packet = data(0x1_0018, 0x11);
    for tick in 0..3 {
        rig.out(&packet);
        rig.pass(&packet, DC, other);
        let sent = rig.tick(TICK, 900_000 + tick * 50_000);
        assert_eq!(sent, 1, "{tick}");
    }
    assert_eq!(rig.core.flows().flows().count(), 2);
    let status = rig.core.status();
    assert_eq!(status.cnps_suppressed(Suppressed::Spacing), 3);
}

#[test]
fn the_heaviest_are_the_few() {
    let mut rig = warm(40, &config(TICK));
    for depth in [50_000, 150_000, 250_000] {
        send(&mut rig, 40);
        rig.tick(TICK, depth);
    }
    let signalled: Vec<_> = rig
        .sent
        .iter()
        .map(|order| order.flow.dest_qp().get())
        .collect();
    assert_eq!(signalled, [0x11, 0x12]);
    let order = rig.sent[0];
    assert_eq!(
        (order.sender_qpn, order.evidence),
        (Qpn::new(0x1_0018), Evidence::PortHash)
    );
    assert_eq!(
        (order.ingress, order.egress, order.priority),
        (DC, WAN, QUEUE)
    );
    assert_eq!(order.flow.to_string(), "10.0.1.3 > 10.0.2.2 qp 0x11");
}

#[test]
fn only_contributors_are_signalled() {
    let mut rig = warm(2, &config(TICK));
    // The first goes silent; the second sends on, the first through another queue.
    for depth in [0, 0, 0, 0, 0, 0, 50_000, 900_000] {
        send(&mut rig, 1);
        rig.tick(TICK, depth);
    }
    assert!(!rig.sent.is_empty());
    assert!(
        rig.sent
            .iter()
            .all(|order| order.flow.dest_qp() == Qpn::new(0x11))
    );
}

#[test]
fn acks_out_of_the_congested_port_are_no_contribution() {
    let mut rig = warm(1, &config(TICK));
    for depth in [0, 0, 0, 0, 0, 0, 500_000, 900_000] {
        rig.pass(
            &Packet {
                opcode: 0x11,
                payload: 0,
                ..data(0x1_0018, 0x11)
            },
            DC,
            WAN,
        );
        rig.tick(TICK, depth);
    }
    assert!(rig.sent.is_empty());
}

#[test]
fn a_passing_cnp_counts_as_ours() {
    let mut rig = warm(1, &config(TICK));
    send(&mut rig, 1);
    rig.back(&Packet {
        port: 0,
        ..back(0x1_0018, 0x11, 0x81)
    });
    rig.now += Nanos(1);
    rig.out(&data(0x1_0018, 0x11));
    // The tick comes 10 us after the CNP: a hard queue, and yet nobody is signalled twice.
    assert_eq!(rig.tick(Nanos::from_micros(10), 900_000), 0);
    let status = rig.core.status();
    assert_eq!(status.cnps_suppressed(Suppressed::AlreadyNotified), 1);
    assert_eq!(status.cnps_passed.get(), 1);
    send(&mut rig, 1);
    assert_eq!(rig.tick(TICK, 950_000), 1);
}

#[test]
fn a_signalled_flow_shows_in_the_table() {
    let mut rig = warm(1, &config(TICK));
    rig.out(&data(0x1_0018, 0x11));
    assert_eq!(rig.tick(TICK, 900_000), 1);
    let flow = rig.core.flows().flows().next().unwrap();
    assert_eq!(
        (flow.cnps, flow.last_cnp, flow.sender_qpn),
        (1, rig.now, Qpn::new(0x1_0018))
    );
    assert_eq!(
        (flow.evidence, flow.response),
        (Evidence::PortHash, Response::Unknown)
    );
}

#[test]
fn a_cnp_that_could_not_leave_is_counted_and_tried_again() {
    let mut rig = warm(1, &config(TICK));
    for _ in 0..3 {
        rig.out(&data(0x1_0018, 0x11));
        rig.now += TICK;
        rig.core.run_call(rig.now, |_, _| 900_000, &mut |_| {
            Err(Suppressed::NoNeighbor)
        });
    }
    let status = rig.core.status();
    assert_eq!(
        (
            status.cnps_suppressed(Suppressed::NoNeighbor),
            status.cnps_sent()
        ),
        (3, 0)
    );
    rig.out(&data(0x1_0018, 0x11));
    assert_eq!(rig.tick(TICK, 900_000), 1);
}

#[test]
fn cold_and_unpaired_bytes_are_counted_separately() {
    let mut rig = Rig::new(&config(TICK));
    rig.out(&data(0x18, 0x11));
    rig.tick(TICK, 900_000);
    rig.out(&data(0x18, 0x11));
    rig.tick(TICK, 900_000);
    let status = rig.core.status();
    assert!(status.cnps_suppressed(Suppressed::Cold) > 0);
    assert_eq!(status.cold_bytes.get(), status.data_bytes.get());
    rig.back(&Packet {
        port: 50_000,
        ..back(0x18, 0x11, 0x11)
    });
    rig.tick(TICK, 0);
    rig.out(&data(0x18, 0x11));
    rig.tick(TICK, 900_000);
    assert!(status.cnps_suppressed(Suppressed::Unpaired) > 0);
    assert!(status.unpaired_bytes.get() > 0);
    assert_eq!(
        (status.paired(Evidence::None).get(), status.flows.get()),
        (1, 1)
    );
    assert!(rig.sent.is_empty());
}

#[test]
fn a_port_that_is_not_trusted_teaches_nothing() {
    let mut rig = warm(1, &with(TICK, |settings| settings.trusted_ports = DC.bit()));
    send(&mut rig, 1);
    rig.tick(TICK, 900_000);
    assert!(rig.sent.is_empty());
    assert!(rig.core.status().untrusted.get() > 0);
    let mut rig = warm(
        1,
        &with(TICK, |settings| settings.trusted_ports = WAN.bit()),
    );
    send(&mut rig, 1);
    rig.tick(TICK, 900_000);
    assert!(rig.sent.is_empty());
    let status = rig.core.status();
    assert_eq!(
        status.flows.get(),
        0,
        "nobody that teaches nothing has an entry"
    );
    let records = Uncounted::UntrustedPort
        .pick(&status.uncounted)
        .records
        .get();
    let bytes = Uncounted::UntrustedPort.pick(&status.uncounted).bytes.get();
    assert!(records > 0 && bytes >= 1_000 * records, "{records} {bytes}");
    assert_eq!(status.uncounted_bytes_by(DC), bytes);
}

#[test]
fn a_source_that_opens_flows_too_fast_is_held_back() {
    let mut rig = Rig::new(&ControlConfig {
        new_flows: 1_000,
        new_flows_burst: 10,
        ..config(TICK)
    });
    for b in 0..200 {
        rig.out(&data(0x18, 0x100 + b));
    }
    rig.tick(TICK, 0);
    let status = rig.core.status();
    assert_eq!((status.ends.get(), status.rate_limited.get()), (10, 190));
    assert_eq!(status.flows.get(), 10, "those held back have no entry");
    let uncounted = Uncounted::RateLimited.pick(&status.uncounted).records.get();
    assert_eq!(uncounted, 190);
}

#[test]
fn a_flow_of_an_unresponsive_host_is_refused_and_counted() {
    let mut rig = warm(1, &config(TICK));
    rig.core.tracker.doubt(0, rig.now);
    let before = rig.sent.len();
    for tick in 0..500u64 {
        rig.out(&data(0x1_0018, 0x11));
        rig.tick(TICK, 900_000 + tick % 2);
    }
    let status = rig.core.status();
    assert!(status.cnps_suppressed(Suppressed::Unresponsive) > 300);
    assert_eq!(rig.sent.len(), before);
}

#[test]
fn more_flows_than_a_tick_may_signal_are_all_signalled_in_turn() {
    let mut rig = warm(
        30,
        &ControlConfig {
            cnps_per_tick: 10,
            ..config(TICK)
        },
    );
    for tick in 0..6u64 {
        send(&mut rig, 30);
        assert_eq!(rig.tick(TICK, 900_000 + tick), 10);
    }
    for b in 0x11..0x11 + 30 {
        assert_eq!(
            rig.sent
                .iter()
                .filter(|order| order.flow.dest_qp().get() == b)
                .count(),
            2,
            "{b:#x}"
        );
    }
}

#[test]
fn a_silent_flow_leaves_the_queue_and_comes_back_warm() {
    let mut rig = warm(1, &config(TICK));
    for _ in 0..450 {
        rig.tick(Nanos::from_millis(10), 0);
    }
    assert_eq!(rig.core.status().flows.get(), 1);
    rig.out(&data(0x1_0018, 0x11));
    assert_eq!(
        rig.tick(TICK, 900_000),
        1,
        "told at its first packet, no reverse packet needed"
    );
}

#[test]
fn a_flood_of_made_up_flows_does_not_displace_live_ones() {
    let mut rig = warm(
        4,
        &ControlConfig {
            flows: 16,
            ..config(TICK)
        },
    );
    for b in 0..100u32 {
        rig.out(&Packet {
            src: [10, 0, 9, b.to_le_bytes()[0] % 16],
            ..data(0x18, 0x4000 + b)
        });
    }
    // New ones are processed bit by bit.
    rig.tick(TICK, 0);
    rig.tick(TICK, 0);
    let status = rig.core.status();
    let displaced = status.flows_displaced.get() + status.flows_refused.get();
    assert_eq!((status.flows.get(), displaced), (16, 88));
    send(&mut rig, 4);
    assert_eq!(rig.tick(TICK, 900_000), 4);
    // Three seconds later the flood's flows make room.
    rig.tick(Nanos::from_millis(3_001), 0);
    let displaced = status.flows_displaced.get();
    rig.out(&data(0x1_0099, 0x99));
    rig.tick(TICK, 0);
    assert_eq!(status.flows_displaced.get(), displaced + 1);
}

#[test]
fn both_halves_can_move_to_their_threads() {
    fn movable<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    movable::<ControlCore>();
    movable::<crate::flow_cache::FlowCache>();
    shared::<FlowView>();
    shared::<NpccStatus>();
}

/// One port for all flows, and sequence numbers in lock step: the flow that a packet answers cannot be known.
#[test]
fn nobody_is_signalled_where_the_sender_is_not_known() {
    let mut rig = Rig::new(&config(TICK));
    let one_port = |packet: Packet| Packet {
        port: 0xd000,
        ..packet
    };
    for n in 0..4 {
        rig.out(&one_port(data(0x1_0018 + n, 0x11 + n)));
        rig.back(&one_port(back(0x1_0018 + n, 0x11 + n, 0x11)));
    }
    rig.tick(TICK, 0);
    (0..4).for_each(|_| {
        rig.out(&one_port(data(0x1_0018, 0x11)));
    });
    rig.tick(TICK, 900_000);
    assert!(rig.sent.is_empty());
    assert!(rig.core.status().cnps_suppressed(Suppressed::Unpaired) > 0);
}

#[test]
fn every_cnp_is_explained_and_counted_to_its_host() {
    let mut rig = warm(2, &config(TICK));
    send(&mut rig, 2);
    rig.tick(TICK, 900_000);
    let status = rig.core.status();
    let entries: Vec<_> = status.log.last(10).collect();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (entries[0].sender_qpn, entries[0].depth),
        (Qpn::new(0x1_0018), 900_000)
    );
    assert_eq!(
        (entries[0].zone, entries[0].reason, entries[0].cnps),
        (Zone::Hard, Reason::Overfull, 1)
    );
    let text = entries[0].text("wan0");
    assert!(
        text.starts_with("QP 0x10018 of 10.0.1.3 got CNP 1 because ")
            && text.contains(" filled queue 3 of wan0: "),
        "{text}"
    );
    // A NAK and a CNP of the receiver come back to the sender.
    rig.back(&back(0x1_0018, 0x11, 0x81));
    let nak = back(0x1_0018, 0x11, 0x11).changed(|frame| frame[54] = 0x60);
    rig.now += Nanos::from_micros(10);
    rig.pass_frame(&nak, WAN, DC);
    rig.tick(TICK, 0);
    let hosts: Vec<_> = status.hosts.hosts().collect();
    assert_eq!(hosts.len(), 1);
    let (host, counts) = hosts[0];
    assert_eq!(host.to_string(), "10.0.1.3");
    assert_eq!(
        (counts.cnps_sent, counts.cnps_passed, counts.naks),
        (2, 1, 1)
    );
}

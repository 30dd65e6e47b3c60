//! Points where pause begins and ends, and capacity of headroom: the assertions of SONiC's `sai_qos_tests.py` (sonic-mgmt
//! tests/saitests), with its default margin of two packets.

use crate::rig::{LOSSLESS, Rig, Setup, wire};
use npcc_pipeline::buffer::GroupConfig;
use npcc_pipeline::datapath::Sent;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::frame::{FrameVec, HeapFrame};
use npcc_pipeline::units::{BURST, BitRate, Nanos, PortId};
use npcc_pipeline::wire::mac_control::time_of;

const LEN: usize = 1000;
const MARGIN: usize = 2;

/// Returns the number of frames a lone lossless group takes before the first goes to headroom: alpha 1 stops at half of what
/// is shared.
fn point(setup: &Setup) -> usize {
    let headroom = 2 * u64::from(setup.ports) * setup.group.headroom;
    let shared = setup.pool - setup.shared_headroom.unwrap_or(headroom);
    usize::try_from((shared / 2).div_ceil(wire(LEN))).unwrap()
}

fn filled(setup: Setup, frames: usize) -> Rig {
    let mut rig = setup.build();
    rig.push(0, 1, 3, LEN, frames, 0);
    rig
}

/// PFCtest, first and second leg: up to the trigger no PFC and no drop; past it PFC, and still no drop.
#[test]
fn xoff_point() {
    let point = point(&Setup::default());
    let below = filled(Setup::default(), point - MARGIN);
    assert_eq!((below.sent.len(), below.all_drops()), (0, 0));
    let above = filled(Setup::default(), point + MARGIN);
    assert_eq!(
        above.sent[0],
        (0, 0, 1 << 3, 0),
        "only the port and priority that filled"
    );
    assert_eq!(above.all_drops(), 0);
    assert_eq!(above.counters(0).pfc.tx[3].get(), 1);
    assert_eq!(above.counters(0).flow.xoff_buffer.get(), 1);
}

/// PFCtest, third and fourth leg: no drop until headroom is used up, then ingress drops, counted as lossless loss.
#[test]
fn headroom_exhaustion() {
    let room = usize::try_from(50_000 / wire(LEN)).unwrap();
    let point = point(&Setup::default());
    let full = filled(Setup::default(), point + room - MARGIN);
    assert_eq!(full.all_drops(), 0, "headroom holds");
    let over = filled(Setup::default(), point + room + MARGIN);
    let dropped = over.dropped(DropReason::HeadroomFull);
    assert!((1..=2 * MARGIN as u64).contains(&dropped), "{dropped}");
    assert_eq!((over.all_drops(), over.lost()), (dropped, dropped));
    assert_eq!(over.counters(0).groups[3].dropped.get(), dropped);
    over.assert_conserved();
}

/// PFCXonTest and XonHysteresis, to the frame: while draining no resume until `xon_offset` below the threshold or until `xon`,
/// whichever comes first, and then exactly one.
#[test]
fn xon_hysteresis() {
    let usual = Setup::default();
    let shared = usual.pool - 2 * u64::from(usual.ports) * usual.group.headroom;
    // The threshold rises as fast as the queue falls: with alpha 1 half of the offset is to be drained.
    let by_offset = |offset: u64| (shared - offset) / 2;
    for (xon, xon_offset, due) in [
        (0, 10_000, by_offset(10_000)),
        (0, 200_000, by_offset(200_000)),
        (
            by_offset(200_000) + 50_000,
            200_000,
            by_offset(200_000) + 50_000,
        ),
        (by_offset(10_000) - 50_000, 10_000, by_offset(10_000)),
    ] {
        let what = format!("xon {xon}, xon_offset {xon_offset}");
        let group = GroupConfig {
            xon,
            xon_offset,
            ..usual.group
        };
        let setup = Setup {
            group,
            ..Setup::default()
        };
        let mut rig = filled(setup, point(&usual) + 8);
        assert_eq!(rig.sent.len(), 1, "{what}");
        let mut now = 0;
        while rig.sent.len() == 1 {
            now += 800;
            let before = rig.held(0, 3).0;
            pull_one(&mut rig, 1, now);
            rig.control(0, now);
            assert_eq!(rig.held(0, 3).0, before - wire(LEN), "{what}");
        }
        let held = rig.held(0, 3).0;
        assert!(
            (held..held + wire(LEN)).contains(&due),
            "{what}: resumed at {held}, due at {due}"
        );
        assert_eq!(rig.sent[1].3, 1 << 3, "XON");
        assert_eq!(rig.counters(0).flow.asserted.get(), 0);
        let history = &rig.counters(0).flow.priorities[3];
        assert_eq!(history.tx_paused_ns.get(), now, "time we held the peer");
        assert_eq!(
            [history.tx_last_ns.get(), history.tx_longest_ns.get()],
            [now; 2]
        );
        rig.pull_all(1, now);
        rig.control(0, now);
        assert_eq!(rig.sent.len(), 2, "{what}: one XON");
    }
}

/// Sends the first frame of a port, of `LEN` bytes, taken by its device.
fn pull_one(rig: &mut Rig, port: u8, now: u64) {
    let mut out = FrameVec::default();
    out.extend((1..BURST).map(|_| HeapFrame::new(&[])));
    rig.path.egress(PortId(port), &mut out, Nanos(now));
    assert_eq!(out.len(), BURST);
    rig.path.sent(PortId(port), Sent::of([LEN]));
}

/// LossyQueue: it drops at its limit, without PFC.
#[test]
fn lossy_queue_limit_without_pfc() {
    let mut rig = Setup::default().build();
    let point = point(&Setup::default());
    rig.push(0, 1, 0, LEN, point - MARGIN, 0);
    assert_eq!(rig.all_drops(), 0);
    rig.push(0, 1, 0, LEN, 2 * MARGIN, 0);
    let dropped = rig.dropped(DropReason::QueueFull);
    assert!(dropped >= 1 && dropped == rig.all_drops(), "{dropped}");
    assert_eq!((rig.sent.len(), rig.lost()), (0, 0));
}

/// M2O lossless and lossy mix (sonic-mgmt docs/testplan/pfc): only lossy drops, and it cannot take lossless headroom.
#[test]
fn lossy_cannot_take_headroom() {
    let mut rig = Setup {
        alpha_256: 64 * 256,
        ..Setup::default()
    }
    .build();
    rig.push(2, 1, 0, LEN, 3000, 0);
    assert!(rig.dropped(DropReason::QueueFull) + rig.dropped(DropReason::BufferFull) > 0);
    // Nothing is free: the first lossless frames go to headroom and pause their sender at once.
    rig.push(0, 1, 3, LEN, 40, 0);
    assert_eq!(
        rig.sent.first().map(|sent| (sent.0, sent.2)),
        Some((0, 1 << 3))
    );
    assert_eq!((rig.held(0, 3).1, rig.lost()), (40, 0));
}

/// SharedReservationSize and PgMinThreshold: the reserve is the group's own, however full the pool.
#[test]
fn the_reserve_is_the_groups_own() {
    let group = GroupConfig {
        reserved: 20 * wire(LEN),
        ..Setup::default().group
    };
    let mut rig = Setup {
        alpha_256: 64 * 256,
        group,
        ..Setup::default()
    }
    .build();
    rig.push(2, 1, 0, LEN, 3000, 0);
    rig.push(0, 1, 3, LEN, 20, 0);
    assert_eq!((rig.sent.len(), rig.lost()), (0, 0), "within the reserve");
    // The lossy flood leaves a 65th of the shared pool free: ten frames.
    rig.push(0, 1, 3, LEN, 10 + MARGIN, 0);
    assert_eq!(rig.sent.len(), 1);
}

/// HeadroomPoolSize: groups share one headroom; each may use its `xoff`, all together the pool's.
#[test]
fn shared_headroom_pool() {
    let setup = || Setup {
        ports: 5,
        shared_headroom: Some(120_000),
        alpha_256: 16,
        ..Setup::default()
    };
    let mut rig = setup().build();
    for port in 0..4 {
        rig.push(port, 4, 3, LEN, 200, 0);
    }
    let used: u64 = (0..4)
        .map(|port| rig.counters(port).groups[3].headroom.get())
        .sum();
    assert!((120_000 - wire(LEN)..=120_000).contains(&used), "{used}");
    assert_eq!(
        rig.counters(0).groups[3].headroom.get() / wire(LEN),
        50_000 / wire(LEN)
    );
    assert_eq!(rig.path.buffer().in_headroom().bytes, used);
    let drained = rig.pull_all(4, 0);
    assert!(drained > 0);
    rig.control(0, 1);
    assert_eq!(rig.path.buffer().in_headroom().bytes, 0);
}

/// Short frames run out of packet buffers first: pause and headroom count frames as well.
#[test]
fn frames_are_a_currency_too() {
    let setup = Setup {
        frames: 2_000,
        min_frame: 1024,
        ..Setup::default()
    };
    // 49 buffers of headroom for each of 6 groups, half of the rest before XOFF.
    let point = (2_000 - 6 * 49) / 2 + 1;
    let mut rig = setup.build();
    rig.push(0, 1, 3, 60, point - MARGIN, 0);
    assert_eq!(rig.sent.len(), 0);
    rig.push(0, 1, 3, 60, 2 * MARGIN, 0);
    assert_eq!(rig.sent.len(), 1);
    rig.push(0, 1, 3, 60, 40, 0);
    assert_eq!(rig.lost(), 0);
    rig.push(0, 1, 3, 60, 20, 0);
    assert!(rig.lost() > 0);
}

/// PgSharedWatermark, PgHeadroomWatermark and QSharedWatermark, within one cell (here: exact); user and persistent apart.
#[test]
fn watermarks() {
    let point = point(&Setup::default());
    let mut rig = filled(Setup::default(), point + 4);
    rig.pull_all(1, 0);
    rig.control(0, 1);
    let all = (point as u64 + 4) * wire(LEN);
    let group = &rig.counters(0).groups[3];
    assert_eq!((group.held.get(), group.held_peak.get()), (0, all));
    let headroom = group.headroom_peak.get();
    assert!(
        headroom.abs_diff(4 * wire(LEN)) <= MARGIN as u64 * wire(LEN),
        "{headroom}"
    );
    assert_eq!(rig.counters(1).queues[3].peak.get(), all);
    rig.path.clear_watermarks();
    let group = &rig.counters(0).groups[3];
    assert_eq!(
        (group.held_peak.get(), group.held_peak_before.get()),
        (0, all)
    );
    rig.push(0, 1, 3, LEN, 3, 2);
    assert_eq!(rig.counters(0).groups[3].held_peak.get(), 3 * wire(LEN));
}

/// Buffer is released when the device took the frame, not when it left the queue.
#[test]
fn what_is_in_hand_is_still_held() {
    let mut rig = filled(Setup::default(), 8);
    let mut out = npcc_pipeline::datapath::Outgoing::new();
    rig.path.egress(PortId(1), &mut out, Nanos(0));
    assert_eq!((out.len(), rig.held(0, 3).1), (8, 8));
    rig.path.sent(PortId(1), Sent::of([LEN; 3]));
    rig.control(0, 1);
    assert_eq!(rig.held(0, 3), (5 * wire(LEN), 5));
}

/// A turn that spans two rows of a queue's cells, each of one group, releases the charges of both.
#[test]
fn a_turn_over_rows_of_two_groups_gives_back_both() {
    const SHORT: usize = 100;
    let mut setup = Setup::default();
    // A turn of 25,600 bytes.
    setup.queues[3].discipline = Discipline::Dwrr(100);
    let mut rig = setup.build();
    rig.push(0, 1, 3, SHORT, 24, 0);
    // Room for sixteen only: the next turn begins in the middle of a row of 32.
    let mut out = FrameVec::default();
    out.extend((16..BURST).map(|_| HeapFrame::new(&[])));
    rig.path.egress(PortId(1), &mut out, Nanos(0));
    assert_eq!(out.len(), BURST);
    rig.path.sent(PortId(1), Sent::of([SHORT; 16]));
    rig.push(0, 1, 3, SHORT, 8, 0);
    rig.push(2, 1, 3, SHORT, 16, 0);
    assert_eq!(rig.pull(1, 0).len(), 32);
    for port in [0, 2] {
        rig.control(port, 1);
        assert_eq!(rig.held(port, 3), (0, 0), "port {port}");
    }
}

/// XOFF is repeated at half its time; a refresh after the peer's pause ran out is counted as late.
#[test]
fn xoff_is_refreshed_at_half_its_time() {
    let mut rig = filled(Setup::default(), point(&Setup::default()) + 2);
    let lasts = time_of(u16::MAX, BitRate(10 * crate::rig::GIG)).0;
    assert!(rig.control(0, lasts / 2 - 1).is_none());
    assert!(rig.control(0, lasts / 2).is_some());
    assert_eq!(rig.counters(0).flow.late.get(), 0);
    rig.control(0, lasts / 2 + lasts + 1);
    assert_eq!(rig.counters(0).flow.late.get(), 1);
    assert_eq!(
        rig.counters(0).flow.priorities[3].tx_pauses.get(),
        1,
        "one pause, refreshed"
    );
    rig.assert_conserved();
}

/// A frame the device did not take is due again.
#[test]
fn an_xoff_that_was_not_sent_is_due_again() {
    let mut rig = Setup::default().build();
    let many = point(&Setup::default()) + 2;
    let bytes = crate::rig::frame(0, 1, 3, LEN);
    for _ in 0..many {
        rig.take(0, &bytes, 0);
    }
    let first = rig.path.control_due(PortId(0), Nanos(0)).unwrap();
    let again = rig.path.control_due(PortId(0), Nanos(5)).unwrap();
    assert_eq!(first.bytes, again.bytes);
    rig.path.control_sent(PortId(0), &again, Nanos(5));
    assert!(rig.path.control_due(PortId(0), Nanos(6)).is_none());
    assert_eq!(rig.counters(0).flow.response_ns.get(), 5);
}

/// The worker falls behind the receive ring: all lossless priorities of the port pause, for reason `cpu`.
#[test]
fn ring_pressure_pauses_the_port() {
    let mut setup = Setup::default();
    setup.pause.pressure = 4;
    let mut rig = setup.build();
    rig.push(0, 1, 0, LEN, 3 * BURST, 0);
    assert_eq!(rig.sent.len(), 0);
    rig.push(0, 1, 0, LEN, BURST, 1);
    assert_eq!(rig.sent, [(0, 1, LOSSLESS, 0)]);
    assert_eq!(rig.counters(0).flow.xoff_cpu.get(), 2);
    assert_eq!(rig.counters(0).flow.xoff_buffer.get(), 0);
    rig.control(0, 2);
    assert_eq!(rig.sent[1].3, LOSSLESS, "an empty turn ends it");
}

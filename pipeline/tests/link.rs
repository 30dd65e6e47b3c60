//! Tests of links that go down and come up, and of the room for a peer that cannot be paused: findings of the review of the
//! data path.

use crate::rig::{GIG, LOSSLESS, Rig, Setup, frame, mac, prio, wire};
use npcc_pipeline::buffer::{ControlReserve, GroupConfig};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::egress::port::EgressQueueConfig;
use npcc_pipeline::frame::{FrameBuf, HeapFrame};
use npcc_pipeline::pause::{StormAction, WatchdogConfig};
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::units::{BitRate, Mac, Nanos, PortId};

const LEN: usize = 1000;
/// Most frames of one port that may be dropped in an iteration.
const BOUND: u64 = 256;

/// Returns a rig with three ports; frames for port 1 wait until port 0 is paused.
fn congested() -> Rig {
    let mut rig = Setup::default().build();
    for _ in 0..64 {
        rig.push(0, 1, 3, LEN, 16, 0);
        if rig.sent.last().is_some_and(|sent| sent.2 != 0) {
            return rig;
        }
    }
    panic!("port 0 is never paused");
}

fn turn(rig: &mut Rig, now: u64) {
    for port in 0..3 {
        rig.control(port, now);
    }
}

/// A dead link pauses no peer. Earlier defect: frames for a dead link stayed charged to the port they arrived on, whose
/// peer was paused for ever.
#[test]
fn a_dead_link_pauses_nobody() {
    let mut rig = congested();
    let waiting = rig.depth(1, 3) / wire(LEN);
    rig.path.link_down(PortId(1), Nanos(1_000));
    let mut turns = 0;
    while rig.depth(1, 3) > 0 {
        let before = rig.dropped(DropReason::LinkDown);
        turn(&mut rig, 2_000 + turns);
        let dropped = rig.dropped(DropReason::LinkDown) - before;
        assert!((1..=BOUND).contains(&dropped), "{dropped} in one turn");
        turns += 1;
    }
    assert_eq!(rig.dropped(DropReason::LinkDown), waiting);
    turn(&mut rig, 10_000);
    let last = rig.sent.iter().rev().find(|sent| sent.0 == 0).unwrap();
    assert_eq!((last.2, last.3), (0, 1 << 3), "its sender goes on");
    rig.push(0, 1, 3, LEN, 5, 11_000);
    assert_eq!(rig.dropped(DropReason::LinkDown), waiting + 5);
    assert_eq!(rig.lost(), 0, "no congestion: the link is down");
    rig.push(0, 2, 3, LEN, 5, 11_000);
    assert_eq!(rig.pull_all(2, 12_000), 5, "the other ports do not notice");
    rig.path.link_up(PortId(1));
    rig.push(0, 1, 3, LEN, 5, 13_000);
    assert_eq!(rig.pull_all(1, 14_000), 5);
    rig.assert_conserved();
}

/// First UDP source port of the flows of [`round`].
const FLOWS: u16 = 49_152;

/// Receives a frame of each of 64 flows on port 0 and sends what can be sent; returns the port by which each flow left, 0 for none.
fn round(rig: &mut Rig, now: u64) -> Vec<u8> {
    for flow in 0..64 {
        let (src, dst) = ([10, 0, 0, 3].into(), [10, 0, 7, 2].into());
        let craft = Craft {
            dst_mac: mac(0),
            tos: 3 << 5 | 2,
            src_port: FLOWS + flow,
            ..Craft::roce(src, dst, 0x0a, 0x11, 64)
        };
        rig.take(0, &craft.frame(), now);
    }
    let mut left = vec![0; 64];
    for port in [1, 2] {
        for sent in rig.pull(port, now) {
            let frame = sent.buf.data();
            let flow = u16::from_be_bytes([frame[34], frame[35]]) - FLOWS;
            left[usize::from(flow)] = port;
        }
    }
    turn(rig, now);
    left
}

/// Flows of a cut uplink move to the other when the route follows the link, and return with it; at no time does a flow of the other lose
/// a frame, take another way, or is anybody paused.
#[test]
fn flows_of_the_other_uplink_do_not_notice_a_cut() {
    let mut rig = Setup::default().build();
    let way = |port| Adjacency {
        kind: Kind::Forward,
        port: PortId(port),
        vlan: 0,
        dst: Mac([2, 0, 0, 0, 9, port]),
        src: mac(port),
        mtu: 0,
    };
    let prefix = Prefix::new([10, 0, 7, 0].into(), 24).unwrap();
    rig.routes.insert(prefix, &[way(1), way(2)]).unwrap();
    rig.routes.commit();
    rig.path.refresh();
    let down = rig.routes.down_ports();
    let before = round(&mut rig, 1_000);
    let of = |port: u8| before.iter().filter(|by| **by == port).count();
    assert!(of(1) >= 16 && of(2) >= 16, "{before:?}");
    // The link is cut; the route follows some turns later.
    rig.path.link_down(PortId(1), Nanos(2_000));
    for now in [2_000, 3_000, 4_000] {
        let lost: Vec<u8> = before.iter().map(|by| by & 2).collect();
        assert_eq!(round(&mut rig, now), lost);
    }
    down.set(PortId(1), true);
    rig.path.refresh();
    assert_eq!(round(&mut rig, 5_000), [2; 64]);
    rig.path.link_up(PortId(1));
    assert_eq!(round(&mut rig, 6_000), [2; 64], "not before the route");
    down.set(PortId(1), false);
    rig.path.refresh();
    assert_eq!(round(&mut rig, 7_000), before);
    assert_eq!(rig.dropped(DropReason::LinkDown), 3 * of(1) as u64);
    assert_eq!((rig.all_drops(), rig.lost()), (3 * of(1) as u64, 0));
    assert!(rig.sent.is_empty(), "nobody is paused: {:?}", rig.sent);
    rig.assert_conserved();
}

/// Pauses are forgotten with the link: the other side may have forgotten them.
#[test]
fn pauses_are_forgotten_with_the_link() {
    let mut rig = congested();
    rig.hear(1, LOSSLESS, u16::MAX, 500);
    rig.hear(0, LOSSLESS, u16::MAX, 500);
    for port in [0, 1] {
        rig.path.link_down(PortId(port), Nanos(1_000));
    }
    for now in 0..16 {
        turn(&mut rig, 2_000 + now);
    }
    let sent = rig.sent.len();
    for port in [0, 1] {
        let flow = &rig.counters(port).flow;
        assert_eq!(
            (flow.paused.get(), flow.asserted.get()),
            (0, 0),
            "port {port}"
        );
        rig.path.link_up(PortId(port));
    }
    turn(&mut rig, 3_000);
    assert_eq!(rig.sent.len(), sent, "nothing to let go");
    rig.push(2, 1, 3, LEN, 5, 4_000);
    rig.push(2, 0, 3, LEN, 5, 4_000);
    assert_eq!((rig.pull_all(1, 5_000), rig.pull_all(0, 5_000)), (5, 5));
    rig.assert_conserved();
}

/// A storm empties a queue a bounded number of frames per iteration. Earlier defect: the watchdog dropped a whole queue
/// in one iteration, milliseconds in which the other ports overflowed.
#[test]
fn a_storm_empties_a_queue_a_bounded_number_of_frames_a_turn() {
    const MS: u64 = 1_000_000;
    let mut setup = Setup {
        pool: 8 << 20,
        ..Setup::default()
    };
    setup.pause.watchdog = Some(WatchdogConfig {
        detect: Nanos(200 * MS),
        share: 90,
        restore: Nanos(200 * MS),
        poll: Nanos(MS),
        action: StormAction::Drop,
    });
    let mut rig = setup.build();
    rig.push(0, 1, 3, LEN, 3_000, 0);
    let (mut most, mut before) = (0, 0);
    for now in 0..300 {
        rig.hear(1, 1 << 3, u16::MAX, now * MS);
        rig.control(1, now * MS);
        let dropped = rig.dropped(DropReason::PfcStorm);
        most = most.max(dropped - before);
        before = dropped;
    }
    assert_eq!((rig.depth(1, 3), before), (0, 3_000));
    assert_eq!(
        rig.counters(1).flow.priorities[3].storm_tx_dropped.get(),
        3_000
    );
    assert!(most <= BOUND, "{most} in one turn");
    rig.assert_conserved();
}

/// A lossless queue fed by a port without pause leaves others their share. Earlier defect: it took all of the pool, and
/// silenced our own CNPs.
#[test]
fn lossless_queue_from_a_port_without_pause_leaves_others_their_share() {
    let mut rig = Setup {
        unpausable: Some(2),
        ..Setup::default()
    }
    .build();
    // The receiver behind port 1 is paused, and port 2 goes on sending to it.
    rig.hear(1, 1 << 3, u16::MAX, 0);
    rig.push(2, 1, 3, LEN, 4_000, 0);
    assert!(rig.dropped(DropReason::QueueFull) > 0, "its own loss");
    // Half of the shared pool is still there: for a lossless group of another port, a lossy queue, and CNPs.
    rig.push(0, 2, 3, LEN, 50, 1_000);
    rig.push(0, 2, 0, LEN, 50, 1_000);
    assert_eq!(
        rig.sent
            .iter()
            .filter(|sent| sent.0 == 0 && sent.2 != 0)
            .count(),
        0
    );
    let own = HeapFrame::new(&frame(1, 0, 6, 60));
    assert!(
        rig.path
            .originate(PortId(0), prio(6), own, Nanos(2_000))
            .is_ok()
    );
    assert_eq!(rig.pull_all(2, 3_000), 100);
    assert_eq!(rig.counters(0).groups[3].dropped.get(), 0);
    rig.assert_conserved();
}

/// Control frames of hosts and of the switch find room when the pool is taken to the last byte.
#[test]
fn control_frames_have_room_when_the_pool_is_taken() {
    for reserve in [0, 64 * 84] {
        let mut setup = Setup {
            alpha_256: 1 << 30,
            group: GroupConfig::default(),
            control: ControlReserve {
                priorities: 1 << 6,
                group: reserve,
                own: reserve,
                linux: 0,
            },
            ..Setup::default()
        };
        setup.pause.send = 0;
        setup.queues[6] = EgressQueueConfig {
            reserve: 4 * reserve,
            ..EgressQueueConfig::default()
        };
        let mut rig = setup.build();
        rig.push(2, 1, 0, LEN, 4_000, 0);
        rig.push(2, 1, 0, 60, 4_000, 0);
        rig.push(0, 1, 6, 60, 20, 1_000);
        let own = (0..20).filter(|_| {
            let own = HeapFrame::new(&frame(1, 0, 6, 60));
            rig.path
                .originate(PortId(0), prio(6), own, Nanos(2_000))
                .is_ok()
        });
        let own = own.count();
        let through = rig.depth(1, 6) / 84;
        assert_eq!((through, own), if reserve == 0 { (0, 0) } else { (20, 20) });
        while rig.pull_all(1, 3_000) + rig.pull_all(0, 3_000) > 0 {}
        turn(&mut rig, 4_000);
        rig.assert_conserved();
        assert_eq!(rig.path.buffer().used().frames, 0);
        let free = rig.path.buffer().free();
        assert_eq!(
            free.bytes,
            (1 << 20) - u64::from(reserve > 0) * 4 * reserve,
            "all given back"
        );
    }
}

/// Headroom follows the link's speed when it comes up, and charges stay accounted for.
#[test]
fn headroom_follows_the_link() {
    let setup = Setup::default();
    let mut wide = Setup::default().buffer(3);
    for group in wide
        .groups
        .iter_mut()
        .flatten()
        .filter(|group| group.lossless)
    {
        group.headroom = 100_000;
    }
    let mut rig = setup.build();
    rig.push(0, 1, 3, LEN, 300, 0);
    let before = rig.path.buffer().free().bytes;
    rig.path.divide_buffer(&wide);
    assert_eq!(before - rig.path.buffer().free().bytes, 6 * 50_000);
    let room = usize::try_from(100_000 / wire(LEN)).unwrap();
    while rig.sent.iter().all(|sent| sent.2 == 0) {
        rig.push(0, 1, 3, LEN, 1, 1_000);
    }
    rig.push(0, 1, 3, LEN, room - 2, 2_000);
    assert_eq!(rig.all_drops(), 0, "the new headroom holds");
    rig.push(0, 1, 3, LEN, 4, 3_000);
    assert!(rig.dropped(DropReason::HeadroomFull) > 0);
    rig.pull_all(1, 4_000);
    rig.control(0, 5_000);
    assert_eq!(rig.path.buffer().used().frames, 0);
    assert_eq!(rig.path.buffer().free().bytes, (1 << 20) - 6 * 100_000);
    rig.assert_conserved();
}

/// Quanta are bit times of the link, whatever the port is shaped to; the refresh follows when the link's speed changes.
#[test]
fn quanta_follow_the_link() {
    let mut rig = congested();
    let start = rig.sent.last().unwrap().1;
    let config = Setup::default().port(0);
    rig.path.set_speed(PortId(0), &config, BitRate(100 * GIG));
    // 65,535 quanta at 100 Gb/s last 335 us: refreshed at half of that.
    let due = (1..)
        .map(|us| start + us * 1_000)
        .find(|now| rig.control(0, *now).is_some());
    let after = due.unwrap() - start;
    assert!((167_000..169_000).contains(&after), "{after}");
}

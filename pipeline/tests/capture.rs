//! Tests of captures of a path, against its counters and against the same path without them.
//!
//! Laws: a frame takes the same path whether it is captured or not; every frame that is counted as received, sent or dropped
//! is captured as that, once, for the same reason; lost copies are counted, and no more is copied in an iteration than
//! allowed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rig::several::{Several, assignment};
use crate::rig::{GIG, LOSSLESS, Rig, Setup, frame_with};
use npcc_pipeline::buffer::GroupConfig;
use npcc_pipeline::capture::{CaptureOrder, Event, Filter, HEAD, Kind, RING, TURN, Tracked, ends};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::egress::ecn::{CERTAIN, Red};
use npcc_pipeline::pause::{StormAction, WatchdogConfig};
use npcc_pipeline::punt::FrameReceiver;
use npcc_pipeline::units::{BitRate, Nanos, PortId, WorkerId};
use proptest::prelude::*;

const PORTS: u8 = 3;
/// Captured bytes, for headers only: more whole frames are dropped in one iteration than may be copied in it.
const SNAPLEN: usize = 64;

fn order(filter: &str) -> Box<CaptureOrder> {
    Box::new(CaptureOrder {
        id: 1,
        filter: Filter::parse(filter).unwrap(),
        ports: u32::MAX,
        priorities: u8::MAX,
        snaplen: u16::MAX,
        tracked: None,
    })
}

fn headers(filter: &str) -> Box<CaptureOrder> {
    Box::new(CaptureOrder {
        snaplen: SNAPLEN as u16,
        ..*order(filter)
    })
}

/// Returns all events in a ring.
fn drain(frames: &mut FrameReceiver) -> Vec<(Event, Vec<u8>)> {
    let mut record = vec![0; 1 << 16];
    let mut all = Vec::new();
    while let Some((_, record)) = frames.pop(&mut record) {
        let (event, frame) = Event::decode(record).unwrap();
        all.push((event, frame.to_vec()));
    }
    all
}

#[derive(Debug, Clone)]
enum Op {
    /// Copies of a frame, one of whose octets may be wrong.
    Push {
        from: u8,
        to: u8,
        tos: u8,
        len: usize,
        count: usize,
        wrong: Option<(usize, u8)>,
    },
    Pull(u8),
    Control(u8),
    Hear {
        port: u8,
        classes: u8,
        quanta: u16,
    },
    Link(u8, bool),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let tos = (0u8..8, 0u8..4).prop_map(|(priority, ecn)| priority << 5 | ecn);
    let wrong = prop::option::weighted(0.2, (0usize..40, any::<u8>()));
    prop_oneof![
        8 => (0..PORTS, 0..PORTS + 1, tos, 100usize..700, 1usize..70, wrong).prop_map(
            |(from, to, tos, len, count, wrong)| Op::Push { from, to, tos, len, count, wrong }),
        5 => (0..PORTS).prop_map(Op::Pull),
        3 => (0..PORTS).prop_map(Op::Control),
        1 => (0..PORTS, any::<u8>(), prop_oneof![Just(0u16), any::<u16>()]).prop_map(
            |(port, classes, quanta)| Op::Hear { port, classes, quanta }),
        1 => (0..PORTS, any::<bool>()).prop_map(|(port, up)| Op::Link(port, up)),
        2 => (1u64..40_000_000).prop_map(Op::Wait),
    ]
}

/// Returns a small switch that loses frames for many reasons.
fn losing() -> Rig {
    let mut setup = Setup {
        ports: PORTS,
        pool: 200_000,
        frames: 1_000,
        group: GroupConfig {
            headroom: 5_000,
            ..Setup::default().group
        },
        rate: Some(BitRate(GIG)),
        ..Setup::default()
    };
    setup.queues[1].wred = Some(Red {
        kmin: 2_000,
        kmax: 4_000,
        pmax: CERTAIN,
    });
    setup.pause.watchdog = Some(WatchdogConfig {
        detect: Nanos::from_millis(20),
        share: 90,
        restore: Nanos::from_millis(20),
        poll: Nanos::from_millis(5),
        action: StormAction::Drop,
    });
    setup.build()
}

fn apply(rig: &mut Rig, op: &Op, now: &mut u64) {
    rig.path.refresh();
    match *op {
        Op::Push {
            from,
            to,
            tos,
            len,
            count,
            wrong,
        } => {
            let mut bytes = frame_with(from, to, tos, len);
            if let Some((at, bits)) = wrong {
                bytes[at] ^= bits;
            }
            rig.push_copies(from, &bytes, count, *now);
        }
        Op::Pull(port) => _ = rig.pull(port, *now),
        Op::Control(port) => _ = rig.control(port, *now),
        Op::Hear {
            port,
            classes,
            quanta,
        } => rig.hear(port, classes, quanta, *now),
        Op::Link(port, true) => rig.path.link_up(PortId(port)),
        Op::Link(port, false) => rig.path.link_down(PortId(port), Nanos(*now)),
        Op::Wait(time) => *now += time,
    }
}

/// Frames counted, or captured: dropped by reason, and received and sent by port.
type Account = (BTreeMap<&'static str, u64>, Vec<(u64, u64)>);

fn counted(rig: &Rig) -> Account {
    let reasons = DropReason::ALL.map(|reason| (reason.name(), rig.dropped(reason)));
    let ports = (0..PORTS).map(|port| {
        let port = rig.counters(port);
        (port.rx.packets.get(), port.tx.packets.get())
    });
    (
        reasons
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect(),
        ports.collect(),
    )
}

fn seen(events: &[(Event, Vec<u8>)]) -> Account {
    let mut reasons = BTreeMap::new();
    let mut ports = vec![(0, 0); usize::from(PORTS)];
    for (event, frame) in events {
        assert_eq!(frame.len(), usize::from(event.len).min(SNAPLEN));
        match event.kind {
            Kind::Received => ports[event.ingress.unwrap().index()].0 += 1,
            Kind::Sent => ports[event.egress.unwrap().index()].1 += 1,
            Kind::Dropped => *reasons.entry(event.reason.unwrap().name()).or_default() += 1,
            other => panic!("{other:?} is not for captures"),
        }
    }
    (reasons, ports)
}

proptest! {
    #![proptest_config(crate::rig::cases::cases(200))]

    #[test]
    fn what_is_counted_is_seen_once_and_nothing_goes_another_way(ops in prop::collection::vec(op(), 1..120)) {
        let mut alone = losing();
        let (mut watched, mut frames, stats) = losing().with_capture();
        watched.path.set_capture(Some(headers("")));
        let (mut now, mut then) = (1, 1);
        let mut events = Vec::new();
        for op in &ops {
            apply(&mut alone, op, &mut now);
            apply(&mut watched, op, &mut then);
            events.extend(drain(&mut frames));
        }
        for rig in [&mut alone, &mut watched] {
            rig.path.refresh();
            rig.path.shut_down();
        }
        events.extend(drain(&mut frames));
        prop_assert_eq!(counted(&alone), counted(&watched));
        prop_assert_eq!(stats.lost.get(), 0);
        prop_assert_eq!(stats.captured.get(), events.len() as u64);
        prop_assert_eq!(seen(&events), counted(&watched));
    }
}

/// The small switch loses frames for many reasons, without which the property above would be worth nothing.
#[test]
fn the_small_switch_loses_frames_for_many_reasons() {
    let (mut rig, mut frames, _stats) = losing().with_capture();
    rig.path.set_capture(Some(headers("dropped")));
    let mut now = 1;
    let push = |from, to, tos, wrong| Op::Push {
        from,
        to,
        tos,
        len: 1_000,
        count: 64,
        wrong,
    };
    let mut events = Vec::new();
    let hear = Op::Hear {
        port: 2,
        classes: LOSSLESS,
        quanta: u16::MAX,
    };
    let mut ops = vec![
        push(0, 1, 0, None),
        push(0, 1, 0, None),
        push(0, 1, 1 << 5, None),
        push(0, 1, 3 << 5 | 2, None),
        push(2, 1, 3 << 5 | 2, None),
        push(0, 9, 0, None),
        push(0, 1, 0, Some((24, 1))),
        hear.clone(),
        push(0, 2, 4 << 5 | 2, None),
    ];
    // Longer than the watchdog allows, before each pause is over.
    ops.extend((0..12).flat_map(|_| [hear.clone(), Op::Wait(3_000_000), Op::Control(2)]));
    ops.extend([
        push(0, 2, 4 << 5 | 2, None),
        Op::Link(1, false),
        Op::Control(1),
        push(0, 1, 0, None),
    ]);
    for op in ops {
        apply(&mut rig, &op, &mut now);
        events.extend(drain(&mut frames));
    }
    let (reasons, ports) = seen(&events);
    assert_eq!(reasons, counted(&rig).0);
    assert_eq!(ports, [(0, 0); 3], "nothing but what was asked for");
    for reason in [
        "queue_full",
        "wred",
        "headroom_full",
        "no_route",
        "ip_checksum",
        "link_down",
        "pfc_storm",
    ] {
        assert!(reasons.contains_key(reason), "{reason}: {reasons:?}");
    }
    let full = |event: &Event| event.reason == Some(DropReason::QueueFull);
    let (full, _) = events.iter().find(|(event, _)| full(event)).unwrap();
    assert_eq!(
        (full.ingress, full.egress),
        (Some(PortId(0)), Some(PortId(1)))
    );
    assert!(full.depth > 1_000 && full.has(Event::REWRITTEN), "{full:?}");
}

#[test]
fn a_full_ring_and_a_full_turn_lose_captures_and_count_them() {
    let setup = Setup {
        pool: 8 << 20,
        ..Setup::default()
    };
    let (mut rig, mut frames, stats) = setup.build().with_capture();
    rig.path.set_capture(Some(order("received")));
    let bytes = frame_with(0, 1, 2, 1_000);
    let a_turn = TURN / (HEAD + 1_000);
    rig.path.refresh();
    rig.push_copies(0, &bytes, 4 * a_turn, 1);
    assert_eq!(stats.captured.get(), a_turn as u64);
    assert_eq!(stats.lost.get(), 3 * a_turn as u64);
    // The ring is not read: it fills, and frames go on.
    for _ in 0..2 * RING / TURN {
        rig.path.refresh();
        rig.push_copies(0, &bytes, a_turn, 1);
        rig.pull_all(1, 1);
    }
    let all = (4 * a_turn + 2 * RING / TURN * a_turn) as u64;
    assert_eq!(stats.captured.get() + stats.lost.get(), all);
    assert!(stats.captured.get() <= (RING / (HEAD + 1_000)) as u64);
    assert_eq!(rig.counters(1).tx.packets.get(), all);
    assert_eq!(drain(&mut frames).len() as u64, stats.captured.get());
    // No capture is active any more.
    rig.path.set_capture(None);
    rig.path.refresh();
    rig.push_copies(0, &bytes, 10, 1);
    assert_eq!(stats.active.get(), 0);
    assert!(drain(&mut frames).is_empty());
}

#[test]
fn a_frame_is_followed_from_worker_to_worker() {
    let setup = Setup {
        ports: 2,
        ..Setup::default()
    };
    let mut several = Several::new(&setup, assignment(&[0, 1], &[1, 1], 64));
    let tracked = Arc::new(Tracked::new(2));
    let mut rings = Vec::new();
    let mut paths = std::mem::take(&mut several.paths);
    for (worker, path) in (0..).zip(paths.drain(..)) {
        let (end, frames, _) = ends(WorkerId(worker));
        let mut path = path.with_capture(end);
        path.set_capture(Some(Box::new(CaptureOrder {
            tracked: Some(Arc::clone(&tracked)),
            ..*order("received and dqpn 0x11")
        })));
        several.paths.push(path);
        rings.push(frames);
    }
    assert_eq!(several.receive(0, (0, 1, 3), 500, 5), 5);
    several.refresh(1);
    several.turn(1);
    assert_eq!(several.pull(1).len(), 5);
    let of = |events: Vec<(Event, Vec<u8>)>| -> Vec<(u32, Kind)> {
        let each = events.iter().map(|(event, _)| (event.trace, event.kind));
        each.collect()
    };
    let (first, second) = (drain(&mut rings[0]), drain(&mut rings[1]));
    // Received as it came, with the table's next hop; rewritten from there on.
    assert_ne!(first[0].0.notes.next_hops, 0);
    assert_ne!(first[0].1, second[0].1);
    assert_eq!(second[1].0.worker, WorkerId(1));
    assert_eq!(
        of(first),
        [
            (1, Kind::Received),
            (2, Kind::Received),
            (1, Kind::HandedOver),
            (2, Kind::HandedOver)
        ],
        "two, and no more"
    );
    assert_eq!(
        of(second),
        [
            (1, Kind::Bypassed),
            (2, Kind::Bypassed),
            (1, Kind::Sent),
            (2, Kind::Sent)
        ]
    );
}

/// More frames of a lossy priority to another worker's port than its ring takes: the rest are captured by the worker that had
/// them.
#[test]
fn frames_that_find_the_ring_to_another_worker_full_are_told_as_they_are_counted() {
    let setup = Setup {
        ports: 2,
        ..Setup::default()
    };
    let mut several = Several::new(&setup, assignment(&[0, 1], &[1, 1], 32));
    let mut rings = Vec::new();
    let mut paths = std::mem::take(&mut several.paths);
    for (worker, path) in (0..).zip(paths.drain(..)) {
        let (end, frames, _) = ends(WorkerId(worker));
        let mut path = path.with_capture(end);
        path.set_capture(Some(headers("dropped")));
        several.paths.push(path);
        rings.push(frames);
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        several.refresh(0);
        assert_eq!(several.receive(0, (0, 1, 0), 500, 32), 32);
        seen.extend(drain(&mut rings[0]));
    }
    // The other worker takes nothing over meanwhile.
    let dropped = several.dropped(DropReason::XringFull);
    assert!(dropped >= 64, "{dropped}");
    assert_eq!(seen.len() as u64, dropped);
    for (event, bytes) in &seen {
        assert_eq!(event.kind, Kind::Dropped);
        assert_eq!(event.reason, Some(DropReason::XringFull));
        let ports = (event.ingress, event.egress, event.worker);
        assert_eq!(ports, (Some(PortId(0)), Some(PortId(1)), WorkerId(0)));
        assert!(event.has(Event::REWRITTEN) && bytes.len() == SNAPLEN);
    }
    several.refresh(1);
    several.turn(1);
    assert!(
        drain(&mut rings[1]).is_empty(),
        "the owner drops none of them"
    );
}

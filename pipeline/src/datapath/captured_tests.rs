//! Captures of a path with Linux: a frame that is dropped in the end has its last reason, and one that is punted is not
//! dropped.

use super::punted_rig::*;
use super::*;
use crate::capture::{self, CaptureOrder, Event, Filter, Kind, Tracked};

fn events(frames: &mut crate::punt::FrameReceiver) -> Vec<(Event, Vec<u8>)> {
    let mut record = vec![0; 1 << 16];
    let mut all = Vec::new();
    while let Some((_, record)) = frames.pop(&mut record) {
        let (event, frame) = Event::decode(record).unwrap();
        all.push((event, frame.to_vec()));
    }
    all
}

#[test]
fn frames_that_may_be_for_linux_are_captured_with_their_outcome() {
    let expired = Craft {
        ttl: 1,
        ..data("10.0.2.2")
    };
    let arp = ethernet(ALL_HOSTS, &[], 0x0806, &[1; 28]);
    // 10.0.1.1 is ours: a source route would be forwarded by Linux.
    let routed = packet(
        ("10.0.1.3", "10.0.1.1"),
        (17, 64),
        &[131, 7, 4, 0, 0, 0, 0],
        &ports(9, 9),
    );
    let cases = [
        (data("10.0.3.9").frame(), Some("unresolved")),
        (data("10.0.4.9").frame(), Some("unreachable")),
        (data("10.0.5.9").frame(), Some("prohibited")),
        (data("10.0.6.9").frame(), Some("blackhole")),
        (expired.frame(), Some("ttl_expired")),
        (ip(mac(0), &routed), Some("source_route")),
        (arp, None),
    ];
    for tracked in [None, Some(Tracked::new(100))] {
        let follows = tracked.is_some();
        let (end, mut frames, stats) = capture::ends(WorkerId::FIRST);
        let (path, _host) = linux();
        let mut path = path.with_capture(end);
        path.set_capture(Some(Box::new(CaptureOrder {
            id: 7,
            filter: Filter::parse(if follows { "received" } else { "dropped" }).unwrap(),
            ports: DC.bit(),
            priorities: u8::MAX,
            snaplen: u16::MAX,
            tracked: tracked.map(Arc::new),
        })));
        for (number, (frame, reason)) in (1u64..).zip(&cases) {
            path.refresh();
            push(&mut path, DC, frame, number * 1_000_000);
            let seen = events(&mut frames);
            let last = seen.iter().find(|(event, _)| event.kind.is_last());
            let Some((event, bytes)) = last else {
                assert!(!follows && reason.is_none(), "{reason:?}: {seen:?}");
                continue;
            };
            assert_eq!(event.reason.map(DropReason::name), *reason);
            assert_eq!(event.kind == Kind::Punted, reason.is_none());
            assert_eq!(bytes, frame, "as it came, not as the error made of it");
            assert_eq!((event.capture, event.ingress), (7, Some(DC)));
        }
        assert_eq!(stats.lost.get(), 0);
        assert_whole(&path);
    }
}

/// No driver leaves a frame without headroom; a buffer that comes without it is dropped and captured with that reason.
#[test]
fn a_frame_without_room_for_its_tag_is_captured_with_that_reason() {
    let (end, mut frames, stats) = capture::ends(WorkerId::FIRST);
    let (path, _host) = linux();
    let mut path = path.with_capture(end);
    path.set_capture(Some(Box::new(CaptureOrder {
        id: 7,
        filter: Filter::parse("reason no_headroom").unwrap(),
        ports: u32::MAX,
        priorities: u8::MAX,
        snaplen: u16::MAX,
        tracked: None,
    })));
    path.refresh();
    let frame = data("10.0.100.9").frame();
    // With headroom it leaves by VLAN 100.
    push(&mut path, DC, &frame, 1);
    assert_eq!(pull(&mut path, WAN, 1).len(), 1);
    let (head, tail) = frame.split_at(HeapFrame::HEADROOM);
    let mut full = HeapFrame::new(tail);
    assert!(full.prepend(head.len()));
    full.data_mut()[..head.len()].copy_from_slice(head);
    assert_eq!(full.data(), frame);
    let mut burst = FrameVec::default();
    burst.push(full);
    path.refresh();
    path.ingress(DC, &mut burst, Nanos(2));
    assert_eq!(drops(&path, DC), [("no_headroom", 1)]);
    let seen = events(&mut frames);
    let [(event, bytes)] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(event.reason, Some(DropReason::NoHeadroom));
    assert_eq!((event.kind, event.ingress), (Kind::Dropped, Some(DC)));
    assert_eq!(bytes.len(), frame.len());
    assert_eq!(stats.lost.get(), 0);
    assert_whole(&path);
}

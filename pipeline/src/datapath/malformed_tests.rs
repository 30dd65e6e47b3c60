//! Malformed frames, and no others, are kept as they came, whether a client captures or not.

use std::sync::Arc;

use super::punted_rig::linux;
use super::*;
use crate::capture::{CaptureOrder, Event, Filter, SNAPLEN, STANDING_WORDS, Standing, ends};
use npcc_heap::records::{Ring, Words, octets_of};

/// Receives a good frame, one with a damaged header, one too short, one without a route and one whose source is forged.
fn are_kept(mut path: Path) {
    let memory: Arc<Vec<_>> = Arc::new((0..4096).map(|_| 0u64.into()).collect());
    let place = npcc_heap::records::Place {
        first: 0,
        slots: 64,
        width: npcc_heap::records::HEAD + STANDING_WORDS,
    };
    let ring = |memory: &Arc<Vec<_>>| Ring::new(Arc::clone(memory) as Arc<dyn Words>, place);
    path.keep_malformed(Standing::new(ring(&memory), WorkerId::FIRST));
    let good = data("10.0.2.2").frame();
    let mut damaged = good.clone();
    damaged[24] ^= 0xff;
    let runt = good[..13].to_vec();
    let nowhere = data("192.0.2.1").frame();
    let forged = Craft {
        dst_mac: mac(0),
        ..Craft::roce(v4("127.0.0.1"), v4("10.0.2.2"), 0x0a, 0x11, 64)
    }
    .frame();
    for (now, frame) in (0..).zip([&good, &damaged, &runt, &nowhere, &forged]) {
        push(&mut path, DC, frame, now);
    }
    let kept = ring(&memory).read();
    assert_eq!(kept.inconsistent, 0);
    let kept: Vec<_> = kept
        .whole
        .iter()
        .map(|record| {
            let octets = octets_of(&record.words);
            let (event, bytes) = Event::decode(&octets).unwrap();
            let length = usize::from(event.len).min(SNAPLEN);
            (
                event.ingress,
                event.reason,
                bytes[..length].to_vec(),
                event.time,
            )
        })
        .collect();
    let malformed = [
        (
            Some(DC),
            Some(DropReason::IpChecksum),
            damaged[..SNAPLEN].to_vec(),
            Nanos(1),
        ),
        (Some(DC), Some(DropReason::Runt), runt, Nanos(2)),
        (Some(DC), Some(DropReason::Martian), forged, Nanos(4)),
    ];
    assert_eq!(kept, malformed);
    path.publish_held();
    assert_conserved(&path);
}

#[test]
fn malformed_frames_are_kept_as_they_came_and_others_are_not() {
    are_kept(path(AMPLE));
}

#[test]
fn malformed_frames_are_kept_where_linux_is_integrated() {
    let (path, _host) = linux();
    are_kept(path);
}

#[test]
fn malformed_frames_are_kept_while_a_client_captures_and_it_gets_them_too() {
    let (end, mut frames, stats) = ends(WorkerId::FIRST);
    let mut path = path(AMPLE).with_capture(end);
    path.set_capture(Some(Box::new(CaptureOrder {
        id: 1,
        filter: Filter::parse("dropped").unwrap(),
        ports: u32::MAX,
        priorities: u8::MAX,
        snaplen: 64,
        tracked: None,
    })));
    are_kept(path);
    assert_eq!(stats.captured.get(), 4, "the one without a route, too");
    assert!(frames.pop(&mut [0; 4096]).is_some());
}

/// Earlier defect: a frame that the driver put into several buffers was dropped as one whose IP length is wrong.
fn chains_have_a_reason(mut path: Path) {
    let good = data("10.0.2.2").frame();
    let first = &good[..good.len() - 8];
    let control = [0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9];
    for chain in [first, &good[..12], &control[..]] {
        let mut frames = FrameVec::default();
        frames.push(HeapFrame::chain(chain));
        path.ingress(DC, &mut frames, Nanos(1));
    }
    push(&mut path, DC, first, 2);
    assert_eq!(
        drops(&path, DC),
        [("multi_segment", 3), ("ip_truncated", 1)]
    );
    path.publish_held();
    assert_conserved(&path);
}

#[test]
fn a_frame_in_several_buffers_is_dropped_for_that() {
    chains_have_a_reason(path(AMPLE));
    let (path, _host) = linux();
    chains_have_a_reason(path);
}

//! Tests of moved hosts in the packet path: which frames change their queue, what they keep, and what their queue may send.

use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use super::{AMPLE, DC, Path, WAN, assert_conserved, data, path, port, pull, push};
use crate::craft::Craft;
use crate::egress::scheduler::Discipline;
use crate::frame::{FrameVec, HeapFrame};
use crate::moved_hosts::{HostAddress, MovedHosts};
use crate::parse;
use crate::units::BitRate;

const MOVED: Priority = Priority::new(5);
const ROCE: Priority = Priority::new(3);

/// Queue that NPCC watches.
fn watched() -> EgressQueueConfig {
    EgressQueueConfig {
        discipline: Discipline::Dwrr(50),
        watched_depths: [40_000, 300_000],
        ..EgressQueueConfig::default()
    }
}

/// Returns a path whose queue of priority 3 on `WAN` is watched, with a table of moved hosts.
fn with_table() -> (Path, Arc<MovedHosts>) {
    let table = Arc::new(MovedHosts::new(MOVED));
    let mut path = path(AMPLE).with_moved_hosts(Arc::clone(&table));
    path.reconfigure_queue(WAN, ROCE, &watched());
    path.reconfigure_queue(WAN, MOVED, &EgressQueueConfig::default());
    (path, table)
}

/// One frame of a burst: sender, receiver, kind, TOS, tag, payload.
type Sent = (u8, u8, u8, u8, Option<u8>, usize);

fn craft(&(host, to, kind, tos, tag, payload): &Sent) -> Vec<u8> {
    let to = [
        "10.0.2.2",
        "10.0.100.7",
        "2001:db8:2::9",
        "10.0.1.77",
        "10.0.3.3",
    ][usize::from(to)];
    let src = if to.contains(':') {
        IpAddr::from([0x2001, 0xdb8, 1, 0, 0, 0, 0, u16::from(host)])
    } else {
        IpAddr::from([10, 0, 1, host])
    };
    let base = data(to);
    let is_roce = kind != 0;
    Craft {
        src,
        tos: [106, 104, 0, 192][usize::from(tos)],
        tags: tag
            .map(|pcp| u16::from(pcp) << 13 | 100)
            .into_iter()
            .collect(),
        bth: base.bth.filter(|_| is_roce),
        dst_port: if is_roce { base.dst_port } else { 5_001 },
        payload: vec![7; payload],
        ttl: if kind == 1 { 1 } else { 64 },
        ..base
    }
    .frame()
}

/// Sender of a frame.
fn source(frame: &[u8]) -> HostAddress {
    let tag = if frame[12..14] == [0x81, 0] { 4 } else { 0 };
    let packet = &frame[14 + tag..];
    if packet[0] >> 4 == 4 {
        HostAddress::from(IpAddr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap()))
    } else {
        HostAddress::from(IpAddr::from(<[u8; 16]>::try_from(&packet[8..24]).unwrap()))
    }
}

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let tag = prop_oneof![2 => Just(None), 1 => (0u8..8).prop_map(Some)];
    let frame = (0u8..6, 0u8..5, 0u8..8, 0u8..4, tag, 0usize..1500);
    prop_oneof![
        prop::collection::vec(frame.clone(), 1..40),
        (frame, 1usize..=BURST).prop_map(|(frame, count)| vec![frame; count]),
    ]
}

/// Frames that leave by each port, with their priorities.
fn through(path: &mut Path, frames: &[Vec<u8>], now: u64) -> Vec<(u8, u8, Vec<u8>)> {
    let mut burst = FrameVec::default();
    burst.extend(frames.iter().map(|frame| HeapFrame::new(frame)));
    path.refresh();
    path.ingress(DC, &mut burst, Nanos(now));
    let mut left = Vec::new();
    for port in [DC, WAN] {
        let mut later = now;
        while path.frames_queued(port) > 0 {
            let out = pull(path, port, later);
            left.extend(out.into_iter().map(|frame| {
                let meta = frame.meta;
                assert_eq!(meta.group.priority(), meta.priority.index());
                (port.0, meta.priority.get(), frame.buf.data().to_vec())
            }));
            later += 10_000;
        }
    }
    left.sort();
    left
}

proptest! {
    #![proptest_config(crate::cases::cases(256))]

    /// Law: RoCEv2 frames of moved hosts that would enter a watched queue have the table's priority, and no others; every byte that leaves is as
    /// without the table. Hosts come and go between bursts.
    #[test]
    fn frames_of_moved_hosts_and_no_others_change_their_priority(
        bursts in prop::collection::vec((sent(), 0u8..64), 1..6),
    ) {
        let (mut moving, table) = with_table();
        let mut plain = path(AMPLE);
        plain.reconfigure_queue(WAN, ROCE, &watched());
        for (turn, (burst, moved)) in bursts.iter().enumerate() {
            table.clear();
            let v4 = (0u8..6).map(|host| IpAddr::from([10, 0, 1, host]));
            let v6 = (0u16..6).map(|host| IpAddr::from([0x2001, 0xdb8, 1, 0, 0, 0, 0, host]));
            // A set of the hosts of IPv4, and its complement of those of IPv6.
            let v4 = v4.enumerate().filter(|(n, _)| moved >> n & 1 == 1);
            let v6 = v6.enumerate().filter(|(n, _)| moved >> n & 1 == 0);
            v4.chain(v6).for_each(|(_, host)| assert!(table.add(host.into())));
            table.set_share(1, 4);
            let frames: Vec<Vec<u8>> = burst.iter().map(craft).collect();
            let now = 1_000_000_000 * (turn as u64 + 1);
            let got = through(&mut moving, &frames, now);
            let mut expected = through(&mut plain, &frames, now);
            for (port, priority, frame) in &mut expected {
                let is_roce = parse::parse(frame).is_ok_and(|parsed| parsed.roce.is_some());
                if is_roce && (*port, *priority) == (WAN.0, ROCE.get()) && table.holds(source(frame)) {
                    *priority = MOVED.get();
                }
            }
            expected.sort();
            prop_assert_eq!(got, expected);
        }
        moving.publish_held();
        assert_conserved(&moving);
    }
}

/// Two hosts that send as much as they can, of which `deaf` is moved; returns their shares of the link.
fn shares(share: (u32, u32), other: bool) -> [f64; 3] {
    let (mut path, table) = with_table();
    table.add(HostAddress::from(IpAddr::from([10, 0, 1, 9])));
    table.set_share(share.0, share.1);
    let from = |host: u8, tos: u8| {
        Craft {
            src: IpAddr::from([10, 0, 1, host]),
            tos,
            ..data("10.0.2.2")
        }
        .frame()
    };
    let mut frames = vec![from(3, 106), from(9, 106)];
    if other {
        path.reconfigure_queue(
            WAN,
            Priority::new(0),
            &EgressQueueConfig {
                discipline: Discipline::Dwrr(50),
                ..EgressQueueConfig::default()
            },
        );
        frames.push(from(3, 2));
    }
    let mut left = [0.0; 3];
    // 10 Gb/s leave, of 20 and more that come.
    for turn in 1..40_000u64 {
        let now = turn * 1_000;
        path.refresh();
        for frame in frames.iter().chain(&frames) {
            push(&mut path, DC, frame, now);
        }
        for frame in pull(&mut path, WAN, now).iter().filter(|_| turn > 10_000) {
            left[match frame.meta.priority.get() {
                3 => 0,
                5 => 1,
                _ => 2,
            }] += 1.0;
        }
    }
    assert_conserved(&path);
    let all: f64 = left.iter().sum();
    left.map(|part| part / all)
}

#[test]
fn the_queue_of_moved_hosts_has_their_share_of_what_the_watched_queue_had() {
    for (share, part) in [
        ((1, 4), 0.25),
        ((1, 2), 0.5),
        ((3, 4), 0.75),
        ((1, 1_000), 0.02),
        ((0, 0), 0.02),
        ((4, 4), 0.98),
    ] {
        let [obedient, moved, _] = shares(share, false);
        assert!(
            (moved - part).abs() < 0.02 && (obedient - (1.0 - part)).abs() < 0.02,
            "{share:?}: {obedient} {moved}"
        );
        // A queue of other traffic keeps its half.
        let [obedient, moved, other] = shares(share, true);
        let close = |got: f64, wanted: f64| (got - wanted).abs() < 0.02;
        assert!(
            close(other, 0.5) && close(moved, part / 2.0) && close(obedient, (1.0 - part) / 2.0),
            "{share:?}: {obedient} {moved} {other}"
        );
    }
}

/// The peer knows frames of moved hosts by their DSCP: what it pauses must not leave by another queue.
#[test]
fn the_queue_of_moved_hosts_waits_while_the_peer_pauses_the_watched_queue() {
    let (mut path, table) = with_table();
    table.add(HostAddress::from(IpAddr::from([10, 0, 1, 3])));
    path.refresh();
    push(&mut path, DC, &data("10.0.2.2").frame(), 0);
    path.set_tx_blocked(WAN, ROCE.bit());
    assert!(pull(&mut path, WAN, 0).is_empty());
    // Another queue's pause is none of theirs.
    path.set_tx_blocked(WAN, 1);
    let out = pull(&mut path, WAN, 0);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].meta.priority, MOVED);
}

#[test]
fn a_host_that_is_taken_back_has_its_queue_and_the_queue_its_weight() {
    let (mut path, table) = with_table();
    let host = HostAddress::from(IpAddr::from([10, 0, 1, 3]));
    let frame = data("10.0.2.2").frame();
    let mut priority = |now| {
        path.refresh();
        push(&mut path, DC, &frame, now);
        pull(&mut path, WAN, now)[0].meta.priority
    };
    assert_eq!(priority(0), ROCE);
    table.add(host);
    assert_eq!(priority(1_000_000), MOVED);
    table.remove(host);
    assert_eq!(priority(2_000_000), ROCE);
    // A queue that NPCC does not watch keeps its frames.
    table.add(host);
    path.reconfigure_queue(
        WAN,
        ROCE,
        &port(1, Some(BitRate(10_000_000_000))).egress.queues[3],
    );
    path.refresh();
    push(&mut path, DC, &frame, 3_000_000);
    assert_eq!(pull(&mut path, WAN, 3_000_000)[0].meta.priority, ROCE);
}

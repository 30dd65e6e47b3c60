use std::net::IpAddr;

use super::*;
use crate::classify::{Classifier, Trust};
use crate::counters::Counter;
use crate::craft::Craft;
use crate::egress::ecn::{CERTAIN, Red};
use crate::egress::port::EgressQueueConfig;
use crate::egress::scheduler::Discipline;
use crate::frame::{FrameVec, HeapFrame, wire_len};
use crate::parse;
use crate::route::nexthop::{Adjacency, Kind};
use crate::route::prefix::Prefix;
use crate::route::writer::{RouteCapacity, RouteWriter};
use crate::tap::NoTap;
use crate::units::{BitRate, Mac};
use crate::wire::checksum;

#[path = "admin_tests.rs"]
mod admin_tests;
#[path = "bypass_tests.rs"]
mod bypass_tests;
#[path = "captured_tests.rs"]
mod captured_tests;
#[path = "conservation_tests.rs"]
mod conservation_tests;
#[path = "given_tests.rs"]
mod given_tests;
#[path = "icmp_tests.rs"]
mod icmp_tests;
#[path = "linux_tests.rs"]
mod linux_tests;
#[path = "malformed_tests.rs"]
mod malformed_tests;
#[path = "moved_tests.rs"]
mod moved_tests;
#[path = "punted_rig.rs"]
mod punted_rig;
#[path = "reasons_tests.rs"]
mod reasons_tests;
#[path = "shares_tests.rs"]
mod shares_tests;

type Path = Datapath<HeapFrame, NoTap>;

const RATE: BitRate = BitRate(10_000_000_000);
const DC: PortId = PortId(0);
const WAN: PortId = PortId(1);

fn mac(port: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, port + 1])
}

fn port(id: u8, rate: Option<BitRate>) -> PortConfig {
    let mut classifier = Classifier::all(Priority::new(0));
    classifier.trust = Trust::Dscp;
    classifier.dscp[26] = Priority::new(3);
    let mut queues: [EgressQueueConfig; 8] = std::array::from_fn(|_| EgressQueueConfig::default());
    queues[3].lossless = true;
    queues[3].discipline = Discipline::Dwrr(50);
    queues[3].ecn = Some(Red {
        kmin: 20_000,
        kmax: 20_000,
        pmax: CERTAIN,
    });
    queues[6].discipline = Discipline::Strict;
    PortConfig {
        intake: IngressConfig {
            mac: mac(id),
            mtu: 4200,
            vlans: Box::new([100]),
            classifier,
        },
        egress: EgressConfig {
            rate,
            max_frame: 4248,
            max_absence: Nanos::ZERO,
            queues,
        },
        ecn: EcnConfig::MARK,
    }
}

fn forward(port: PortId, host: u8, vlan: u16) -> Adjacency {
    Adjacency {
        kind: Kind::Forward,
        port,
        vlan,
        dst: Mac([2, 0, 0, 0, 9, host]),
        src: mac(port.0),
        mtu: 0,
    }
}

/// Returns a path with two ports: 10.0.1.0/24 and 2001:db8:1::/64 behind `dc`, everything else in 10/8 and 2001:db8::/32
/// behind `wan`.
fn path(pool: PoolConfig) -> Path {
    let capacity = RouteCapacity {
        ipv4_routes: 64,
        ipv6_routes: 64,
        adjacencies: 64,
        groups: 64,
    };
    let (mut writer, mut readers) = RouteWriter::new(capacity, 1);
    for (text, adjacency) in [
        ("10.0.1.0/24", forward(DC, 3, 0)),
        ("10.0.0.0/8", forward(WAN, 2, 0)),
        ("10.0.100.0/24", forward(WAN, 2, 100)),
        ("10.0.3.0/24", Adjacency::unusable(Kind::Unresolved)),
        ("10.0.1.1/32", Adjacency::unusable(Kind::Local)),
        ("2001:db8:1::/64", forward(DC, 3, 0)),
        ("2001:db8::/32", forward(WAN, 2, 0)),
    ] {
        let (address, len) = text.split_once('/').unwrap();
        let prefix = Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap();
        writer.insert(prefix, &[adjacency]).unwrap();
    }
    writer.commit();
    let mut path = Datapath::new(
        vec![port(0, None), port(1, Some(RATE))],
        pool,
        readers.remove(0),
        NoTap,
        1,
    );
    path.refresh();
    path
}

const AMPLE: PoolConfig = PoolConfig {
    bytes: 1 << 20,
    frames: 4096,
    alpha_256: 256,
};

fn v4(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn data(dst: &str) -> Craft {
    let src = if dst.contains(':') {
        "2001:db8:1::3"
    } else {
        "10.0.1.3"
    };
    Craft {
        dst_mac: mac(0),
        ..Craft::roce(v4(src), v4(dst), 0x0a, 0x11, 1024)
    }
}

fn push(path: &mut Path, from: PortId, frame: &[u8], now: u64) {
    let mut frames = FrameVec::default();
    frames.push(HeapFrame::new(frame));
    path.ingress(from, &mut frames, Nanos(now));
    assert!(frames.is_empty());
}

fn pull(path: &mut Path, from: PortId, now: u64) -> Vec<Queued<HeapFrame>> {
    let mut out = Outgoing::new();
    path.egress(from, &mut out, Nanos(now));
    path.sent(
        from,
        Sent::of(out.iter().map(|frame| frame.buf.data().len())),
    );
    path.publish_held();
    out.into_iter().collect()
}

fn drops(path: &Path, port: PortId) -> Vec<(&'static str, u64)> {
    let counters = path.counters().port(port.index()).unwrap();
    let counts = DropReason::ALL
        .iter()
        .map(|reason| (reason.name(), counters.drops[reason.index()].get()));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Asserts the conservation law, in frames and in bytes.
fn assert_conserved(path: &Path) {
    let (mut input, mut output) = ((0, 0), (0, 0));
    for port in path.counters().ports() {
        input.0 += port.rx.packets.get() + port.originated.packets.get();
        input.1 += port.rx.bytes.get() + port.originated.bytes.get() + port.tag_bytes_added.get();
        output.0 += port.tx.packets.get() + port.consumed.packets.get() + port.punted.packets.get();
        output.0 += port.drops.iter().map(|count| count.get()).sum::<u64>();
        output.1 += port.tx.bytes.get() + port.consumed.bytes.get() + port.punted.bytes.get();
        output.1 += port.drop_bytes.get() + port.tag_bytes_removed.get() + port.trimmed_bytes.get();
    }
    output.0 += path.counters().held.packets.get();
    output.1 += path.counters().held.bytes.get();
    assert_eq!(input, output, "(frames, bytes) in = out");
}

#[test]
fn an_ipv4_frame_is_routed() {
    let mut path = path(AMPLE);
    let sent = data("10.0.2.2").frame();
    push(&mut path, DC, &sent, 0);
    let out = pull(&mut path, WAN, 0);
    let got = out[0].buf.data();
    assert_eq!(got[..6], [2, 0, 0, 0, 9, 2]);
    assert_eq!(got[6..12], mac(1).0);
    assert_eq!(got[22], 63, "TTL");
    assert_eq!(checksum::sum(&got[14..34]), 0xffff);
    assert_eq!(
        (got[12..22].to_vec(), &got[26..]),
        (sent[12..22].to_vec(), &sent[26..]),
        "nothing else changed"
    );
    assert_eq!(out[0].meta.priority, Priority::new(3));
    assert_conserved(&path);
}

#[test]
fn an_empty_burst_leaves_nothing_behind() {
    let mut path = path(AMPLE);
    // The first is remembered: the next burst might go on with its train.
    push(&mut path, DC, &data("10.0.2.2").frame(), 0);
    pull(&mut path, WAN, 0);
    path.ingress(DC, &mut FrameVec::default(), Nanos(10_000));
    assert!(!path.has_more(WAN));
    assert!(pull(&mut path, WAN, 10_000).is_empty());
    assert_conserved(&path);
}

#[test]
fn an_ipv6_frame_is_routed() {
    let mut path = path(AMPLE);
    let sent = data("2001:db8:2::2").frame();
    push(&mut path, DC, &sent, 0);
    let out = pull(&mut path, WAN, 0);
    let got = out[0].buf.data();
    assert_eq!((got[..6].to_vec(), got[21]), (vec![2, 0, 0, 0, 9, 2], 63));
    assert_eq!(got[22..], sent[22..]);
}

#[test]
fn tags_are_put_on_and_taken_off() {
    let mut path = path(AMPLE);
    push(&mut path, DC, &data("10.0.100.2").frame(), 0);
    let tagged = pull(&mut path, WAN, 0).remove(0);
    assert_eq!(tagged.buf.data()[12..18], [0x81, 0, 3 << 5, 100, 0x08, 0]);
    assert_eq!(tagged.meta.flags.l3_off(), 18);
    let came_tagged = Craft {
        tags: vec![100],
        ..data("10.0.2.2")
    };
    push(&mut path, DC, &came_tagged.frame(), 0);
    let plain = pull(&mut path, WAN, 10_000).remove(0);
    assert_eq!(plain.buf.data()[12..14], [0x08, 0]);
    assert_eq!(parse::parse(plain.buf.data()).unwrap().tags, 0);
    assert_conserved(&path);
}

#[test]
fn every_refusal_has_its_reason() {
    type Change = fn(&mut Craft);
    let cases: &[(&str, Change)] = &[
        ("not_for_us", |c| c.dst_mac = Mac([2, 9, 9, 9, 9, 9])),
        ("multicast", |c| c.dst_mac = Mac([0xff; 6])),
        ("vlan_unknown", |c| c.tags = vec![101]),
        ("vlan_depth", |c| c.tags = vec![0, 100]),
        ("vlan_depth", |c| c.tags = vec![100, 100]),
        ("ttl_expired", |c| c.ttl = 1),
        ("ttl_expired", |c| c.ttl = 0),
        ("no_route", |c| c.dst = v4("192.0.2.1")),
        ("no_neighbor", |c| c.dst = v4("10.0.3.9")),
        ("local_unserved", |c| c.dst = v4("10.0.1.1")),
        ("oversize", |c| c.payload = vec![0; 4200]),
    ];
    for (reason, change) in cases {
        let mut path = path(AMPLE);
        let mut craft = data("10.0.2.2");
        change(&mut craft);
        push(&mut path, DC, &craft.frame(), 0);
        assert_eq!(drops(&path, DC), [(*reason, 1)]);
        assert_conserved(&path);
    }
}

/// A service tag is of no VLAN of the port. Earlier defect: it was taken for a customer's with the same id.
#[test]
fn a_service_tag_is_of_no_vlan_of_the_port() {
    for id in [0, 100] {
        let mut path = path(AMPLE);
        let tagged = Craft {
            tags: vec![id],
            ..data("10.0.2.2")
        };
        let mut frame = tagged.frame();
        push(&mut path, DC, &frame, 0);
        assert_eq!(pull(&mut path, WAN, 10_000).len(), 1);
        frame[12..14].copy_from_slice(&[0x88, 0xa8]);
        push(&mut path, DC, &frame, 20_000);
        assert_eq!(drops(&path, DC), [("vlan_unknown", 1)]);
        assert_conserved(&path);
    }
}

/// A trailer is not forwarded. Earlier defect: bytes behind a packet went past the MTU of the port it left by.
#[test]
fn a_trailer_goes_no_further() {
    for (dst, tags, header) in [
        ("10.0.2.2", vec![], 14),
        ("10.0.2.2", vec![100], 14),
        ("10.0.100.7", vec![], 18),
        ("2001:db8:2::9", vec![], 14),
    ] {
        let mut path = path(AMPLE);
        let craft = Craft { tags, ..data(dst) };
        let mut frame = craft.frame();
        let packet = frame.len() - 14 - 4 * craft.tags.len();
        frame.resize(9_100, 0x5a);
        push(&mut path, DC, &frame, 0);
        let depth: u64 = Priority::all()
            .map(|priority| path.depth(WAN, priority))
            .sum();
        assert_eq!(depth, (header + packet + 24) as u64);
        let out = pull(&mut path, WAN, 10_000).remove(0);
        assert_eq!(out.buf.data().len(), header + packet, "{dst}");
        assert_eq!(usize::from(out.meta.len), header + packet);
        let counters = path.counters().port(0).unwrap();
        let behind = 9_100 - packet - 14 - 4 * craft.tags.len();
        assert_eq!(counters.trimmed_bytes.get(), behind as u64);
        assert_conserved(&path);
    }
}

/// A short frame is padded with zeros. Earlier defect: a frame of 60 bytes left with 56 when its tag was removed.
#[test]
fn a_short_frame_is_padded_with_zeros() {
    for (tags, came, left) in [
        (vec![0], 60, 60),
        (vec![5 << 13], 64, 60),
        (vec![], 60, 60),
        (vec![], 300, 60),
        (vec![0], 300, 60),
        // Too short to have been on a wire: the device it leaves by pads it.
        (vec![], 46, 46),
        (vec![0], 54, 54),
    ] {
        let mut path = path(AMPLE);
        let craft = Craft {
            tags,
            bth: None,
            dst_port: 53,
            payload: vec![7; 2],
            ..data("10.0.2.2")
        };
        let mut frame = craft.frame();
        let packet = frame.len() - 14 - 4 * craft.tags.len();
        frame.resize(came, 0x5a);
        push(&mut path, DC, &frame, 0);
        let out = pull(&mut path, WAN, 10_000).remove(0);
        let out = out.buf.data();
        assert_eq!(out.len(), left, "{:?} {came}", craft.tags);
        assert_eq!(
            parse::parse(out).map(|parsed| usize::from(parsed.ip_len)),
            Ok(packet)
        );
        let was = &frame[14 + 4 * craft.tags.len()..][..packet];
        // All bytes except TTL and checksum are as before.
        assert_eq!(out[26..14 + packet], was[12..]);
        assert!(out[14 + packet..].iter().all(|octet| *octet == 0));
        assert_conserved(&path);
    }
}

#[test]
fn a_large_frame_does_not_fit_a_small_port() {
    let capacity = RouteCapacity {
        ipv4_routes: 4,
        ipv6_routes: 4,
        adjacencies: 4,
        groups: 4,
    };
    let (mut writer, mut readers) = RouteWriter::new(capacity, 1);
    writer
        .insert(
            Prefix::new(v4("0.0.0.0"), 0).unwrap(),
            &[forward(WAN, 2, 0)],
        )
        .unwrap();
    writer.commit();
    let mut small = port(1, None);
    small.intake.mtu = 1000;
    let mut path: Path = Datapath::new(
        vec![port(0, None), small],
        AMPLE,
        readers.remove(0),
        NoTap,
        1,
    );
    path.refresh();
    let mut frame = data("10.0.2.2").frame();
    push(&mut path, DC, &frame, 0);
    assert_eq!(drops(&path, DC), [("mtu_exceeded", 1)]);
    // A router may fragment a packet without DF; this one does not. The checksum is one's complement: what leaves the
    // flags enters it.
    frame[20] &= !0x40;
    let sum = u16::from_be_bytes([frame[24], frame[25]]);
    let (sum, carry) = sum.overflowing_add(0x4000);
    frame[24..26].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
    push(&mut path, DC, &frame, 0);
    assert_eq!(drops(&path, DC), [("mtu_exceeded", 2)]);
}

#[test]
fn pause_frames_are_consumed_and_never_forwarded() {
    let mut path = path(AMPLE);
    let mut pause = vec![0; 60];
    pause[..14].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08]);
    pause[14..18].copy_from_slice(&[0x01, 0x01, 0, 0b0000_1001]);
    push(&mut path, DC, &pause, 0);
    let pfc: Vec<u64> = path
        .counters()
        .port(0)
        .unwrap()
        .pfc
        .rx
        .iter()
        .map(Counter::get)
        .collect();
    assert_eq!(pfc, [1, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(path.counters().port(0).unwrap().consumed.packets.get(), 1);
    assert!(pull(&mut path, WAN, 0).is_empty());
    assert_conserved(&path);
}

#[test]
fn what_the_switch_makes_goes_ahead_of_the_data() {
    let mut path = path(AMPLE);
    for _ in 0..8 {
        push(&mut path, DC, &data("10.0.2.2").frame(), 0);
    }
    path.originate(WAN, Priority::new(6), HeapFrame::new(&[7; 74]), Nanos(0))
        .unwrap();
    let out = pull(&mut path, WAN, 0);
    assert_eq!(out[0].buf.data(), [7; 74]);
    assert_conserved(&path);
}

/// SONiC's EGRESS_ECN: with Kmin = Kmax = N bytes and a backlog beyond it, the first frame out is marked and the last is
/// not: marking is by the depth left behind at dequeue (sonic-mgmt docs/testplan/ecn).
#[test]
fn the_first_frame_out_is_marked_and_the_last_is_not() {
    let mut path = path(AMPLE);
    for _ in 0..40 {
        push(&mut path, DC, &data("10.0.2.2").frame(), 0);
    }
    let mut ce = Vec::new();
    for step in 0..200 {
        ce.extend(
            pull(&mut path, WAN, step * 1_000)
                .iter()
                .map(|frame| frame.buf.data()[15] & 3 == 3),
        );
    }
    assert_eq!(ce.len(), 40);
    let wire = usize::from(wire_len(data("10.0.2.2").frame().len()));
    let marked = ce.iter().filter(|ce| **ce).count();
    // Frame k leaves 39 - k behind: marked while those exceed 20,000 bytes.
    assert_eq!(marked, (0..40).filter(|k| (39 - k) * wire > 20_000).count());
    assert!(ce[..marked].iter().all(|ce| *ce) && !ce[39]);
    assert_eq!(
        path.counters().port(1).unwrap().queues[3].ecn_marked.get(),
        marked as u64
    );
}

#[test]
fn acks_and_not_ect_are_never_marked() {
    let mut path = path(AMPLE);
    for _ in 0..40 {
        push(
            &mut path,
            DC,
            &Craft {
                tos: 26 << 2,
                ..data("10.0.2.2")
            }
            .frame(),
            0,
        );
    }
    for opcode in [0x11, 0x0c, 0x81, 0x13] {
        let ack = Craft {
            dst_mac: mac(0),
            ..Craft::roce(v4("10.0.1.3"), v4("10.0.2.2"), opcode, 0x11, 20)
        };
        push(&mut path, DC, &ack.frame(), 0);
    }
    for _ in 0..40 {
        push(
            &mut path,
            DC,
            &Craft {
                tos: 26 << 2,
                ..data("10.0.2.2")
            }
            .frame(),
            0,
        );
    }
    let mut out = Vec::new();
    for step in 0..300 {
        out.extend(pull(&mut path, WAN, step * 1_000));
    }
    assert_eq!(out.len(), 84);
    assert!(out.iter().all(|frame| frame.buf.data()[15] & 3 != 3));
}

#[test]
fn the_port_keeps_its_rate() {
    let mut path = path(AMPLE);
    let frame = data("10.0.2.2").frame();
    let mut bytes = 0;
    for step in 0..2_000u64 {
        // Twice the rate arrives: 10 Gb/s takes 885 ns a frame, two arrive each microsecond.
        for _ in 0..2 {
            push(&mut path, DC, &frame, step * 1_000);
        }
        bytes += pull(&mut path, WAN, step * 1_000)
            .iter()
            .map(|frame| u64::from(frame.meta.wire_len()))
            .sum::<u64>();
    }
    let due = RATE.bytes_in(Nanos::from_millis(2));
    assert!(bytes.abs_diff(due) < 30_000, "{bytes} of {due}");
}

#[test]
fn queues_maps_and_marking_change_while_running() {
    let mut path = path(AMPLE);
    let depth = |path: &Path, priority| path.depth(WAN, Priority::new(priority));
    push(&mut path, DC, &data("10.0.2.2").frame(), 0);
    let wire = depth(&path, 3);
    assert!(wire > 0);
    path.reclassify(DC, Classifier::all(Priority::new(5)));
    for _ in 0..40 {
        push(&mut path, DC, &data("10.0.2.2").frame(), 0);
    }
    assert_eq!((depth(&path, 3), depth(&path, 5)), (wire, 40 * wire));
    // Marked from the first byte on, at a tenth of the port's rate, and before its lossless neighbour.
    let settings = EgressQueueConfig {
        discipline: Discipline::Strict,
        max_rate: Some(BitRate(RATE.0 / 10)),
        ecn: Some(Red {
            kmin: 0,
            kmax: 0,
            pmax: CERTAIN,
        }),
        ..EgressQueueConfig::default()
    };
    path.reconfigure_queue(WAN, Priority::new(5), &settings);
    // The `lossless` setting of a queue does not change.
    path.reconfigure_queue(WAN, Priority::new(3), &EgressQueueConfig::default());
    let three = path.egress_side.ports[WAN].queue_config(Priority::new(3));
    assert!(three.lossless && three.ecn.is_none());
    let mut out = Vec::new();
    for step in 0..200 {
        if step == 100 {
            path.set_ecn(WAN, EcnConfig::OFF);
        }
        out.extend(pull(&mut path, WAN, step * 1_000).into_iter().map(|frame| {
            (
                step,
                frame.meta.priority.get(),
                frame.buf.data()[15] & 3 == 3,
            )
        }));
    }
    let fifth: Vec<_> = out.iter().filter(|(_, queue, _)| *queue == 5).collect();
    // The credit saved up, 8 frames, and one in 8.9 us at 1 Gb/s.
    assert!((25..=34).contains(&fifth.len()), "{} sent", fifth.len());
    assert_eq!(out[0].1, 5, "strict goes first");
    assert!(fifth.iter().all(|(step, _, ce)| *ce == (*step < 100)));
}

/// Frames of a port that is not configured are counted: such a port cannot receive; if it did, no frame would be lost
/// uncounted.
#[test]
fn frames_of_a_port_that_is_not_configured_are_counted() {
    let mut path = path(AMPLE);
    let stray = PortId(7);
    push(&mut path, stray, &data("10.0.2.2").frame(), 0);
    let counters = path.counters().of(stray);
    let dropped: u64 = counters.drops.iter().map(Counter::get).sum();
    assert_eq!((counters.rx.packets.get(), dropped), (1, 1));
    assert_eq!(path.buffer().used().frames, 0);
}

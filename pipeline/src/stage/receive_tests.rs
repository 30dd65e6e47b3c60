//! Tests of the fast path of most frames against the general parser and the stages one after the other.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::classify::{Classifier, Trust};
use crate::counters::Counters;
use crate::craft::{BthFields, Craft};
use crate::frame::HeapFrame;
use crate::parse::digest::AddressDigest;
use crate::parse::parse as parse_frame;
use crate::route::nexthop::{Adjacency, Kind};
use crate::route::prefix::Prefix;
use crate::route::writer::{RouteCapacity, RouteWriter};
use crate::stage::parse::{self, IngressConfig, Seen};
use crate::units::{Mac, PortId, Priority, WorkerId};
use crate::wire::ethernet;

const OURS: Mac = Mac([2, 0, 0, 0, 1, 1]);
const HOSTS: [&str; 8] = [
    "10.0.2.2",
    "10.0.3.2",
    "10.0.100.7",
    "10.0.4.1",
    "192.0.2.1",
    "10.0.9.9",
    "2001:db8:2::9",
    "2001:db8:9::1",
];
/// Opcodes of SEND, WRITE, READ REQUEST and RESPONSE, ACK, ATOMIC, datagram, CNP, XRC.
const OPCODES: [u8; 12] = [
    0x04, 0x07, 0x0a, 0x0c, 0x0d, 0x0e, 0x11, 0x12, 0x64, 0x81, 0xa4, 0x2a,
];

fn port() -> IngressPort {
    let mut classifier = Classifier::all(Priority::new(1));
    classifier.trust = Trust::Both;
    classifier.dscp[26] = Priority::new(3);
    classifier.pcp[5] = Priority::new(5);
    let intake = IngressConfig {
        mac: OURS,
        mtu: 4200,
        vlans: Box::new([100]),
        classifier,
    };
    IngressPort::new(intake, WorkerId::FIRST, PortId(0), AddressDigest::new(5))
}

/// Next hops of two ports, a VLAN, a group with a choice, and paths that do not forward.
fn routes() -> (RouteWriter, FibReader) {
    let capacity = RouteCapacity {
        ipv4_routes: 64,
        ipv6_routes: 64,
        adjacencies: 64,
        groups: 64,
    };
    let (mut writer, mut readers) = RouteWriter::new(capacity, 1);
    let forward = |port: u8, host: u8, vlan: u16| Adjacency {
        kind: Kind::Forward,
        port: PortId(port),
        vlan,
        dst: Mac([2, 0, 0, 0, 9, host]),
        src: Mac([2, 0, 0, 0, 8, port]),
        mtu: 0,
    };
    for (text, adjacencies) in [
        ("10.0.2.0/24", vec![forward(1, 2, 0)]),
        ("10.0.3.0/24", vec![forward(2, 3, 0)]),
        ("10.0.100.0/24", vec![forward(1, 2, 100)]),
        ("10.0.4.0/24", vec![Adjacency::unusable(Kind::Unresolved)]),
        ("10.0.9.0/24", vec![forward(1, 4, 0), forward(2, 5, 0)]),
        ("2001:db8:2::/64", vec![forward(1, 2, 0)]),
        ("2001:db8:9::/64", vec![forward(2, 2, 100)]),
    ] {
        let (address, len) = text.split_once('/').unwrap();
        let prefix = Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap();
        writer.insert(prefix, &adjacencies).unwrap();
    }
    writer.commit();
    let mut fib = readers.remove(0);
    fib.refresh();
    (writer, fib)
}

fn one() -> impl Strategy<Value = Vec<u8>> {
    let place = (
        0usize..HOSTS.len(),
        prop_oneof![6 => Just(0usize), 1 => 1usize..4],
    );
    let kind = (
        prop_oneof![4 => Just(true), 1 => Just(false)],
        0usize..OPCODES.len(),
        any::<u8>(),
    );
    let fields = (
        prop_oneof![Just(0x6au8), any::<u8>()],
        prop_oneof![8 => Just(64u8), 1 => 0u8..3],
        0usize..200,
    );
    let odd = prop::option::weighted(0.2, (0usize..64, any::<u8>()));
    let same = prop::bool::weighted(0.05);
    let behind = prop_oneof![6 => Just(0usize), 1 => 1usize..300];
    (place, kind, fields, odd, (same, behind)).prop_map(
        |((host, tags), (roce, opcode, syndrome), (tos, ttl, payload), damage, (same, behind))| {
            let dst: IpAddr = HOSTS[host].parse().unwrap();
            let src: IpAddr = if same {
                dst
            } else if dst.is_ipv6() {
                "2001:db8:1::3".parse().unwrap()
            } else {
                IpAddr::from(Ipv4Addr::new(10, 0, 1, 3))
            };
            let craft = Craft::roce(src, dst, OPCODES[opcode], 0x11, payload);
            let bth = BthFields {
                opcode: OPCODES[opcode],
                dest_qp: 1 + u32::from(syndrome),
                psn: 7,
                ack_req: syndrome & 1 == 1,
                becn: syndrome & 2 == 2,
            };
            let dei = if syndrome & 4 == 4 { ethernet::DEI } else { 0 };
            let mut payload = craft.payload.clone();
            if let Some(first) = payload.first_mut() {
                *first = syndrome;
            }
            let tags = [vec![], vec![100 | dei], vec![5 << 13 | dei], vec![7]][tags].clone();
            let mut frame = Craft {
                dst_mac: OURS,
                tos,
                ttl,
                tags,
                payload,
                dst_port: if roce { 4791 } else { 80 },
                bth: roce.then_some(bth),
                ..craft
            }
            .frame();
            frame.resize(frame.len() + behind, 0x5a);
            if let Some((at, value)) = damage
                && let Some(octet) = frame.get_mut(at)
            {
                *octet = value;
            }
            frame
        },
    )
}

/// Generates runs of similar frames, and others between them.
fn burst() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let stretch = (one(), prop_oneof![1 => Just(1usize), 2 => 1usize..12]);
    prop::collection::vec(stretch, 1..10).prop_map(|stretches| {
        let mut frames: Vec<_> = stretches
            .into_iter()
            .flat_map(|(frame, count)| vec![frame; count])
            .collect();
        frames.truncate(BURST);
        frames
    })
}

/// Outcome of a frame: its bytes, and its record or drop reason.
type Fate = (Vec<u8>, Result<Record, Option<DropReason>>);

/// Returns the record with the fields cleared that mean nothing for a packet that is not RoCEv2.
fn meant(record: &Record) -> Record {
    if record.is_roce() {
        return *record;
    }
    Record {
        ack_psn: 0,
        qp: 0,
        src_port: 0,
        ..*record
    }
}

fn mtus() -> Mtus {
    let mut mtus: Mtus = [4200; MAX_PORTS];
    mtus[2] = 150;
    mtus
}

fn together(
    port: &IngressPort,
    fib: &FibReader,
    burst: &[Vec<u8>],
    counters: &Counters,
) -> (Received, Vec<Fate>) {
    let mut frames: Vec<_> = burst.iter().map(|frame| HeapFrame::new(frame)).collect();
    let (mut records, mut reasons) = ([Record::EMPTY; BURST], [None; BURST]);
    let taken = run(
        (port, None),
        (fib, &mtus()),
        &mut frames,
        (&mut records, &mut reasons),
        counters.of(PortId(0)),
    );
    let fate = |(place, frame): (usize, &HeapFrame)| {
        let known = if taken.gone.has(place) {
            Err(reasons[place])
        } else {
            Ok(meant(&records[place]))
        };
        (frame.data().to_vec(), known)
    };
    let fates = frames.iter().enumerate().map(fate).collect();
    (taken, fates)
}

/// Runs the stages one after the other, with the general parser only.
fn separate(port: &IngressPort, fib: &FibReader, bytes: &[u8]) -> Fate {
    let mut frame = HeapFrame::new(bytes);
    let known = (|| {
        let admitted = port.admit_any(bytes)?;
        let parsed = parse_frame(bytes)?;
        let dst: IpAddr = match admitted.dst_v6 {
            Some(dst) => IpAddr::from(dst.to_be_bytes()),
            None => IpAddr::from(parsed.dst_v4().to_be_bytes()),
        };
        let hash = || route::flow_hash(bytes, &parsed, fib.seed());
        let path = fib.resolve(fib.group(dst), hash);
        if !path.forwards() {
            return Err(Some(route::reason(path.kind())));
        }
        if parsed.ip_len > mtus()[path.port().index()] {
            return Err(Some(DropReason::MtuExceeded));
        }
        rewrite::any(&mut frame, admitted.packet(), path, admitted.priority)?;
        // Record by the parser of the frame as it is sent.
        let sent = parse_frame(frame.data())?;
        let mut record = Record::of(&sent, low16(frame.data().len()));
        record.addresses = admitted.record.addresses;
        if parsed.roce.is_some() && record.traits.is_negative(admitted.syndrome) {
            record.traits = record.traits.with(crate::wire::bth::Traits::NEGATIVE);
        }
        record.queue = QueueKey::new(path.port(), admitted.priority);
        Ok(meant(&record))
    })();
    (frame.data().to_vec(), known)
}

/// A frame that an earlier policer marked leaves marked, if it leaves with a tag; one that came without a tag does not.
#[test]
fn the_drop_eligible_indicator_is_kept() {
    let (_writer, fib) = routes();
    let (port, counters) = (port(), Counters::new(1));
    for (to, tagged) in [("10.0.100.7", true), ("10.0.2.2", false)] {
        for dei in [0, ethernet::DEI] {
            // With octets behind the packet the frame is rewritten the long way.
            for behind in [0, 9] {
                let craft = Craft::roce(
                    Ipv4Addr::new(10, 0, 1, 3).into(),
                    to.parse().unwrap(),
                    0x0a,
                    0x11,
                    64,
                );
                let mut frame = Craft {
                    dst_mac: OURS,
                    tos: 26 << 2,
                    tags: vec![1 << 13 | dei | 100],
                    ..craft
                }
                .frame();
                frame.resize(frame.len() + behind, 0);
                let (_, fates) = together(&port, &fib, &[frame.clone()], &counters);
                let tci = u16::from_be_bytes([fates[0].0[14], fates[0].0[15]]);
                let expected = (3 << 13) | dei | 100;
                assert_eq!(
                    (fates[0].1.is_ok(), tci == expected),
                    (true, tagged),
                    "{to} {dei:#x}"
                );
                assert_eq!(fates[0], separate(&port, &fib, &frame));
            }
        }
    }
    let craft = Craft::roce(
        Ipv4Addr::new(10, 0, 1, 3).into(),
        "10.0.100.7".parse().unwrap(),
        0x0a,
        0x11,
        64,
    );
    let mut untagged = Craft {
        dst_mac: OURS,
        tos: 26 << 2,
        ..craft
    }
    .frame();
    // The version and length of the header, where a tag would be.
    untagged[14] |= 0x10;
    let (_, fates) = together(&port, &fib, &[untagged], &counters);
    if fates[0].1.is_ok() {
        assert_eq!(fates[0].0[14] & 0x10, 0);
    }
}

proptest! {
    #![proptest_config(crate::cases::cases(512))]

    /// Every frame of a burst is received, routed and rewritten as it is by itself, stage by stage, whatever is beside it.
    #[test]
    fn a_burst_is_its_frames_one_by_one(bursts in prop::collection::vec(burst(), 1..4)) {
        let (_writer, fib) = routes();
        let (port, all, each) = (port(), Counters::new(1), Counters::new(1));
        for burst in bursts {
            let (taken, fates) = together(&port, &fib, &burst, &all);
            prop_assert_eq!(taken.bytes, burst.iter().map(|frame| frame.len() as u64).sum::<u64>());
            for (frame, fate) in burst.iter().zip(&fates) {
                let (expected, known) = separate(&port, &fib, frame);
                prop_assert_eq!(&fate.1, &known);
                if known.is_ok() {
                    prop_assert_eq!(&fate.0, &expected);
                }
                together(&port, &fib, std::slice::from_ref(frame), &each);
            }
            let queues: Vec<_> = fates.iter().filter_map(|(_, known)| known.as_ref().ok()).map(|known| known.queue).collect();
            let only = queues.first().copied().filter(|first| queues.iter().all(|queue| queue == first));
            prop_assert_eq!(taken.queue, only);
            let goes = |(frame, (sent, known)): (&Vec<u8>, &Fate)| known.is_ok().then(|| (frame.clone(), sent.clone()));
            let lens: Vec<_> = burst.iter().zip(&fates).filter_map(goes).collect();
            let (mut added, mut removed, mut trimmed) = (0, 0, 0);
            for (came, sent) in &lens {
                let (before, after) = (parse_frame(came).unwrap(), parse_frame(sent).unwrap());
                let (header, packet) = (usize::from(after.l3_off), usize::from(after.ip_len));
                prop_assert_eq!(before.ip_len, after.ip_len);
                // The frame after its tag is added or removed, which makes no frame shorter than 60.
                let mut whole = came.len() + header - usize::from(before.l3_off);
                if header < usize::from(before.l3_off) && whole < 60 { whole = came.len(); }
                added += whole.saturating_sub(came.len()) as u64;
                removed += came.len().saturating_sub(whole) as u64;
                trimmed += (whole - sent.len()) as u64;
                prop_assert_eq!(sent.len(), whole.min((header + packet).max(header + 46)));
                prop_assert!(sent[header + packet..].iter().all(|octet| *octet == 0));
            }
            prop_assert_eq!((taken.added, taken.removed, taken.trimmed), (added, removed, trimmed));
            prop_assert_eq!(taken.unpadded, lens.iter().all(|(_, sent)| sent.len() >= 60));
        }
        prop_assert_eq!(format!("{:?}", all.port(0)), format!("{:?}", each.port(0)));
    }
}

proptest! {
    #![proptest_config(crate::cases::cases(2048))]

    /// Any frame that the fast path reads, damaged or not, the general parser reads alike; and the fast path does read good
    /// frames.
    #[test]
    fn what_is_read_the_short_way_is_what_the_general_parser_reads(
        (v6, tagged, same) in (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1)),
        changes in prop::collection::vec((12usize..60, any::<u8>()), 0..3), mend in any::<bool>(),
        (opcode, tos, roce) in (any::<u8>(), any::<u8>(), any::<bool>()), payload in 0usize..100, cut in 40usize..200,
    ) {
        let port = port();
        let (src, dst) = if v6 { ("2001:db8:1::3", "2001:db8:2::9") } else { ("10.0.1.3", "10.0.2.2") };
        let src = if same { dst } else { src };
        let craft = Craft::roce(src.parse().unwrap(), dst.parse().unwrap(), opcode, 0x11, payload);
        let tags = if tagged { vec![5 << 13 | 100] } else { vec![] };
        let dst_port = if roce { 4791 } else { 53 };
        let mut frame = Craft { dst_mac: OURS, tos, tags, dst_port, ..craft }.frame();
        let least = if v6 { 79 } else { common::SHORTEST };
        let good = changes.is_empty() && cut >= frame.len() && frame.len() >= least;
        for (at, value) in changes { if let Some(octet) = frame.get_mut(at) { *octet = value; } }
        if mend && !tagged && !v6 { crate::parse::tests::mend_checksum(&mut frame); }
        frame.truncate(cut);
        let quick = port.read(&frame);
        prop_assert!(!good || quick.is_some());
        if let Some(quick) = quick {
            let slow = port.admit_any(&frame).unwrap();
            let of = |admitted: Admitted| {
                let flags = MetaFlags(admitted.record.flags.0 & !MetaFlags::TAGGED);
                Admitted { record: meant(&Record { flags: flags.of_class(admitted.record.traits), ..admitted.record }), syndrome: if admitted.record.is_roce() { admitted.syndrome } else { 0 }, ..admitted }
            };
            prop_assert_eq!(of(quick), of(slow));
            let mut seen = Seen::NOTHING;
            let seen = &mut seen;
            let whole = match (tagged, v6) {
                (false, false) => port.whole::<false, false>(&frame, seen),
                (true, false) => port.whole::<true, false>(&frame, seen),
                (false, true) => port.whole::<false, true>(&frame, seen),
                (true, true) => port.whole::<true, true>(&frame, seen),
            };
            let ends = frame.len() == quick.l3_off + usize::from(quick.ip_len);
            prop_assert!(!good || !ends || whole.is_some());
            if let Some(packet) = whole {
                prop_assert_eq!(meant(&parse::record(&packet, frame.len(), v6)), meant(&Record { flags: MetaFlags(0), ..quick.record }));
            }
        }
    }
}

/// Frames of all kinds are read and sent on in the fast loops; the law above would hold if every frame took the general way.
#[test]
fn all_kinds_are_read_and_sent_on_in_the_short_loops() {
    let (_writer, fib) = routes();
    let (port, counters) = (port(), Counters::new(1));
    let kinds = [
        ("10.0.2.2", vec![]),
        ("10.0.2.3", vec![]),
        ("10.0.3.2", vec![]),
        ("10.0.9.9", vec![]),
        ("10.0.100.7", vec![100]),
        ("10.0.100.8", vec![5 << 13 | 100]),
        ("2001:db8:2::9", vec![]),
        ("2001:db8:9::1", vec![100]),
    ];
    let frame = |n: u32| {
        let (dst, tags) = kinds[n as usize / 4].clone();
        let v6 = dst.contains(':');
        let src = if v6 { "2001:db8:1::3" } else { "10.0.1.3" };
        let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
        let craft = Craft::roce(src, dst, 0x07, 0x11 + n, 8 + n as usize);
        HeapFrame::new(&Craft { tags, ..craft }.frame())
    };
    let mut frames: Vec<_> = (0..4 * kinds.len() as u32).map(frame).collect();
    let (mut records, mut kinds) = ([Record::EMPTY; BURST], Kinds::new());
    let known = (&mut records, &mut kinds);
    heads::read((&port, None), &frames, known, counters.of(PortId(0)));
    assert!(kinds.unread.is_empty());
    let mtus = mtus();
    let mut hops = Hops::new(&fib, &mtus);
    let (left, keys) = hops.forward_burst(&port, &kinds, &mut frames, &mut records);
    assert!(left.is_empty());
    assert_eq!((keys.all & 7, keys.any & 7), (3, 3));
    assert_eq!(
        (records[3].dest_qp(), records[3].len),
        (0x11 + 3, 58 + 8 + 3)
    );
}

/// The half of an address that is kept is not used for a destination whose second half decides.
#[test]
fn destinations_below_64_bits_are_told_apart() {
    let (mut writer, mut fib) = routes();
    let long = Prefix::new("2001:db8:2::8".parse().unwrap(), 125).unwrap();
    let hop = Adjacency {
        kind: Kind::Forward,
        port: PortId(2),
        vlan: 0,
        dst: Mac([2, 0, 0, 0, 9, 7]),
        src: OURS,
        mtu: 0,
    };
    writer.insert(long, &[hop]).unwrap();
    writer.commit();
    fib.refresh();
    let frame = |host: &&str| {
        let dst = format!("2001:db8:2:{host}").parse().unwrap();
        Craft::roce("2001:db8:1::3".parse().unwrap(), dst, 0x07, 0x11, 8).frame()
    };
    let ports = |hosts: &[&str]| -> Vec<u8> {
        let burst: Vec<_> = hosts.iter().map(frame).collect();
        let (_, fates) = together(&port(), &fib, &burst, &Counters::new(1));
        let queues = fates.iter().map(|(_, known)| known.unwrap().queue);
        queues.map(|queue| queue.egress().0).collect()
    };
    assert_eq!(
        ports(&[":6", ":7", ":8", ":9", ":a", ":b"]),
        [1, 1, 2, 2, 2, 2]
    );
    // The lookup of the first ends between bit 64 and bit 120: it does not decide for the other.
    for elsewhere in ["0:1::1", "0:0:1::1", "0:0:0:1:1", ":100", ":1:0"] {
        assert_eq!(
            ports(&[elsewhere, ":8", elsewhere]),
            [1, 2, 1],
            "{elsewhere}"
        );
    }
}

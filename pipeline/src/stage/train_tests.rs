//! Bursts against their frames one by one.

use proptest::prelude::*;

use super::*;
use crate::classify::{Classifier, Trust};
use crate::counters::Counters;
use crate::craft::{BthFields, Craft};
use crate::frame::HeapFrame;
use crate::route::fib::FibReader;
use crate::route::nexthop::{Adjacency, Kind};
use crate::route::prefix::Prefix;
use crate::route::writer::{RouteCapacity, RouteWriter};
use crate::stage::packet::{Packets, packets};
use crate::stage::parse::Intake;
use crate::stage::receive::{Mtus, run};
use crate::units::{MAX_PORTS, Mac, PortId, Priority, WorkerId};

const OURS: Mac = Mac([2, 0, 0, 0, 1, 1]);

fn entrance() -> Entrance {
    let mut classifier = Classifier::all(Priority::new(0));
    classifier.trust = Trust::Dscp;
    classifier.dscp[26] = Priority::new(3);
    let intake = Intake {
        mac: OURS,
        mtu: 4200,
        vlans: Box::new([100]),
        classifier,
    };
    Entrance::new(intake, WorkerId::FIRST, PortId(0))
}

/// Two next hops, one of them tagged, one choice between two, prefixes of more than 24 bits, a port with a small MTU.
fn routes() -> (RouteWriter, FibReader) {
    let capacity = RouteCapacity {
        ipv4_routes: 64,
        ipv6_routes: 64,
        adjacencies: 64,
        groups: 64,
    };
    let (mut writer, mut readers) = RouteWriter::new(capacity, 1);
    let forward = |port, host, vlan| Adjacency {
        kind: Kind::Forward,
        port: PortId(port),
        vlan,
        dst: Mac([2, 0, 0, 0, 9, host]),
        src: Mac([2, 0, 0, 0, 2, port]),
    };
    for (text, paths) in [
        ("10.0.2.0/24", vec![forward(1, 2, 0)]),
        ("10.0.3.0/24", vec![forward(1, 3, 0)]),
        ("10.0.2.128/26", vec![forward(1, 3, 0)]),
        ("10.0.4.0/24", vec![forward(1, 4, 100)]),
        ("10.0.5.0/24", vec![forward(1, 2, 0), forward(1, 3, 0)]),
        ("10.0.6.0/24", vec![forward(2, 6, 0)]),
        ("2001:db8:2::/64", vec![forward(1, 2, 0)]),
    ] {
        let (address, len) = text.split_once('/').unwrap();
        let prefix = Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap();
        writer.insert(prefix, &paths).unwrap();
    }
    writer.commit();
    let mut reader = readers.remove(0);
    reader.refresh();
    (writer, reader)
}

const HOSTS: [&str; 10] = [
    "10.0.2.2",
    "10.0.2.3",
    "10.0.2.130",
    "10.0.3.2",
    "10.0.4.2",
    "10.0.5.2",
    "10.0.6.2",
    "127.0.0.1",
    "192.0.2.1",
    "2001:db8:2::2",
];
const OPCODES: [u8; 12] = [
    0x07, 0x08, 0x0a, 0x06, 0x0c, 0x0d, 0x0e, 0x11, 0x64, 0x81, 0xa4, 0x29,
];

/// A frame, and how many like it but for their numbers come one after the other.
fn stretch() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let usual = |many: std::ops::Range<usize>| prop_oneof![4 => Just(0), 1 => many];
    let fields = (
        usual(0..HOSTS.len()),
        usual(0..OPCODES.len()),
        prop_oneof![4 => Just(0x6a), 1 => any::<u8>()],
        prop_oneof![6 => Just(64), 1 => any::<u8>()],
        prop_oneof![2 => 2usize..100, 1 => 900usize..4300],
    );
    let damage = prop::option::weighted(0.2, (0usize..70, any::<u8>()));
    (fields, damage, any::<bool>(), 1u32..40).prop_map(
        |((host, opcode, tos, ttl, payload), damage, ack_req, count)| {
            let v6 = HOSTS[host].contains(':');
            let src = if v6 { "2001:db8:1::3" } else { "10.0.1.3" };
            let (src, dst) = (src.parse().unwrap(), HOSTS[host].parse().unwrap());
            let frame = |n: u32| {
                let craft = Craft::roce(src, dst, OPCODES[opcode], 0x11, payload);
                let bth = BthFields {
                    opcode: OPCODES[opcode],
                    dest_qp: 0x11 + n,
                    psn: 7 + n,
                    ack_req,
                    becn: false,
                };
                let mut frame = Craft {
                    dst_mac: OURS,
                    tos,
                    ttl,
                    bth: Some(bth),
                    ..craft
                }
                .frame();
                if let Some((at, value)) = damage
                    && n == count / 2
                    && let Some(octet) = frame.get_mut(at)
                {
                    *octet = value;
                }
                frame
            };
            (0..count).map(frame).collect()
        },
    )
}

fn burst() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(stretch(), 1..6).prop_map(|stretches| {
        let mut frames = stretches.concat();
        frames.truncate(BURST);
        frames
    })
}

/// What became of a frame: its bytes, and what is known of it.
type Fate = (Vec<u8>, String);

fn walk(
    entrance: &mut Entrance,
    fib: &FibReader,
    burst: &[Vec<u8>],
    counters: &Counters,
) -> (u64, Vec<Fate>) {
    let mut mtus: Mtus = [4200; MAX_PORTS];
    mtus[2] = 1000;
    let mut frames: Vec<_> = burst.iter().map(|frame| HeapFrame::new(frame)).collect();
    let (mut packets, mut cars): (Packets, Cars) = (packets(), cars());
    let known = (&mut packets, &mut cars);
    let counters = counters.port(0).unwrap();
    let taken = run(entrance, fib, &mtus, &mut frames, known, counters);
    if let Some(kin) = &taken.train {
        assert!(taken.gone.is_empty());
        dress(&mut packets[..frames.len()], &cars, kin);
    }
    let fate = |(place, (frame, packet)): (usize, (&HeapFrame, &Packet))| {
        let known = if taken.gone.has(place) {
            format!("{:?}", packet.reason)
        } else {
            let parsed = packet.parsed(frame.data());
            let brief = &packet.brief;
            let asked = (brief.addresses, brief.len, brief.tos, brief.is_common());
            format!("{:?} {parsed:?} {asked:x?} {:?}", packet.meta, brief.traits)
        };
        (frame.data().to_vec(), known)
    };
    let fates = frames.iter().zip(&packets).enumerate().map(fate).collect();
    (taken.bytes, fates)
}

proptest! {
    /// Frames that follow in a train, in this burst or from the one before, are taken in as each is by itself.
    #[test]
    fn a_train_is_its_frames_one_by_one(bursts in prop::collection::vec(burst(), 1..4)) {
        let (_writer, fib) = routes();
        let (mut entrance_of_all, together, apart) = (entrance(), Counters::new(1), Counters::new(1));
        for burst in bursts {
            let (bytes, fates) = walk(&mut entrance_of_all, &fib, &burst, &together);
            let (mut sum, mut expected) = (0, Vec::new());
            for frame in &burst {
                let (bytes, fate) = walk(&mut entrance(), &fib, std::slice::from_ref(frame), &apart);
                sum += bytes;
                expected.extend(fate);
            }
            prop_assert_eq!((bytes, fates), (sum, expected));
        }
        prop_assert_eq!(format!("{:?}", together.port(0)), format!("{:?}", apart.port(0)));
    }
}

/// The law above would hold if no frame ever followed another.
#[test]
fn a_burst_out_of_one_port_is_one_train_and_the_next_goes_on_with_it() {
    let (_writer, fib) = routes();
    let mut entrance = entrance();
    let (counters, mtus) = (Counters::new(1), [4200; MAX_PORTS]);
    let frame = |n: u32| {
        // The last one is behind another next hop than the others.
        let dst = ["10.0.2.2", "10.0.2.3", "10.0.3.2"][n as usize % 3];
        let (src, dst) = ("10.0.1.3".parse().unwrap(), dst.parse().unwrap());
        HeapFrame::new(&Craft::roce(src, dst, 0x07, 0x11 + n, 8 + n as usize).frame())
    };
    let (mut packets, mut cars) = (packets(), cars());
    for (first, expected) in [(0, false), (16, true)] {
        let mut frames: Vec<_> = (first..first + 16).map(frame).collect();
        let known = (&mut packets, &mut cars);
        let taken = run(
            &mut entrance,
            &fib,
            &mtus,
            &mut frames,
            known,
            counters.port(0).unwrap(),
        );
        assert_eq!(taken.train.is_some(), expected);
    }
    assert_eq!((cars[3].dest_qp(), cars[3].len), (0x11 + 19, 58 + 8 + 19));
}

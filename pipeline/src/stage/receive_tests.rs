//! The short way of the common frame against the general one.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::{Entrance, FrameBuf, Packet, UNTAGGED, rewrite, route};
use crate::classify::Classifier;
use crate::counters::Counters;
use crate::craft::Craft;
use crate::frame::HeapFrame;
use crate::parse::parse;
use crate::route::nexthop::{Adjacency, Kind};
use crate::stage::packet::packets;
use crate::stage::parse::Intake;
use crate::units::{Mac, PortId, Priority, WorkerId};

const OURS: Mac = Mac([2, 0, 0, 0, 1, 1]);

/// A port that takes in what these tests send.
fn entrance() -> Entrance {
    Entrance::new(
        Intake {
            mac: OURS,
            mtu: 9000,
            vlans: Box::new([]),
            classifier: Classifier::all(Priority::new(3)),
        },
        WorkerId::FIRST,
        PortId(0),
    )
}

/// What the parse stage knows of a common frame.
fn known(bytes: &[u8]) -> Packet {
    let mut frame = bytes.to_vec();
    let (entrance, counters) = (entrance(), Counters::new(1));
    let (head, common) = entrance.common(&mut frame).unwrap();
    let [mut packet, ..] = packets();
    entrance.fill(
        &mut packet,
        head,
        common,
        bytes.len(),
        counters.port(0).unwrap(),
    );
    packet
}

fn common_frame() -> impl Strategy<Value = Vec<u8>> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u32>());
    let fields = (any::<u8>(), any::<u8>(), any::<u8>(), 2usize..200);
    (numbers, fields).prop_map(|((src, dst, src_port, qp), (tos, ttl, opcode, payload))| {
        // Within 10/8 and 11/8: nothing a router must not forward.
        let host =
            |bits: u32, net: u32| IpAddr::from(Ipv4Addr::from(bits & 0x00ff_ffff | net << 24));
        let mut frame = Craft {
            dst_mac: OURS,
            tos,
            ttl,
            src_port,
            ..Craft::roce(
                host(src, 10),
                host(dst, 11),
                opcode,
                qp & 0x00ff_ffff,
                payload,
            )
        }
        .frame();
        frame.resize(frame.len().max(60), 0);
        frame
    })
}

proptest! {
    /// What the stages ask of a common frame, and what they read again, is what the general parser says.
    #[test]
    fn a_brief_says_what_the_parser_says(bytes in common_frame()) {
        let (packet, parsed) = (known(&bytes), parse(&bytes).unwrap());
        let (roce, brief) = (parsed.roce.unwrap(), packet.brief);
        prop_assert!(brief.is_common());
        prop_assert_eq!(packet.parsed(&bytes), parsed);
        prop_assert_eq!((brief.dest_qp(), brief.ack_psn()), (roce.dest_qp, roce.ack_psn));
        prop_assert_eq!((brief.addresses, brief.src_port), (parsed.addresses_v4, roce.src_port));
        prop_assert_eq!((brief.tos, usize::from(brief.len)), (parsed.tos, bytes.len()));
        prop_assert!(brief.traits.any(roce.class.bit()));
    }

    /// The common frame is taken in as any frame is: the same travels with it, the same is counted.
    #[test]
    fn the_short_way_takes_in_as_the_long_one(bytes in common_frame()) {
        let (counters, short) = (Counters::new(1), known(&bytes));
        let [mut long, ..] = packets();
        entrance().take_any(&bytes, &mut long, counters.port(0).unwrap()).unwrap();
        prop_assert_eq!(short.meta, long.meta);
        prop_assert_eq!(short.parsed(&bytes), long.parsed(&bytes));
    }

    /// A common frame takes the path that any frame of its flow would.
    #[test]
    fn a_brief_hashes_as_its_frame(bytes in common_frame()) {
        let parsed = parse(&bytes).unwrap();
        prop_assert_eq!(route::hash(&[], &known(&bytes)), route::flow_hash(&bytes, &parsed));
    }

    /// Three stores end with the bytes, or the refusal, of the general way.
    #[test]
    fn the_short_way_rewrites_as_the_long_one(bytes in common_frame()) {
        let path = Adjacency {
            kind: Kind::Forward,
            port: PortId(1),
            vlan: UNTAGGED,
            dst: Mac([2, 0, 0, 0, 9, 9]),
            src: Mac([2, 0, 0, 0, 2, 2]),
        }
        .packed();
        let (mut short, mut long) = (bytes.clone(), HeapFrame::new(&bytes));
        let (mut packet, counters, parsed) = (known(&bytes), Counters::new(1), parse(&bytes).unwrap());
        let (head, _) = entrance().common(&mut short).unwrap();
        let done = rewrite::plain(head, path);
        let same = rewrite::any(&mut long, parsed, path, &mut packet, counters.port(0).unwrap());
        prop_assert_eq!(done, same);
        if done.is_ok() {
            prop_assert_eq!(&short[..], long.data());
            prop_assert_eq!(packet.parsed(&short), parsed);
        }
    }
}

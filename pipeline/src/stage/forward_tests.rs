//! The short way of the common frame against the general one.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use arrayvec::ArrayVec;
use proptest::prelude::*;

use super::*;
use crate::classify::Classifier;
use crate::counters::Counters;
use crate::craft::Craft;
use crate::frame::HeapFrame;
use crate::parse::parse;
use crate::route::nexthop::{Adjacency, Kind};
use crate::stage::packet::{Packets, packets};
use crate::stage::parse::{Entrance, Intake, run};
use crate::units::{Mac, PortId, Priority, WorkerId};

const OURS: Mac = Mac([2, 0, 0, 0, 1, 1]);

/// A frame as it came in, and what the parse stage knows of it.
fn taken(bytes: &[u8]) -> (HeapFrame, Packets, Arc<Counters>) {
    let entrance = Entrance::new(
        Intake {
            mac: OURS,
            mtu: 9000,
            vlans: Box::new([]),
            classifier: Classifier::all(Priority::new(3)),
        },
        WorkerId::FIRST,
        PortId(0),
    );
    let counters = Arc::new(Counters::new(1));
    let mut known = packets();
    let mut frames: ArrayVec<HeapFrame, 1> = ArrayVec::new();
    frames.push(HeapFrame::new(bytes));
    let came = run(&entrance, &frames, &mut known, 0, counters.port(0).unwrap());
    assert!(came.gone.is_empty());
    (frames.pop().unwrap(), known, counters)
}

fn common_frame() -> impl Strategy<Value = Vec<u8>> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u32>());
    let fields = (any::<u8>(), any::<u8>(), any::<u8>(), 0usize..200);
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
        let (frame, known, _) = taken(&bytes);
        let parsed = parse(&bytes).unwrap();
        let roce = parsed.roce.unwrap();
        let (packet, brief) = (&known[0], known[0].brief);
        prop_assert!(brief.is_common());
        prop_assert_eq!(packet.parsed(frame.data()), parsed);
        prop_assert_eq!((brief.dest_qp(), brief.ack_psn()), (roce.dest_qp, roce.ack_psn));
        prop_assert_eq!((brief.addresses, brief.src_port), (parsed.addresses_v4, roce.src_port));
        prop_assert_eq!((brief.tos, usize::from(brief.len)), (parsed.tos, bytes.len()));
        prop_assert!(brief.traits.any(roce.class.bit()));
    }

    /// A common frame takes the path that any frame of its flow would.
    #[test]
    fn a_brief_hashes_as_its_frame(bytes in common_frame()) {
        let (frame, known, _) = taken(&bytes);
        let parsed = parse(&bytes).unwrap();
        prop_assert_eq!(route::hash(frame.data(), &known[0]), route::flow_hash(&bytes, &parsed));
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
        let (mut short, mut known, counters) = taken(&bytes);
        let mut long = short.clone();
        let parsed = parse(&bytes).unwrap();
        let done = rewrite::plain(&mut short, path);
        let same = rewrite::any(&mut long, parsed, path, &mut known[0], counters.port(0).unwrap());
        prop_assert_eq!(done, same);
        if done.is_ok() {
            prop_assert_eq!(short.data(), long.data());
            prop_assert_eq!(known[0].parsed(short.data()), parsed);
        }
    }
}

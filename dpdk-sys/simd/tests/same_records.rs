//! The vector reader against the scalar one: bursts of any bytes, of all kinds of frame, end with the same records, bytes and
//! counters.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by panicking"
)]

use npcc_testkit::skip::skipped;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use npcc_pipeline::burst::Record;
use npcc_pipeline::classify::{Classifier, Trust};
use npcc_pipeline::counters::Counters;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::frame::{FrameBuf, HeapFrame};
use npcc_pipeline::parse::digest::AddressDigest;
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::heads::{HeadsRead, VectorReader};
use npcc_pipeline::stage::kinds::FrameKind;
use npcc_pipeline::stage::parse::{IngressConfig, IngressPort, Seen};
use npcc_pipeline::stage::receive::{self, Received};
use npcc_pipeline::units::{BURST, MAX_PORTS, Mac, PortId, Priority, WorkerId};
use proptest::prelude::*;

/// Returns the vector reader; `None`, and a skip, on a CPU without one.
fn detected() -> Option<Box<dyn VectorReader<HeapFrame>>> {
    let reader = npcc_simd::detected();
    if reader.is_none() {
        skipped("avx2", "a CPU with AVX2");
    }
    reader
}

const OURS: Mac = Mac([2, 0, 0, 0, 1, 1]);
const VLANS: [u16; 2] = [100, 0xfff];

fn port() -> IngressPort {
    let mut classifier = Classifier::all(Priority::new(1));
    classifier.trust = Trust::Pcp;
    classifier.pcp = std::array::from_fn(|pcp| Priority::new(pcp as u8));
    let intake = IngressConfig {
        mac: OURS,
        mtu: 400,
        vlans: Box::new(VLANS),
        classifier,
    };
    IngressPort::new(intake, WorkerId::FIRST, PortId(0), AddressDigest::new(9))
}

/// Default routes that keep a frame's header as long as it is, for either tag.
fn routes(vlan: u16) -> (RouteWriter, FibReader) {
    let capacity = RouteCapacity {
        ipv4_routes: 4,
        ipv6_routes: 4,
        adjacencies: 4,
        groups: 4,
    };
    let (mut writer, mut readers) = RouteWriter::new(capacity, 1);
    let hop = Adjacency {
        kind: Kind::Forward,
        port: PortId(1),
        vlan,
        dst: Mac([2, 0, 0, 0, 9, 9]),
        src: OURS,
        mtu: 0,
    };
    for any in [IpAddr::from([0, 0, 0, 0]), IpAddr::from([0u16; 8])] {
        writer.insert(Prefix::new(any, 0).unwrap(), &[hop]).unwrap();
    }
    writer.commit();
    let mut fib = readers.remove(0);
    fib.refresh();
    (writer, fib)
}

/// Frame of a kind, with an opcode, a syndrome and a tag control word.
fn frame(kind: FrameKind, opcode: u8, (tos, syndrome): (u8, u8), tci: u16, len: usize) -> Vec<u8> {
    let (v6, tagged) = match kind {
        FrameKind::V4 => (false, false),
        FrameKind::TaggedV4 => (false, true),
        FrameKind::V6 => (true, false),
        FrameKind::TaggedV6 => (true, true),
    };
    let (src, dst) = if v6 {
        ("2001:db8:1::3", "2001:db8:2::9")
    } else {
        ("10.0.1.3", "192.168.2.2")
    };
    let mut craft = Craft::roce(
        src.parse().unwrap(),
        dst.parse().unwrap(),
        opcode,
        0x11,
        len,
    );
    craft.dst_mac = OURS;
    craft.tos = tos;
    if tagged {
        craft.tags = vec![tci];
    }
    if let Some(first) = craft.payload.first_mut() {
        *first = syndrome;
    }
    craft.frame()
}

const KINDS: [FrameKind; 4] = [
    FrameKind::V4,
    FrameKind::TaggedV4,
    FrameKind::V6,
    FrameKind::TaggedV6,
];

fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let opcode = prop_oneof![4 => Just(0x0au8), 3 => Just(0x11u8), 2 => any::<u8>()];
    let signs = (
        prop_oneof![Just(0x6au8), any::<u8>()],
        prop_oneof![4 => Just(0x1fu8), 1 => any::<u8>()],
    );
    let tci = (0u16..8, 0usize..VLANS.len() + 2)
        .prop_map(|(pcp, id)| pcp << 13 | VLANS.get(id).copied().unwrap_or_else(|| id as u16 - 2));
    let damage = prop::option::weighted(0.15, (0usize..100, any::<u8>()));
    let behind = prop_oneof![8 => Just(0usize), 1 => 1usize..60];
    let one = (0usize..4, opcode, signs, tci, 0usize..420, damage, behind).prop_map(
        |(kind, opcode, signs, tci, len, damage, behind)| {
            let mut frame = frame(KINDS[kind], opcode, signs, tci, len % 400);
            frame.resize(frame.len() + behind, 0x5a);
            if let Some((at, value)) = damage
                && let Some(octet) = frame.get_mut(at)
            {
                *octet = value;
            }
            frame
        },
    );
    let any_bytes = prop::collection::vec(any::<u8>(), 0..100);
    let one = prop_oneof![12 => one, 1 => any_bytes];
    let stretch = (prop::collection::vec(one, 1..6), 1usize..9);
    prop::collection::vec(stretch, 1..6).prop_map(|stretches| {
        let again = |(frames, count): (Vec<Vec<u8>>, usize)| std::iter::repeat_n(frames, count);
        let mut all: Vec<_> = stretches.into_iter().flat_map(again).flatten().collect();
        all.truncate(BURST);
        all
    })
}

/// Outcome of a burst: the frames, their records, what is said of all, and the counters.
type Outcome = (Vec<Vec<u8>>, Vec<Option<Record>>, String);

fn outcome(vectors: Option<&dyn VectorReader<HeapFrame>>, burst: &[Vec<u8>], vlan: u16) -> Outcome {
    let (_writer, fib) = routes(vlan);
    let counters = Counters::new(1);
    let mut frames: Vec<_> = burst.iter().map(|frame| HeapFrame::new(frame)).collect();
    let (mut records, mut reasons) = ([Record::EMPTY; BURST], [None; BURST]);
    let received: Received = receive::run(
        (&port(), vectors),
        (&fib, &[400; MAX_PORTS]),
        &mut frames,
        (&mut records, &mut reasons),
        counters.of(PortId(0)),
    );
    let record = |place| (!received.gone.has(place)).then(|| records[place]);
    (
        frames.iter().map(|frame| frame.data().to_vec()).collect(),
        (0..frames.len()).map(record).collect(),
        format!(
            "{received:?} {:?} {:?}",
            &reasons[..frames.len()],
            counters.port(0)
        ),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Law: whatever reads the headers, a burst has the same records, bytes and counters.
    #[test]
    fn any_burst_has_the_records_of_the_scalar_reader(burst in frames(), tagged in any::<bool>()) {
        let vlan = if tagged { 100 } else { 0 };
        let Some(vectors) = detected() else { return Ok(()) };
        prop_assert_eq!(outcome(Some(&*vectors), &burst, vlan), outcome(None, &burst, vlan));
    }
}

/// Reader that counts the frames another one reads.
#[derive(Debug)]
struct Counting<'a>(&'a dyn VectorReader<HeapFrame>, AtomicUsize);

impl VectorReader<HeapFrame> for Counting<'_> {
    fn read(
        &self,
        kind: FrameKind,
        port: (&IngressPort, &Seen),
        frames: &[HeapFrame],
        records: &mut [Record],
    ) -> HeadsRead {
        let read = self.0.read(kind, port, frames, records);
        self.1.fetch_add(read.frames, Ordering::Relaxed);
        read
    }
}

/// Good frames of every kind are read by vectors: the law above would hold if the scalar reader read them all. The first group
/// of tagged ones is not, until their VLAN was seen; nor is one with a NAK.
#[test]
fn good_frames_of_all_kinds_are_read_by_vectors() {
    let Some(vectors) = detected() else {
        return;
    };
    for kind in KINDS {
        for (opcode, syndrome, least) in [(0x0a, 0, 60), (0x11, 0x1f, 60), (0x11, 0x60, 0)] {
            let counting = Counting(&*vectors, AtomicUsize::new(0));
            let burst = vec![frame(kind, opcode, (0x6b, syndrome), 100, 8); BURST];
            outcome(Some(&counting), &burst, 100);
            let read = counting.1.into_inner();
            assert!(
                read >= least && (least > 0 || read == 0),
                "{kind:?} {opcode:#x}: {read}"
            );
        }
    }
}

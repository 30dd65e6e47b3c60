//! A run counted as one, compared with its packets looked at one by one.

use std::net::IpAddr;

use npcc_pipeline::buffer::GroupId;
use npcc_pipeline::burst::{Record as Known, Run, RunHead};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::frame::{FrameBuf, HeapFrame};
use npcc_pipeline::icrc;
use npcc_pipeline::parse::digest::AddressDigest;
use npcc_pipeline::parse::parse;
use npcc_pipeline::tap::FlowTap;
use npcc_pipeline::units::WorkerId;
use npcc_pipeline::wire::bth::Traits;
use proptest::prelude::*;

use super::super::*;
use super::{DATA, PortId, WAN};
use crate::traffic_tests::rig::{DC, Packet, QUEUE};

/// SEND MIDDLE and ONLY, WRITE MIDDLE, READ RESPONSE MIDDLE and ONLY, WRITE of UC, ACK, READ REQUEST, datagram, CNP, XRC.
const OPCODES: [u8; 11] = [
    0x01, 0x04, 0x07, 0x0e, 0x10, 0x27, 0x11, 0x0c, 0x64, 0x81, 0xa4,
];
/// Syndromes of an ACK, an RNR NAK and a NAK.
const SYNDROMES: [u8; 3] = [0x1f, 0x2c, 0x60];

#[derive(Debug, Clone)]
struct Burst {
    after: u64,
    /// Enters by the watched port (0), leaves by it, or neither.
    way: u8,
    /// Queue pair, opcode, source port, AckReq, payload, syndrome.
    packets: Vec<(u32, usize, u16, bool, usize, usize)>,
    /// Family of the packets: all IPv4, all IPv6, or every other one.
    family: u8,
    /// Index of a packet whose flow the control core sets to paired or not paired; `None` for no such command.
    signalled: Option<(usize, bool)>,
}

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let port = prop_oneof![20 => Just(0u16), 1 => 1u16..3];
    let flows = prop_oneof![Just(6u32), Just(300)];
    // In messages of one packet (1.0), every packet sets AckReq.
    let asks = prop_oneof![Just(0.05), Just(1.0)].prop_flat_map(prop::bool::weighted);
    let opcode = prop_oneof![6 => 0usize..5, 3 => Just(6usize), 1 => 0..OPCODES.len()];
    let syndrome = prop_oneof![8 => Just(0usize), 1 => 0..SYNDROMES.len()];
    let packet = (0u32..300, opcode, port, asks, 20usize..400, syndrome);
    let after = prop_oneof![6 => 0u64..3_000, 1 => 0u64..12_000_000];
    let burst = (
        after,
        prop_oneof![6 => Just(0u8), 3 => Just(1), 1 => Just(2)],
        prop::collection::vec(packet, 1..=64),
        prop_oneof![2 => Just(0u8), 2 => Just(1), 1 => Just(2)],
        prop::option::of((0usize..64, any::<bool>())),
    );
    (flows, prop::collection::vec(burst, 1..30)).prop_map(|(flows, bursts)| {
        bursts
            .into_iter()
            .map(|(after, way, packets, family, signalled)| Burst {
                after,
                way,
                family,
                packets: packets
                    .into_iter()
                    .map(|(qp, opcode, port, ask, len, syndrome)| {
                        (qp % flows, opcode, port, ask, len, syndrome)
                    })
                    .collect(),
                signalled,
            })
            .collect()
    })
}

fn run(burst: &Burst) -> Run<HeapFrame> {
    let (ingress, egress) = [(DC, WAN), (WAN, DC), (DC, PortId(2))][usize::from(burst.way)];
    let mut run = Run {
        head: RunHead::new(egress, QUEUE, GroupId::new(WorkerId::FIRST, ingress, QUEUE)),
        ..Run::default()
    };
    for (n, &(qp, opcode, port, ask, payload, syndrome)) in burst.packets.iter().enumerate() {
        let packet = Packet {
            qpn: 1 + qp,
            opcode: OPCODES[opcode],
            port: 49_000 + port,
            payload,
            ..DATA
        };
        let v6 = burst.family == 1 || burst.family == 2 && n % 2 == 1;
        let bth = if v6 { 62 } else { 42 };
        let change = |frame: &mut [u8]| {
            frame[bth + 8] = if ask { 0x80 } else { 0 };
            frame[bth + 12] = SYNDROMES[syndrome];
        };
        let frame = if v6 {
            changed_v6(&packet, change)
        } else {
            packet.changed(change)
        };
        let known = known(&frame, bth);
        run.push(frame, &known);
    }
    run
}

/// Frame of this packet over IPv6, with this change, and the right ICRC.
fn changed_v6(packet: &Packet, change: impl FnOnce(&mut [u8])) -> HeapFrame {
    let v6 = |[a, b, c, d]: [u8; 4]| {
        IpAddr::from([0x20, 1, 0xd, 0xb8, a, b, 0, 0, 0, 0, 0, 0, c, d, 0, 1])
    };
    let (src, dst) = (v6(packet.src), v6(packet.dst));
    let craft = Craft {
        src_port: packet.port,
        ..Craft::roce(src, dst, packet.opcode, packet.qpn, packet.payload)
    };
    let mut frame = craft.frame();
    change(&mut frame);
    icrc::seal(&mut frame);
    HeapFrame::new(&frame)
}

/// Record that the packet path makes of an untagged frame whose BTH is at `bth`.
fn known(frame: &HeapFrame, bth: usize) -> Known {
    let bytes = frame.data();
    let parsed = parse(bytes).unwrap();
    let mut known = Known::of(&parsed, u16::try_from(bytes.len()).unwrap());
    if known.traits.is_negative(bytes[bth + 12]) {
        known.traits = known.traits.with(Traits::NEGATIVE);
    }
    if parsed.is_v6() {
        known.addresses = AddressDigest::new(5).of(bytes[22..].first_chunk().unwrap());
    }
    known
}

proptest! {
    /// Law: counts, records and slots are as if every packet had been looked at closely, within the quota of the run.
    #[test]
    fn a_run_is_counted_as_its_packets(bursts in bursts(), slots in prop_oneof![Just(8usize), Just(1024)]) {
        let [mut one, mut other] = [(); 2].map(|()| FlowCache::new(slots, WAN.bit(), 64, 3));
        // Many flows: found by a look ahead.
        for cache in [&mut one.0, &mut other.0] {
            cache.taken = if slots == 1024 { 5_000 } else { 0 };
        }
        let mut now = 0;
        for burst in bursts {
            now += burst.after;
            let mut together = run(&burst);
            one.0.enqueued(&mut together, Nanos(now));
            let separate = run(&burst);
            other.0.begin_run(separate.head.group.ingress(), Nanos(now));
            for (place, (buf, known)) in separate.frames.iter().zip(separate.known()).enumerate() {
                let parsed = parse(buf.data()).unwrap();
                let meta = separate.head.meta(known);
                let slot = other.0.see(&npcc_pipeline::tap::Sighting {
                    data: buf.data(),
                    addresses: known.addresses,
                    parsed: &parsed,
                    roce: parsed.roce.unwrap(),
                    meta: &meta,
                    now: Nanos(now),
                });
                prop_assert_eq!(together.known()[place].slot, slot);
            }
            let records = |(_, reader): &mut (FlowCache, CacheReader)| {
                std::iter::from_fn(|| reader.pop()).map(|record| format!("{record:?}")).collect::<Vec<_>>()
            };
            prop_assert_eq!(records(&mut one), records(&mut other));
            if let Some((place, paired)) = burst.signalled
                && let Some(known) = together.known().get(place)
                && let Some(shared) = one.0.shared.slots.get(known.slot.0 as usize)
            {
                let slot = npcc_roce::sample::SlotRef { slot: known.slot, generation: shared.generation() };
                one.1.set_control(slot, SlotControl::paired(paired));
                other.1.set_control(slot, SlotControl::paired(paired));
            }
        }
        let all = |(cache, _): &(FlowCache, CacheReader)| format!("{:?}", cache.shared);
        prop_assert_eq!(all(&one), all(&other));
    }
}

/// A run of plain data of one flow.
fn one_flow(family: u8, packets: usize) -> Run<HeapFrame> {
    run(&Burst {
        after: 0,
        way: 0,
        packets: vec![(0, 2, 0, false, 100, 0); packets],
        family,
        signalled: None,
    })
}

/// With many flows a packet of each 65,536 is shown whatever else, so that no endpoint wraps its numbers unseen: IPv6 too.
#[test]
fn of_many_flows_a_packet_of_each_round_is_shown_in_either_family() {
    for family in [0, 1] {
        let (mut cache, mut reader) = FlowCache::new(1024, WAN.bit(), 64, 3);
        cache.taken = 5_000;
        let mut shown = |cache: &mut FlowCache, packets| {
            cache.enqueued(&mut one_flow(family, packets), Nanos(1));
            std::iter::from_fn(|| reader.pop()).count()
        };
        for _ in 0..1023 {
            shown(&mut cache, 64);
        }
        assert_eq!(shown(&mut cache, 63), 0, "family {family}");
        assert_eq!(shown(&mut cache, 1), 1, "family {family}");
    }
}

/// The slot that is loaded ahead for a packet is its flow's: IPv6 too, which was hashed as if it had no addresses.
#[test]
fn the_slot_loaded_ahead_is_that_of_the_flow_in_either_family() {
    for family in [0, 1] {
        let (mut cache, _reader) = FlowCache::new(1024, WAN.bit(), 64, 3);
        let mut counted = one_flow(family, 1);
        cache.enqueued(&mut counted, Nanos(1));
        let mut next = one_flow(family, 1);
        let queue = cache.watch(&next.head, Nanos(1)).queue;
        cache.note_home(next.parts_mut().1, queue);
        assert_eq!(
            next.known()[0].slot,
            counted.known()[0].slot,
            "family {family}"
        );
        assert_ne!(next.known()[0].slot, npcc_pipeline::frame::FlowSlot::NONE);
    }
}

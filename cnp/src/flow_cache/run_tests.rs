//! A run counted as one, compared with its packets looked at one by one.

use npcc_pipeline::buffer::GroupId;
use npcc_pipeline::burst::{Record as Known, Run, RunHead};
use npcc_pipeline::frame::{FrameBuf, HeapFrame};
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
        prop::option::of((0usize..64, any::<bool>())),
    );
    (flows, prop::collection::vec(burst, 1..30)).prop_map(|(flows, bursts)| {
        bursts
            .into_iter()
            .map(|(after, way, packets, signalled)| Burst {
                after,
                way,
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
    for &(qp, opcode, port, ask, payload, syndrome) in &burst.packets {
        let packet = Packet {
            qpn: 1 + qp,
            opcode: OPCODES[opcode],
            port: 49_000 + port,
            payload,
            ..DATA
        };
        let frame = packet.changed(|frame| {
            frame[50] = if ask { 0x80 } else { 0 };
            frame[54] = SYNDROMES[syndrome];
        });
        let bytes = frame.data();
        let parsed = parse(bytes).unwrap();
        let mut known = Known::of(&parsed, u16::try_from(bytes.len()).unwrap());
        if known.traits.is_negative(bytes[54]) {
            known.traits = known.traits.with(Traits::NEGATIVE);
        }
        run.push(frame, &known);
    }
    run
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
                let slot = crate::sample::SlotRef { slot: known.slot, generation: shared.generation() };
                one.1.set_control(slot, SlotControl::paired(paired));
                other.1.set_control(slot, SlotControl::paired(paired));
            }
        }
        let all = |(cache, _): &(FlowCache, CacheReader)| format!("{:?}", cache.shared);
        prop_assert_eq!(all(&one), all(&other));
    }
}

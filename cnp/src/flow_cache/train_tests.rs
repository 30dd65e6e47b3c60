//! A train counted as one against its packets counted as any burst's are.

use npcc_pipeline::frame::{FlowSlot, FrameBuf, HeapFrame};
use npcc_pipeline::stage::packet::Packet as Known;
use npcc_pipeline::stage::train::{Car, Kin, cars};
use npcc_pipeline::tap::FlowTap;
use npcc_pipeline::wire::bth::Traits;
use proptest::prelude::*;

use super::super::*;
use super::{DATA, PortId, WAN};
use crate::traffic_tests::rig::{DC, Packet, QUEUE};
use npcc_pipeline::frame::Meta;
use npcc_pipeline::parse::parse;

/// SEND MIDDLE and ONLY, WRITE MIDDLE, READ RESPONSE MIDDLE, WRITE of UC: all plain data.
const OPCODES: [u8; 5] = [0x01, 0x04, 0x07, 0x0e, 0x27];

#[derive(Debug, Clone)]
struct Burst {
    after: u64,
    watched: bool,
    /// Queue pair, opcode, source port, whether a reply is asked for, payload.
    packets: Vec<(u32, usize, u16, bool, usize)>,
    /// Of these packets' flows, the control core says that they are paired, or not.
    told: Option<(usize, bool)>,
}

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let port = prop_oneof![20 => Just(0u16), 1 => 1u16..3];
    let flows = prop_oneof![Just(6u32), Just(300)];
    // Of messages of one packet each asks.
    let asks = prop_oneof![Just(0.05), Just(1.0)].prop_flat_map(prop::bool::weighted);
    let packet = (0u32..300, 0..OPCODES.len(), port, asks, 20usize..400);
    let after = prop_oneof![6 => 0u64..3_000, 1 => 0u64..12_000_000];
    let burst = (
        after,
        prop::bool::weighted(0.9),
        prop::collection::vec(packet, 1..=64),
        prop::option::of((0usize..64, any::<bool>())),
    );
    (flows, prop::collection::vec(burst, 1..30)).prop_map(|(flows, bursts)| {
        let one = |(after, watched, packets, told): (u64, bool, Vec<_>, Option<(usize, bool)>)| {
            let within = |(qp, opcode, port, ask, len): (u32, usize, u16, bool, usize)| {
                (qp % flows, opcode, port, ask, len)
            };
            Burst {
                after,
                watched,
                packets: packets.into_iter().map(within).collect(),
                told,
            }
        };
        bursts.into_iter().map(one).collect()
    })
}

proptest! {
    #[test]
    fn a_train_is_counted_as_its_packets(bursts in bursts(), slots in prop_oneof![Just(8usize), Just(1024)]) {
        let [mut one, mut other] = [(); 2].map(|()| FlowCache::new(slots, WAN.bit(), 64, 3));
        // Many flows: found by a look ahead.
        for cache in [&mut one.0, &mut other.0] {
            cache.taken = if slots == 1024 { 5_000 } else { 0 };
        }
        let mut now = 0;
        for burst in bursts {
            now += burst.after;
            let egress = if burst.watched { WAN } else { PortId(2) };
            let meta = Meta { wire_len: 0, ..Meta::of(1_000, DC, egress, QUEUE) };
            let kin = Kin { meta, tos: 0x6a };
            let (mut cars, mut packets, mut frames) = (cars(), Vec::new(), Vec::new());
            for (car, &(qp, opcode, port, ask, payload)) in cars.iter_mut().zip(&burst.packets) {
                let packet = Packet { qpn: 0x11 + qp, opcode: OPCODES[opcode], port: 49_000 + port, payload, ..DATA };
                let mut bytes = packet.frame().data().to_vec();
                bytes[50] = if ask { 0x80 } else { 0 };
                let frame = HeapFrame::new(&bytes);
                let parsed = parse(frame.data()).unwrap();
                let roce = parsed.roce.unwrap();
                *car = Car {
                    addresses: parsed.addresses_v4,
                    transport: u64::from(roce.dest_qp) << 32 | u64::from(roce.ack_psn),
                    len: u16::try_from(frame.data().len()).unwrap(),
                    src_port: roce.src_port,
                    traits: Traits::of(roce.opcode),
                    slot: FlowSlot::NONE,
                };
                let mut known = Known::NOTHING;
                known.dress(car, &kin);
                packets.push(known);
                frames.push(frame);
            }
            one.0.enqueued_train(&frames, &mut cars[..frames.len()], &kin, Nanos(now));
            other.0.enqueued_run(&frames, &mut packets, Nanos(now));
            for (car, packet) in cars.iter().zip(&packets) {
                prop_assert_eq!(car.slot, packet.meta.slot);
            }
            let records = |(_, reader): &mut (FlowCache, CacheReader)| {
                std::iter::from_fn(|| reader.pop()).map(|record| format!("{record:?}")).collect::<Vec<_>>()
            };
            prop_assert_eq!(records(&mut one), records(&mut other));
            if let Some((place, paired)) = burst.told
                && let Some(shared) = cars.get(place).and_then(|car| one.0.shared.slots.get(car.slot.0 as usize))
            {
                let slot = crate::sample::SlotRef { slot: cars[place].slot, generation: shared.generation() };
                one.1.tell(slot, Nanos(0), paired);
                other.1.tell(slot, Nanos(0), paired);
            }
        }
        let all = |(cache, _): &(FlowCache, CacheReader)| format!("{:?}", cache.shared);
        prop_assert_eq!(all(&one), all(&other));
    }
}

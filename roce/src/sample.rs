//! Record of one RoCEv2 packet with a correct ICRC, which a worker gives the control core.

use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::{Nanos, PortId, Priority};
use npcc_pipeline::wire::bth::{self, Bth, RoceClass, has_aeth};
use npcc_pipeline::wire::udp::Udp;
use zerocopy::FromBytes;

use crate::key::{FlowKey, Qpn};

/// Octets of the datagram extended header.
const DETH_LEN: usize = 8;

/// Flags of a BTH and of the IP header, as seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleFlags(u8);

impl SampleFlags {
    /// AckReq: the sender asked for an acknowledgement.
    pub const ACK_REQ: u8 = 1;
    /// BECN: backward congestion notification is set.
    pub const BECN: u8 = 2;
    /// CE: the packet was marked before it reached our queue.
    pub const CE: u8 = 4;

    /// Returns true if all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// Reference to a cache slot in one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRef {
    /// Index of the slot.
    pub slot: FlowSlot,
    /// Generation of the slot: it changes when the slot is given to another flow.
    pub generation: u32,
}

impl SlotRef {
    /// Reference to no slot.
    pub const NONE: SlotRef = SlotRef {
        slot: FlowSlot::NONE,
        generation: 0,
    };
}

/// Detailed sample of a packet.
#[derive(Debug, Clone, Copy)]
pub struct PacketSample {
    /// Addresses and destination queue pair.
    pub key: FlowKey,
    /// Time of enqueueing.
    pub time: Nanos,
    /// Slot in which the worker counts the flow.
    pub slot: SlotRef,
    /// Number of packets of this key in this queue so far, this one included (wraps at 2^32).
    pub packets: u32,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// Source queue pair (unreliable datagrams only).
    pub source_qp: Option<Qpn>,
    /// UDP source port.
    pub udp_port: u16,
    /// Bytes on the wire, overhead included.
    pub wire_len: u16,
    /// BTH opcode: transport and operation.
    pub opcode: u8,
    /// Class of the packet.
    pub class: RoceClass,
    /// Flags: AckReq, BECN, CE.
    pub flags: SampleFlags,
    /// First octet of the AETH, where there is one: ACK, RNR NAK or NAK, with credits or code.
    pub syndrome: Option<u8>,
    /// Ingress port.
    pub ingress: PortId,
    /// Egress port.
    pub egress: PortId,
    /// Priority of the egress queue.
    pub priority: Priority,
}

impl PacketSample {
    /// Returns true if AckReq is set.
    #[must_use]
    pub const fn asks_for_reply(&self) -> bool {
        self.flags.has(SampleFlags::ACK_REQ)
    }

    /// Makes a record of a sighting; `None` if the frame is cut short.
    #[must_use]
    pub fn of(
        sighting: &Sighting<'_>,
        key: FlowKey,
        slot: SlotRef,
        packets: u32,
    ) -> Option<PacketSample> {
        let frame = sighting.data;
        let (base, rest) =
            Bth::ref_from_prefix(frame.get(usize::from(sighting.roce.bth_off)..)?).ok()?;
        let (udp, _) =
            Udp::ref_from_prefix(frame.get(usize::from(sighting.parsed.l4_off)..)?).ok()?;
        let mut flags = 0;
        if base.ack_req() {
            flags |= SampleFlags::ACK_REQ;
        }
        if base.becn() {
            flags |= SampleFlags::BECN;
        }
        if sighting.parsed.ecn() == 3 {
            flags |= SampleFlags::CE;
        }
        let class = sighting.roce.class;
        let source_qp = match class {
            RoceClass::Datagram | RoceClass::Management => {
                let [.., a, b, c]: [u8; DETH_LEN] = *rest.first_chunk()?;
                Some(Qpn::new(bth::be24([a, b, c])))
            }
            _ => None,
        };
        Some(PacketSample {
            key,
            time: sighting.now,
            slot,
            packets,
            psn: base.psn(),
            source_qp,
            udp_port: udp.src_port.get(),
            wire_len: sighting.meta.wire_len(),
            opcode: base.opcode,
            class,
            flags: SampleFlags(flags),
            syndrome: if has_aeth(base.opcode) {
                rest.first().copied()
            } else {
                None
            },
            ingress: sighting.meta.group.ingress(),
            egress: sighting.meta.egress,
            priority: sighting.meta.priority,
        })
    }
}

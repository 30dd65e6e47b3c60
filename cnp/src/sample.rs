//! What a worker tells the control core about one RoCEv2 packet, whose ICRC is right.

use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::{Nanos, PortId, Priority};
use npcc_pipeline::wire::bth::{self, Bth, RoceClass, has_aeth};
use npcc_pipeline::wire::udp::Udp;
use zerocopy::FromBytes;

use crate::key::{FlowKey, Qpn};

/// Octets of the datagram extended header.
const DETH_LEN: usize = 8;

/// Bits of a BTH and of the IP header, as seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordFlags(u8);

impl RecordFlags {
    /// The sender asked for an acknowledgement.
    pub const ACK_REQ: u8 = 1;
    /// Backward congestion notification is set.
    pub const BECN: u8 = 2;
    /// Marked CE before it reached our queue.
    pub const CE: u8 = 4;

    /// Whether all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// A cache slot at one time of its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRef {
    /// Which slot.
    pub slot: FlowSlot,
    /// Whose: a slot that was given to another flow has another generation.
    pub generation: u32,
}

impl SlotRef {
    /// No slot.
    pub(crate) const NONE: SlotRef = SlotRef {
        slot: FlowSlot::NONE,
        generation: 0,
    };
}

/// A detailed sample.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Addresses and destination queue pair.
    pub key: FlowKey,
    /// When it was enqueued.
    pub time: Nanos,
    /// Where the worker counts the flow.
    pub slot: SlotRef,
    /// Packets of this key in this queue so far, this one included (wraps at 2^32).
    pub packets: u32,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// Source queue pair (unreliable datagrams only).
    pub source_qp: Option<Qpn>,
    /// UDP source port.
    pub udp_port: u16,
    /// Bytes on the wire, overhead included.
    pub wire_len: u16,
    /// Transport and operation.
    pub opcode: u8,
    /// What the packet is to NPCC.
    pub class: RoceClass,
    /// AckReq, BECN, CE.
    pub flags: RecordFlags,
    /// First octet of the AETH, where there is one: ACK, RNR NAK or NAK, with credits or code.
    pub syndrome: Option<u8>,
    /// Port it came in by.
    pub ingress: PortId,
    /// Port it leaves by.
    pub egress: PortId,
    /// Its queue.
    pub priority: Priority,
}

impl Record {
    /// Whether AckReq is set.
    #[must_use]
    pub const fn asks_for_reply(&self) -> bool {
        self.flags.has(RecordFlags::ACK_REQ)
    }

    /// Reads a sighting; `None` when the frame is cut short.
    #[must_use]
    pub fn of(
        sighting: &Sighting<'_>,
        key: FlowKey,
        slot: SlotRef,
        packets: u32,
    ) -> Option<Record> {
        let frame = sighting.data;
        let (base, rest) =
            Bth::ref_from_prefix(frame.get(usize::from(sighting.roce.bth_off)..)?).ok()?;
        let (udp, _) =
            Udp::ref_from_prefix(frame.get(usize::from(sighting.parsed.l4_off)..)?).ok()?;
        let mut flags = 0;
        if base.ack_req() {
            flags |= RecordFlags::ACK_REQ;
        }
        if base.becn() {
            flags |= RecordFlags::BECN;
        }
        if sighting.parsed.ecn() == 3 {
            flags |= RecordFlags::CE;
        }
        let class = sighting.roce.class;
        let source_qp = match class {
            RoceClass::Datagram | RoceClass::Management => {
                let [.., a, b, c]: [u8; DETH_LEN] = *rest.first_chunk()?;
                Some(Qpn::new(bth::be24([a, b, c])))
            }
            _ => None,
        };
        Some(Record {
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
            flags: RecordFlags(flags),
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

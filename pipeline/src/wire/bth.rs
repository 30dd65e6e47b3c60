//! InfiniBand base transport header and the extended headers NPCC reads (IBTA volume 1, chapter 9; Annex A17).

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bits::low8;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 12;
/// Length in bytes of the invariant CRC that ends every RoCEv2 packet.
pub const ICRC_LEN: usize = 4;
/// Opcode of a congestion notification packet (Annex A17.9.3).
pub const CNP: u8 = 0x81;
/// Opcode of FLUSH of RC, which a READ RESPONSE ONLY without payload answers.
const FLUSH: u8 = 0x1c;
/// Opcode of ATOMIC WRITE of RC, answered as FLUSH is.
const ATOMIC_WRITE: u8 = 0x1d;
/// The well-known QP of the connection manager.
pub const GSI_QPN: u32 = 1;

/// ```text
///  0        1              2      4      5        8      9
/// +--------+--------------+------+------+--------+------+--------+
/// | opcode | SE M Pad Ver | PKey | F B  | DestQP | A    | PSN    |
/// +--------+--------------+------+------+--------+------+--------+
/// ```
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Bth {
    /// Opcode: transport (3 bits) and operation (5 bits).
    pub opcode: u8,
    /// Solicited event, migration request, pad count (2 bits), header version (4 bits).
    pub flags: u8,
    /// Partition key.
    pub p_key: U16,
    /// FECN (bit 7), BECN (bit 6), reserved.
    pub congestion: u8,
    /// Destination queue pair.
    pub dest_qp: [u8; 3],
    /// Acknowledge request (bit 7), reserved.
    pub ack_req: u8,
    /// Packet sequence number.
    pub psn: [u8; 3],
}

impl Bth {
    /// Returns the destination queue pair number, 24 bits.
    #[must_use]
    pub const fn dest_qp(&self) -> u32 {
        be24(self.dest_qp)
    }

    /// Returns the packet sequence number, 24 bits.
    #[must_use]
    pub const fn psn(&self) -> u32 {
        be24(self.psn)
    }

    /// Returns the last word: AckReq in the highest bit, the packet sequence number in the low 24.
    #[must_use]
    pub const fn ack_psn(&self) -> u32 {
        let [a, b, c] = self.psn;
        u32::from_be_bytes([self.ack_req, a, b, c])
    }

    /// Returns true if BECN (backward congestion notification) is set.
    #[must_use]
    pub const fn becn(&self) -> bool {
        self.congestion & 0x40 != 0
    }

    /// Returns true if the sender requests an acknowledgement.
    #[must_use]
    pub const fn ack_req(&self) -> bool {
        self.ack_req & 0x80 != 0
    }
}

/// Returns three octets, most significant first, as a number.
#[must_use]
pub const fn be24(bytes: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}

/// Returns the low 24 bits as three octets, most significant first.
#[must_use]
pub const fn to_be24(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}

/// Class of a packet, by which NPCC treats it (IBTA 1.7, table 38).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RoceClass {
    /// Bulk data that a CNP can slow down: SEND and WRITE of RC and UC, ATOMIC WRITE, READ RESPONSE.
    Data,
    /// READ REQUEST of RC, which names the responder's QP.
    ReadRequest,
    /// ACK or NAK, with an AETH.
    Ack,
    /// Atomic request or acknowledgement, or FLUSH.
    Atomic,
    /// Unreliable datagram to the GSI QP: connection management.
    Management,
    /// Unreliable datagram to any other QP.
    Datagram,
    /// Congestion notification packet.
    Cnp,
    /// Packet of a transport that is not read (XRC, RD) or of an opcode that IBTA does not define (vendors', multipath transports such as
    /// MRC): forwarded and counted; its sender is never signalled.
    Unsupported,
}

impl RoceClass {
    /// Returns the class of a packet with this opcode and destination QP.
    #[inline]
    #[must_use]
    pub fn of(opcode: u8, dest_qp: u32) -> RoceClass {
        match CLASSES.get(usize::from(opcode)) {
            Some(RoceClass::Data) => RoceClass::Data,
            other => RoceClass::but_data(other.copied(), dest_qp),
        }
    }

    #[inline(never)]
    fn but_data(of_opcode: Option<RoceClass>, dest_qp: u32) -> RoceClass {
        match of_opcode {
            Some(RoceClass::Datagram) if dest_qp == GSI_QPN => RoceClass::Management,
            class => class.unwrap_or(RoceClass::Unsupported),
        }
    }

    /// Returns the class's bit in a set of classes.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << self as u8
    }

    const fn of_opcode(opcode: u8) -> RoceClass {
        match opcode {
            0x0d..=0x10 | 0x00..=0x0b | 0x16 | 0x17 | ATOMIC_WRITE | 0x20..=0x2b => RoceClass::Data,
            0x0c => RoceClass::ReadRequest,
            0x11 => RoceClass::Ack,
            0x12..=0x14 | FLUSH => RoceClass::Atomic,
            0x64 | 0x65 => RoceClass::Datagram,
            CNP => RoceClass::Cnp,
            _ => RoceClass::Unsupported,
        }
    }
}

/// Transport in the three highest bits of an opcode: reliable datagrams.
const RD: u8 = 2;
/// Transport of extended reliable connections, which have RC's operations.
const XRC: u8 = 5;
/// Bits of an opcode that name the operation; with the others 0, it is RC's.
const OPERATION: u8 = 0x1f;

/// Class of each opcode. A datagram is [`RoceClass::Datagram`]: only its QP shows that it is for the connection manager.
#[expect(clippy::indexing_slicing, reason = "when compiled")]
static CLASSES: [RoceClass; 256] = {
    let mut classes = [RoceClass::Unsupported; 256];
    let mut opcode = 0;
    while opcode < 256 {
        classes[opcode] = RoceClass::of_opcode(low8(opcode));
        opcode += 1;
    }
    classes
};

/// Properties of a RoCEv2 packet, as bits: its class, and others that follow from the opcode. No bit is set if it is not
/// RoCEv2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits(u16);

impl Traits {
    /// No traits: not a RoCEv2 packet, or nothing known.
    pub const NONE: Traits = Traits(0);
    /// Bit of an opcode for which [`is_request`] is true.
    pub const REQUEST: u16 = 1 << 8;
    /// Bit of an opcode of data or a datagram without AETH: the packet has payload, and acknowledges no earlier packet.
    pub const PLAIN: u16 = 1 << 9;
    /// Bit of an opcode followed by an AETH: the packet it answers has the same packet sequence number ([`has_aeth`]).
    pub const AETH: u16 = 1 << 10;
    /// Bit of a NAK or RNR NAK, set from the syndrome of the AETH; no opcode implies it.
    pub const NEGATIVE: u16 = 1 << 11;
    /// Bit of RoCEv2 over IPv6, whose addresses are not in its record.
    pub const V6: u16 = 1 << 12;
    /// Bit of every RoCEv2 packet.
    pub const ROCE: u16 = 1 << 13;
    /// Bit of an opcode of RD or XRC whose packets are no bulk data: those of RC with the same operation are not marked either.
    pub const NO_BULK: u16 = 1 << 14;
    /// All classes: at least one of these bits is set for every RoCEv2 packet.
    pub const ANY: u16 = 0xff;
    /// Bits of packets that this switch never marks CE: they are no bulk data, yet a NIC answers a marked one with a CNP.
    pub const UNMARKABLE: u16 =
        Traits::SHORT | Traits::NO_BULK | RoceClass::Management.bit() | RoceClass::Cnp.bit();
    /// Classes of RC whose packets are no bulk data.
    const SHORT: u16 =
        RoceClass::ReadRequest.bit() | RoceClass::Ack.bit() | RoceClass::Atomic.bit();

    /// Returns the traits of an opcode. Those of a datagram have [`RoceClass::Datagram`], even if its QP is the connection
    /// manager's.
    #[inline]
    #[must_use]
    pub fn of(opcode: u8) -> Traits {
        TRAITS
            .get(usize::from(opcode))
            .copied()
            .unwrap_or(Traits::NONE)
    }

    /// Returns all bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns true if any of `bits` is set.
    #[inline]
    #[must_use]
    pub const fn any(self, bits: u16) -> bool {
        self.0 & bits != 0
    }

    /// Returns the same traits with another class.
    #[inline]
    #[must_use]
    pub const fn with_class(self, class: RoceClass) -> Traits {
        Traits(self.0 & 0xff00 | class.bit())
    }

    /// Returns the same traits with `bits` added.
    #[inline]
    #[must_use]
    pub const fn with(self, bits: u16) -> Traits {
        Traits(self.0 | bits)
    }

    /// Returns the same traits, with [`Traits::V6`] added if `is_v6` and it is a RoCEv2 packet.
    #[inline]
    #[must_use]
    pub const fn with_v6_if(self, is_v6: bool) -> Traits {
        if is_v6 && self.any(Traits::ANY) {
            self.with(Traits::V6)
        } else {
            self
        }
    }

    /// Returns true if one of the classes in `classes` is set, and none of the other bits in `classes`.
    #[inline(always)]
    #[must_use]
    pub const fn one_class_of(self, classes: u16) -> bool {
        // A class is a bit among the low eight: from 1 to 128.
        (self.0 & classes).wrapping_sub(1) < Traits::ANY
    }

    /// Returns these traits if `known`, otherwise none, without a branch.
    #[inline]
    #[must_use]
    pub const fn only_if(self, known: bool) -> Traits {
        Traits(self.0 & (known as u16).wrapping_neg())
    }

    /// Returns true if it is an ACK whose syndrome is NAK or RNR NAK: bits 6 and 5 tell them from an ACK (IBTA 9.7.5.2.1).
    #[inline]
    #[must_use]
    pub const fn is_negative(self, syndrome: u8) -> bool {
        self.of_negative(0, syndrome) != 0
    }

    /// Returns those of `bits` that are set, and the ACK bit if the syndrome is NAK or RNR NAK: one number, so that the caller
    /// needs one branch where compilers would make two.
    #[inline]
    #[must_use]
    pub const fn of_negative(self, bits: u16, syndrome: u8) -> u16 {
        let negative = ((syndrome & 0b0110_0000 != 0) as u16).wrapping_neg();
        self.0 & (bits | RoceClass::Ack.bit() & negative)
    }
}

/// Traits of each opcode: see [`Traits::of`].
#[expect(clippy::indexing_slicing, reason = "when compiled")]
pub static TRAITS: [Traits; 256] = {
    let mut traits = [Traits::NONE; 256];
    let mut opcode = 0;
    while opcode < 256 {
        let of = low8(opcode);
        let mut bits = Traits::ROCE | RoceClass::of_opcode(of).bit();
        if is_request(of) {
            bits |= Traits::REQUEST;
        }
        if of >> 5 == RD || of >> 5 == XRC {
            let operation = RoceClass::of_opcode(of & OPERATION).bit();
            if operation & Traits::SHORT != 0 {
                bits |= Traits::NO_BULK;
            }
        }
        let carries = RoceClass::Data.bit() | RoceClass::Datagram.bit();
        if has_aeth(of) {
            bits |= Traits::AETH;
        } else if bits & carries != 0 {
            bits |= Traits::PLAIN;
        }
        traits[opcode] = Traits(bits);
        opcode += 1;
    }
    traits
};

/// Returns true if a packet of this opcode carries a sequence number of the requester's own choosing (IBTA table 38).
#[must_use]
pub const fn is_request(opcode: u8) -> bool {
    matches!(
        opcode,
        0x00..=0x0c | 0x13 | 0x14 | 0x16 | 0x17 | FLUSH | ATOMIC_WRITE
    )
}

/// Returns true if this RC opcode is followed by an AETH (IBTA table 38).
#[must_use]
pub const fn has_aeth(opcode: u8) -> bool {
    matches!(opcode, 0x0d | 0x0f..=0x12)
}

/// Returns true if this opcode is of UC, which has no acknowledgements.
#[must_use]
pub const fn is_uc(opcode: u8) -> bool {
    opcode >> 5 == 1
}

const _: () = assert!(size_of::<Bth>() == HEADER_LEN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_opcode_table() {
        for (opcode, class) in [
            (0x04, RoceClass::Data),
            (0x0a, RoceClass::Data),
            (0x0c, RoceClass::ReadRequest),
            (0x0e, RoceClass::Data),
            (0x11, RoceClass::Ack),
            (0x12, RoceClass::Atomic),
            (0x17, RoceClass::Data),
            (0x1c, RoceClass::Atomic),
            (0x1d, RoceClass::Data),
            (0x1e, RoceClass::Unsupported),
            (0x2a, RoceClass::Data),
            (0x81, RoceClass::Cnp),
            (0xa4, RoceClass::Unsupported),
            (0x18, RoceClass::Unsupported),
        ] {
            assert_eq!(RoceClass::of(opcode, 0x11), class, "opcode {opcode:#04x}");
        }
        assert_eq!(RoceClass::of(0x64, 1), RoceClass::Management);
        assert_eq!(RoceClass::of(0x64, 2), RoceClass::Datagram);
    }

    #[test]
    fn operations_of_xrc_and_rd_are_marked_as_those_of_rc_are() {
        let marked = |opcode| !Traits::of(opcode).any(Traits::UNMARKABLE);
        for operation in 0..0x20 {
            if RoceClass::of_opcode(operation) == RoceClass::Unsupported {
                continue;
            }
            for transport in [RD, XRC] {
                let opcode = transport << 5 | operation;
                assert_eq!(marked(opcode), marked(operation), "{opcode:#04x}");
                assert_eq!(RoceClass::of(opcode, 2), RoceClass::Unsupported);
                assert!(!is_request(opcode), "{opcode:#04x}");
            }
        }
        let short = [0x0c, 0x11, 0x12, 0x13, 0x14, 0x1c].map(marked);
        assert_eq!(short, [false; 6], "READ REQUEST, ACK, atomics, FLUSH");
        assert!(marked(0x1d) && marked(0x0a), "ATOMIC WRITE as WRITE");
    }

    /// Multipath transports and vendors use opcodes that IBTA leaves free.
    #[test]
    fn opcodes_that_ibta_does_not_define_are_counted_and_teach_nothing() {
        for opcode in (0x18..=0x1b)
            .chain(0x1e..=0x1f)
            .chain(0x2c..=0x63)
            .chain(0x66..=0x80)
            .chain(0x82..=0xff)
        {
            assert_eq!(
                RoceClass::of(opcode, 2),
                RoceClass::Unsupported,
                "{opcode:#04x}"
            );
            assert!(!is_request(opcode) && !has_aeth(opcode), "{opcode:#04x}");
            assert!(
                !Traits::of(opcode).any(Traits::PLAIN | Traits::AETH),
                "{opcode:#04x}"
            );
        }
    }

    #[test]
    fn twenty_four_bits_round_trip() {
        assert_eq!(be24(to_be24(0x00ab_cdef)), 0x00ab_cdef);
    }
}

//! The frame this switch is built for, read in one go: untagged IPv4 without options, unfragmented, UDP to port 4791.
//!
//! Law: whatever it accepts, the general parser accepts with the same answer (a property in the tests). It refuses
//! nothing: what does not fit, or looks wrong, is the general parser's to name.

use zerocopy::byteorder::native_endian;
use zerocopy::byteorder::network_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::{Kind, L3, Parsed, Roce};
use crate::bits::{high32, low32};
use crate::frame::LONGEST;
use crate::wire::bth::RoceClass;
use crate::wire::{ethernet, udp};

/// Ethernet, IPv4, UDP and BTH as one view: one length check, and every field at a constant offset.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Headers {
    macs: [u8; 12],
    ethertype: U16,
    version_ihl: u8,
    tos: u8,
    ip_len: U16,
    id: U16,
    fragment: U16,
    ttl: u8,
    protocol: u8,
    ip_checksum: U16,
    addresses: U64,
    src_port: U16,
    dst_port: U16,
    udp_len: U16,
    udp_checksum: U16,
    opcode: u8,
    bth_flags: u8,
    p_key: U16,
    /// FECN and BECN, destination QP, AckReq, packet sequence number.
    qp_and_psn: U64,
}

/// The IPv4 header as words in the machine's order: a one's complement sum does not mind.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Sum {
    macs_and_type: [u8; 14],
    first: native_endian::U64,
    second: native_endian::U64,
    dst: native_endian::U32,
}

const _: () = assert!(size_of::<Headers>() == 54);

/// Bytes of the IPv4 header.
const HEADER_LEN: u16 = 20;
/// Offset of the IP header.
pub(crate) const L3_OFF: u8 = 14;
/// Offset of the UDP header.
const L4_OFF: u16 = 34;
/// Offset of the BTH.
pub(crate) const BTH_OFF: u16 = 42;
/// The shortest IP packet with a BTH and an ICRC.
const MIN_IP: u16 = 44;
/// The shortest frame.
const SHORTEST: usize = MIN_IP as usize + ethernet::HEADER_LEN;
/// What of the last two words of the BTH is not reserved.
const QP_AND_PSN: u64 = 0x00ff_ffff_ffff_ffff;

/// The first eight octets of the IPv4 header: version 4 with 20 octets, and no fragment.
const SHAPE: u64 = u64::from_ne_bytes([0x45, 0, 0, 0, 0, 0, 0, 0]);
const SHAPE_MASK: u64 = u64::from_ne_bytes([0xff, 0, 0, 0, 0, 0, 0x3f, 0xff]);

/// What such a frame says; everything else about it is known by its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common {
    /// Source (high half) and destination address.
    pub(crate) addresses: u64,
    /// Destination queue pair (high half, 24 bits) and the BTH's last word.
    pub(crate) transport: u64,
    ip_len: u16,
    /// UDP source port.
    pub(crate) src_port: u16,
    /// DSCP and ECN.
    pub(crate) tos: u8,
    /// Transport and operation.
    pub(crate) opcode: u8,
}

/// Reads a frame of at most `longest` bytes; `None`: not this kind of frame.
#[inline(always)]
pub(crate) fn read(frame: &[u8], longest: usize) -> Option<Common> {
    if !(SHORTEST..=longest).contains(&frame.len()) {
        return None;
    }
    let (head, _) = Headers::ref_from_prefix(frame).ok()?;
    let (sum, _) = Sum::ref_from_prefix(frame).ok()?;
    let ip_len = head.ip_len.get();
    if head.ethertype.get() != ethernet::IPV4
        || sum.first.get() & SHAPE_MASK != SHAPE
        || head.protocol != udp::PROTOCOL
        || head.dst_port.get() != udp::ROCEV2_PORT
        || ip_len < MIN_IP
        || head.udp_len.get() != ip_len - HEADER_LEN
        || usize::from(ip_len) + ethernet::HEADER_LEN > frame.len()
        || !sums_to_ones(sum)
    {
        return None;
    }
    let addresses = head.addresses.get();
    if suspect(addresses >> 56) | suspect(addresses >> 24) {
        return None;
    }
    Some(Common {
        addresses,
        transport: head.qp_and_psn.get() & QP_AND_PSN,
        ip_len,
        src_port: head.src_port.get(),
        tos: head.tos,
        opcode: head.opcode,
    })
}

/// All that the general parser says of such a frame; `None`: not this kind of frame.
pub(crate) fn parse(frame: &[u8]) -> Option<Parsed> {
    let common = read(frame, LONGEST)?;
    Some(Parsed {
        kind: Kind::Routed(L3::V4),
        l3_off: L3_OFF,
        tci: None,
        tags: 0,
        tos: common.tos,
        ip_len: common.ip_len,
        protocol: udp::PROTOCOL,
        l4_off: L4_OFF,
        addresses_v4: common.addresses,
        roce: Some(Roce {
            bth_off: BTH_OFF,
            class: RoceClass::of(common.opcode, high32(common.transport)),
            opcode: common.opcode,
            dest_qp: high32(common.transport),
            ack_psn: low32(common.transport),
            src_port: common.src_port,
        }),
    })
}

/// Whether a header's one's complement sum is all ones (RFC 1071).
#[inline]
const fn sums_to_ones(sum: &Sum) -> bool {
    let (total, carry) = sum.first.get().overflowing_add(sum.second.get());
    let (total, carry) = (total + carry as u64).overflowing_add(sum.dst.get() as u64);
    // 2^64 = 2^16 = 1 modulo 2^16 - 1, and the sum of a header is never zero: it is all ones exactly when divisible.
    (total + carry as u64).is_multiple_of(0xffff)
}

/// First octets of addresses a router must not forward from or to (0, 127, 224 and above), and 169, of which link-local
/// is a part: the general parser looks closer.
#[expect(clippy::indexing_slicing, reason = "when compiled")]
static SUSPECT: [bool; 256] = {
    let mut set = [false; 256];
    let mut first = 224;
    while first < 256 {
        set[first] = true;
        first += 1;
    }
    set[0] = true;
    set[127] = true;
    set[169] = true;
    set
};

/// Of an address's first octet, the low octet of `word`.
#[inline]
fn suspect(word: u64) -> bool {
    let [first, ..] = word.to_le_bytes();
    SUSPECT
        .get(usize::from(first))
        .is_none_or(|suspect| *suspect)
}

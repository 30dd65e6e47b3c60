//! The frame this switch is built for, read in one go: untagged IPv4 without options, unfragmented, UDP to port 4791, and
//! nothing behind it.
//!
//! Law: whatever it accepts, the general parser accepts with the same answer (a property in the tests). It refuses
//! nothing: what does not fit, or looks wrong, is the general parser's to name.

use zerocopy::byteorder::native_endian;
use zerocopy::byteorder::network_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Kind, L3, Parsed, Roce};
use crate::bits::{high32, low16, low32};
use crate::frame::LONGEST;
use crate::wire::bth::RoceClass;
use crate::wire::{ethernet, udp};

/// Ethernet, IPv4, UDP and BTH as one view: one length check, and every field at a constant offset. Words that are compared
/// as a whole, or summed, are in the machine's order: a one's complement sum does not mind.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Headers {
    /// Destination, and the first octets of the source.
    pub(crate) macs: [u8; 8],
    /// The other octets of the source.
    pub(crate) more_macs: [u8; 4],
    ethertype: U16,
    /// Version, header length, TOS, total length, identification, fragment.
    shape: native_endian::U64,
    /// As they stand in the header.
    pub(crate) ttl_protocol_checksum: [u8; 4],
    addresses: native_endian::U64,
    src_port: U16,
    dst_port_and_len: native_endian::U32,
    udp_checksum: U16,
    opcode: u8,
    bth_flags: u8,
    p_key: U16,
    /// FECN and BECN, destination QP, AckReq, packet sequence number.
    qp_and_psn: U64,
    /// AETH's first octet, where there is one.
    pub(crate) syndrome: u8,
}

const _: () = assert!(size_of::<Headers>() == 55);

/// Offset of the IP header.
pub(crate) const L3_OFF: u8 = 14;
/// Offset of the UDP header.
const L4_OFF: u16 = 34;
/// Offset of the BTH.
const BTH_OFF: u16 = 42;
/// The shortest frame with a BTH and an ICRC that Ethernet does not pad.
pub(crate) const SHORTEST: usize = 60;
/// What counts of the first eight octets of the IPv4 header: version 4 with 20 octets, the total length, and no fragment.
const SHAPE: u64 = u64::from_ne_bytes([0xff, 0, 0xff, 0xff, 0, 0, 0x3f, 0xff]);
/// Their TOS.
const TOS: u64 = u64::from_ne_bytes([0, 0xff, 0, 0, 0, 0, 0, 0]);

/// What such a frame says; everything else about it is known by its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common {
    /// Source (high half) and destination address.
    pub(crate) addresses: u64,
    /// The last two words of the BTH.
    pub(crate) transport: u64,
    /// UDP source port.
    pub(crate) src_port: u16,
    /// DSCP and ECN.
    pub(crate) tos: u8,
    /// Transport and operation.
    pub(crate) opcode: u8,
}

/// How frames that are much alike are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alike {
    /// The first four octets of an IPv4 header of 20 octets, in host order, less Ethernet's header: plus a frame's length, they
    /// are that frame's.
    start: u32,
    /// First octets of addresses that are not suspect, where addresses have them.
    octets: u64,
}

/// The first octets of both addresses.
const OCTETS: u64 = 0xff00_0000_ff00_0000;

impl Alike {
    /// Of frames with this TOS.
    const fn of(tos: u8, octets: u64) -> Alike {
        Alike {
            start: (0x4500_0000 | (tos as u32) << 16) - L3_OFF as u32,
            octets,
        }
    }

    /// Of frames with the TOS of one that was read, most of them with addresses in the same blocks.
    pub(crate) const fn to(tos: u8, addresses: u64) -> Alike {
        Alike::of(tos, addresses & OCTETS)
    }
}

impl Common {
    /// Destination queue pair.
    #[inline]
    pub(crate) const fn dest_qp(&self) -> u32 {
        dest_qp_of(self.transport)
    }
}

/// The destination queue pair in the last two words of a BTH.
#[inline]
pub(crate) const fn dest_qp_of(transport: u64) -> u32 {
    high32(transport) & 0x00ff_ffff
}

impl Headers {
    /// The view of a frame of at least [`SHORTEST`] bytes.
    #[inline]
    pub(crate) fn of(frame: &mut [u8]) -> Option<&mut Headers> {
        Headers::mut_from_prefix(frame).ok().map(|(head, _)| head)
    }

    /// Reads a frame of `len` bytes, from [`SHORTEST`] to [`LONGEST`]; `None`: not this kind of frame.
    #[inline(always)]
    pub(crate) fn read(&self, len: usize) -> Option<Common> {
        // No address has these: the check is never spared.
        const ANY: Alike = Alike::of(0, u64::MAX);
        self.read_masked(len, SHAPE, &ANY)
    }

    /// The same of a frame with the TOS of these; `None` for any other.
    #[inline(always)]
    pub(crate) fn read_alike(&self, len: usize, alike: &Alike) -> Option<Common> {
        self.read_masked(len, SHAPE | TOS, alike)
    }

    #[inline(always)]
    fn read_masked(&self, len: usize, mask: u64, alike: &Alike) -> Option<Common> {
        // Lengths below another field: neither reaches it.
        let Ok(len) = u32::try_from(len) else {
            return None;
        };
        let [version, tos, len_high, len_low] = alike.start.wrapping_add(len).to_be_bytes();
        const UDP: u32 = ((udp::ROCEV2_PORT as u32) << 16) - L4_OFF as u32;
        let udp = UDP.wrapping_add(len).to_be_bytes();
        let shape = self.shape.get();
        let [_, protocol, ..] = self.ttl_protocol_checksum;
        if self.ethertype.get() != ethernet::IPV4
            || shape & mask != u64::from_ne_bytes([version, tos, len_high, len_low, 0, 0, 0, 0])
            || protocol != udp::PROTOCOL
            || self.dst_port_and_len.get() != u32::from_ne_bytes(udp)
            || !self.sums_to_ones()
        {
            return None;
        }
        let addresses = u64::from_be(self.addresses.get());
        if addresses & OCTETS != alike.octets
            && (suspect(addresses >> 56) | suspect(addresses >> 24))
        {
            return None;
        }
        let [_, tos, ..] = shape.to_ne_bytes();
        Some(Common {
            addresses,
            transport: self.qp_and_psn.get(),
            src_port: self.src_port.get(),
            tos,
            opcode: self.opcode,
        })
    }

    /// The first word of the frame as it came, whose low six octets are the destination's.
    #[inline]
    pub(crate) const fn first_word(&self) -> u64 {
        u64::from_le_bytes(self.macs)
    }

    /// Whether the IPv4 header's one's complement sum is all ones (RFC 1071).
    #[inline]
    const fn sums_to_ones(&self) -> bool {
        let (total, carry) = self.shape.get().overflowing_add(self.addresses.get());
        let rest = u32::from_ne_bytes(self.ttl_protocol_checksum) as u64;
        let (total, carry) = (total + carry as u64).overflowing_add(rest);
        // 2^64 = 2^16 = 1 modulo 2^16 - 1, and the sum of a header is never zero: it is all ones exactly when divisible.
        (total + carry as u64).is_multiple_of(0xffff)
    }
}

/// The destination of a frame if it is of this kind.
#[inline]
pub(crate) fn dst_of(frame: &[u8]) -> Option<u32> {
    let (head, _) = Headers::ref_from_prefix(frame).ok()?;
    Some(low32(u64::from_be(head.addresses.get())))
}

/// All that the general parser says of such a frame; `None`: not this kind of frame.
pub(crate) fn parse(frame: &[u8]) -> Option<Parsed> {
    if !(SHORTEST..=LONGEST).contains(&frame.len()) {
        return None;
    }
    let (head, _) = Headers::ref_from_prefix(frame).ok()?;
    let common = head.read(frame.len())?;
    Some(Parsed {
        kind: Kind::Routed(L3::V4),
        l3_off: L3_OFF,
        tci: None,
        tags: 0,
        tos: common.tos,
        ip_len: low16(frame.len() - ethernet::HEADER_LEN),
        protocol: udp::PROTOCOL,
        l4_off: L4_OFF,
        addresses_v4: common.addresses,
        roce: Some(Roce {
            bth_off: BTH_OFF,
            class: RoceClass::of(common.opcode, common.dest_qp()),
            opcode: common.opcode,
            dest_qp: common.dest_qp(),
            ack_psn: low32(common.transport),
            src_port: common.src_port,
        }),
    })
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

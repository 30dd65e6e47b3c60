//! Fast parser for the most common headers, read in one go: IPv4 without options or IPv6 without extension headers,
//! unfragmented, RoCEv2 or anything else, behind at most one VLAN tag.
//!
//! Law: whatever these views accept, the general parser accepts with the same answer (a property in `stage/receive_tests.rs`).
//! They refuse nothing: what does not fit, or looks wrong, is left for the general parser to name.

use zerocopy::byteorder::native_endian;
use zerocopy::byteorder::network_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::digest::AddressDigest;
use super::refused_v6;
use crate::bits::{high64, low16};
use crate::wire::bth::{HEADER_LEN, ICRC_LEN, Traits};
use crate::wire::{ipv4, ipv6, udp};

/// Length of the shortest frame these views are tried on: Ethernet pads shorter ones.
pub(crate) const SHORTEST: usize = 60;

/// UDP and BTH, or the first octets of any other protocol above IP. Words that are compared as a whole, or summed, are in
/// native byte order: a one's complement sum does not depend on it.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Upper {
    src_port: U16,
    dst_port_and_len: native_endian::U32,
    udp_checksum: U16,
    opcode: u8,
    bth_flags: u8,
    p_key: U16,
    /// FECN and BECN, destination QP, AckReq, packet sequence number.
    qp_and_psn: U64,
    /// First octet of the AETH, if there is one.
    syndrome: u8,
}

/// IPv4 header without options, and what follows it.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct V4 {
    /// Version, header length, TOS, total length, identification, fragment.
    shape: native_endian::U64,
    /// TTL, protocol and checksum, in header order.
    pub(crate) ttl_protocol_checksum: [u8; 4],
    addresses: native_endian::U64,
    upper: Upper,
}

/// IPv6 header without extension headers, and what follows it.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct V6 {
    /// Version, traffic class, flow label.
    first: [u8; 4],
    payload_len: U16,
    next_header: u8,
    pub(crate) hop_limit: u8,
    /// Source and destination.
    addresses: [u8; 32],
    upper: Upper,
}

const _: () = assert!(size_of::<V4>() == 41 && size_of::<V6>() == 61);

/// Mask of the first eight octets of an IPv4 header that are tested: version and header length, more-fragments and offset.
const SHAPE: u64 = u64::from_ne_bytes([0xff, 0, 0, 0, 0, 0, 0x3f, 0xff]);
/// Required value of these bits: version 4 with a header of 20 octets, and no fragment.
const PLAIN: u64 = u64::from_ne_bytes([0x45, 0, 0, 0, 0, 0, 0, 0]);
/// Mask of the total length in the first eight octets.
const LENGTH: u64 = u64::from_ne_bytes([0, 0, 0xff, 0xff, 0, 0, 0, 0]);

/// Bytes above IP of the shortest RoCEv2 packet.
const SHORTEST_ROCE: usize = udp::HEADER_LEN + HEADER_LEN + ICRC_LEN;

/// Fields of such a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common {
    /// Source (high half) and destination address of IPv4; digest of both of IPv6.
    pub(crate) addresses: u64,
    /// Words above the IP header that distinguish flows.
    pub(crate) upper: Words,
    /// Length of the IP packet in bytes.
    pub(crate) ip_len: u16,
    /// DSCP (high six bits) and ECN (low two).
    pub(crate) tos: u8,
}

/// Fields above IP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    /// Last two words of the BTH, if it is RoCEv2.
    pub(crate) transport: u64,
    /// UDP or TCP source port.
    pub(crate) src_port: u16,
    /// UDP or TCP destination port in the high half, and the next 16 bits.
    pub(crate) dst_port_and_len: u32,
    /// IP protocol.
    pub(crate) protocol: u8,
    /// First octet of the AETH, if there is one.
    pub(crate) syndrome: u8,
    /// Traits of the opcode, if it is RoCEv2.
    pub(crate) traits: Traits,
}

impl Words {
    /// Returns UDP or TCP source and destination port, in header order.
    #[inline]
    pub(crate) const fn ports(&self) -> u32 {
        (self.src_port as u32) << 16 | self.dst_port_and_len >> 16
    }
}

impl Upper {
    /// Reads it as the first of the `len` bytes above IP.
    #[inline(always)]
    fn read(&self, protocol: u8, len: usize) -> Words {
        const PORT: u32 = (udp::ROCEV2_PORT as u32) << 16;
        let dst_port_and_len = u32::from_be(self.dst_port_and_len.get());
        // If the UDP length disagrees with IP's, this is no RoCEv2 we can trust.
        let is_roce = (protocol == udp::PROTOCOL)
            & (dst_port_and_len == PORT | u32::from(low16(len)))
            & (len >= SHORTEST_ROCE);
        Words {
            transport: self.qp_and_psn.get(),
            src_port: self.src_port.get(),
            dst_port_and_len,
            protocol,
            syndrome: self.syndrome,
            traits: Traits::of(self.opcode).only_if(is_roce),
        }
    }
}

impl V4 {
    /// Reads a packet of at most `room` bytes, header included; `None` if it is not of this kind, or wrong.
    #[inline]
    pub(crate) fn read(&self, room: usize) -> Option<Common> {
        let [_, _, high, low, ..] = self.shape.get().to_ne_bytes();
        let len = usize::from(u16::from_be_bytes([high, low]));
        let fits = (ipv4::MIN_LEN..=room).contains(&len);
        fits.then(|| self.read_whole(len, &mut { NO_OCTETS }))?
    }

    /// Reads a packet of `len` bytes, from 20 to 65,535, header included; `None` if it is not of this kind, or wrong. `octets`
    /// are the first octets of the last addresses that were accepted: addresses with the same ones need no further check.
    #[inline(always)]
    pub(crate) fn read_whole(&self, len: usize, octets: &mut u64) -> Option<Common> {
        let shape = self.shape.get();
        let [_, tos, ..] = shape.to_ne_bytes();
        let [high, low] = low16(len).to_be_bytes();
        let expected = PLAIN | u64::from_ne_bytes([0, 0, high, low, 0, 0, 0, 0]);
        if shape & (SHAPE | LENGTH) != expected || !self.sums_to_ones() {
            return None;
        }
        let addresses = u64::from_be(self.addresses.get());
        if addresses & OCTETS != *octets {
            if suspect(addresses >> 56) | suspect(addresses >> 24) {
                return None;
            }
            *octets = addresses & OCTETS;
        }
        let [_, protocol, ..] = self.ttl_protocol_checksum;
        Some(Common {
            addresses,
            upper: self.upper.read(protocol, len - ipv4::MIN_LEN),
            ip_len: low16(len),
            tos,
        })
    }

    /// Returns the fields above IP of a packet that [was read](V4::read_whole).
    #[inline]
    pub(crate) fn words(&self) -> Words {
        let [_, protocol, ..] = self.ttl_protocol_checksum;
        let [_, _, high, low, ..] = self.shape.get().to_ne_bytes();
        let len = usize::from(u16::from_be_bytes([high, low]));
        self.upper.read(protocol, len.saturating_sub(ipv4::MIN_LEN))
    }

    /// Returns true if the header's one's complement sum is all ones (RFC 1071).
    #[inline]
    const fn sums_to_ones(&self) -> bool {
        let (total, carry) = self.shape.get().overflowing_add(self.addresses.get());
        let rest = u32::from_ne_bytes(self.ttl_protocol_checksum) as u64;
        let (total, carry) = (total + carry as u64).overflowing_add(rest);
        // 2^64 = 2^16 = 1 modulo 2^16 - 1, and the sum of a header is never zero: it is all ones exactly when divisible.
        (total + carry as u64).is_multiple_of(0xffff)
    }
}

impl V6 {
    /// Reads a packet of at most `room` bytes, header included; `None` if it is not of this kind, or wrong.
    #[inline]
    pub(crate) fn read(&self, room: usize, digest: &AddressDigest) -> Option<Common> {
        let len = ipv6::HEADER_LEN + usize::from(self.payload_len.get());
        let (src, dst) = self.halves();
        if len > room.min(usize::from(u16::MAX)) || refused_v6(src, dst).is_some() {
            return None;
        }
        self.fields(len, digest)
    }

    /// Reads a packet of `len` bytes, from 61 to 65,535, header included; `None` if it is not of this kind, or wrong, or has an
    /// address that needs a closer check.
    #[inline(always)]
    pub(crate) fn read_whole(&self, len: usize, digest: &AddressDigest) -> Option<Common> {
        let is_whole = usize::from(self.payload_len.get()) + ipv6::HEADER_LEN == len;
        let (src, dst) = self.halves();
        if !is_whole || is_special(src) || is_special(dst) {
            return None;
        }
        self.fields(len, digest)
    }

    /// Reads the fields of a packet of `len` bytes whose addresses are good; `None` if it is not of this kind.
    #[inline(always)]
    fn fields(&self, len: usize, digest: &AddressDigest) -> Option<Common> {
        let [version, traffic, ..] = self.first;
        // After any other next header there may be a chain.
        let ends = matches!(self.next_header, 6 | 17 | 58);
        if version >> 4 != 6 || !ends {
            return None;
        }
        Some(Common {
            addresses: digest.of(&self.addresses),
            upper: self.upper.read(self.next_header, len - ipv6::HEADER_LEN),
            ip_len: low16(len),
            tos: version << 4 | traffic >> 4,
        })
    }

    /// Returns the fields above IP of a packet that [was read](V6::read_whole).
    #[inline]
    pub(crate) fn words(&self) -> Words {
        self.upper
            .read(self.next_header, self.payload_len.get().into())
    }

    /// Returns source and destination.
    #[inline(always)]
    fn halves(&self) -> (&[u8; 16], &[u8; 16]) {
        let (halves, _) = self.addresses.as_chunks();
        match halves {
            [src, dst] => (src, dst),
            // There are 32 octets.
            _ => (&[0; 16], &[0; 16]),
        }
    }

    /// Returns the source address.
    #[inline]
    pub(crate) fn src(&self) -> u128 {
        u128::from_be_bytes(*self.halves().0)
    }

    /// Returns the destination address.
    #[inline]
    pub(crate) fn dst(&self) -> u128 {
        u128::from_be_bytes(*self.halves().1)
    }
}

/// Returns true if an IPv6 address needs a closer check: it begins with 64 zeros, or is fe80:: or above.
#[inline(always)]
fn is_special(address: &[u8; 16]) -> bool {
    let half = high64(u128::from_be_bytes(*address));
    half.wrapping_sub(1) >= (0xfe80 << 48) - 1
}

/// Initial value for `octets` of [`V4::read_whole`], which no address matches: the first packet is checked.
pub(crate) const NO_OCTETS: u64 = u64::MAX;
/// Mask of the first octets of both addresses.
const OCTETS: u64 = 0xff00_0000_ff00_0000;

/// Suspect first octets: addresses a router must not forward from or to (0, 127, 224 and above), and 169, which includes
/// link-local. The general parser looks closer.
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

/// Returns true if the low octet of `word`, the first octet of an address, is suspect.
#[inline]
fn suspect(word: u64) -> bool {
    let [first, ..] = word.to_le_bytes();
    SUSPECT
        .get(usize::from(first))
        .is_none_or(|suspect| *suspect)
}

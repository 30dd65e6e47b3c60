//! The bytes of a congestion notification packet (IBTA annex A17.9.3; facts 4.2).
//!
//! ```text
//!   Ethernet [VLAN] | IPv4 20 or IPv6 40 | UDP 8 | BTH 12 (opcode 0x81, BECN) | 16 zero octets | ICRC 4
//! ```
//! Everything but addresses, identification, port and queue pair is a template; the ICRC and the checksums are the
//! template's, computed when compiling, and what these fields add (`crate::crc_parts`).
//!
//! It goes from the flow's *receiver* to its sender: endpoints compare both addresses with the queue pair's.

use npcc_pipeline::units::{Mac, Priority};
use npcc_pipeline::wire::{bth, ethernet, ipv4, ipv6, udp};

use crate::crc_parts;
use crate::key::{FlowKey, Qpn};

/// Room for the longest CNP: Ethernet with a tag, IPv6, UDP, BTH, 16 zero octets, ICRC is 98.
pub const MAX_LEN: usize = 104;
/// UDP header and payload of every CNP.
const UDP_LEN: u16 = 40;

/// A finished frame, without FCS.
#[derive(Debug, Clone, Copy)]
pub struct CnpFrame {
    bytes: [u8; MAX_LEN],
    len: u8,
}

impl CnpFrame {
    /// The frame's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// A VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// VLAN id, 1..=4094.
    pub id: u16,
    /// Priority code point.
    pub pcp: Priority,
}

/// What does not change from CNP to CNP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CnpStyle {
    /// DSCP (high six bits) and ECN; NICs send 0xc2: CS6 and ECT(0).
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// UDP source port; NICs send 0.
    pub udp_source_port: u16,
}

impl CnpStyle {
    /// With this DSCP (0..=63) and ECT(0), as NICs mark theirs.
    #[must_use]
    pub const fn with_dscp(dscp: u8) -> CnpStyle {
        CnpStyle {
            tos: dscp << 2 | 2,
            ttl: 64,
            udp_source_port: 0,
        }
    }
}

impl Default for CnpStyle {
    fn default() -> CnpStyle {
        CnpStyle::with_dscp(48)
    }
}

/// One CNP to be built.
#[derive(Debug, Clone, Copy)]
pub struct CnpSpec {
    /// The flow of data to slow down, in its own direction: `src` is who will be told.
    pub flow: FlowKey,
    /// The queue pair at the flow's sender: the one thing no data packet carries.
    pub sender_qpn: Qpn,
    /// MAC address of the next hop toward the sender.
    pub dst_mac: Mac,
    /// Our MAC address on that port.
    pub src_mac: Mac,
    /// The tag, where the next hop is in a VLAN.
    pub vlan: Option<Vlan>,
    /// Identification (IPv4). NICs count; 0 with DF is allowed by RFC 6864.
    pub ip_id: u16,
    /// DSCP, TTL, UDP source port.
    pub style: CnpStyle,
}

/// UDP, BTH and zeros of a CNP, without port and queue pair: what follows the IP header up to the ICRC.
const TRANSPORT: [u8; 36] = {
    let mut bytes = [0; 36];
    let [port_high, port_low] = udp::ROCEV2_PORT.to_be_bytes();
    (bytes[2], bytes[3], bytes[5]) = (port_high, port_low, 40);
    (bytes[8], bytes[10], bytes[11], bytes[12]) = (bth::CNP, 0xff, 0xff, 0x40);
    bytes
};
/// IPv4 with total length 60 and DF.
const HEADER_V4: [u8; 20] = [
    0x45,
    0,
    0,
    60,
    0,
    0,
    0x40,
    0,
    0,
    udp::PROTOCOL,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
];
const HEADER_V6: [u8; 8] = [0x60, 0, 0, 0, 0, 40, udp::PROTOCOL, 0];

/// The CRC's register over a packet as the ICRC sees it: mutable fields are ones, addresses, ports and queue pair zero.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which refuses an index out of bounds"
)]
const REGISTER_V4: u32 = crc_parts::register(&{
    let mut bytes = [0xff; 64];
    let mut at = 0;
    while at < 56 {
        bytes[8 + at] = if at < 20 {
            HEADER_V4[at]
        } else {
            TRANSPORT[at - 20]
        };
        at += 1;
    }
    (bytes[9], bytes[16], bytes[18], bytes[19]) = (0xff, 0xff, 0xff, 0xff);
    (bytes[34], bytes[35], bytes[40]) = (0xff, 0xff, 0xff);
    bytes
});
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which refuses an index out of bounds"
)]
const REGISTER_V6: u32 = crc_parts::register(&{
    let mut bytes = [0xff; 84];
    let mut at = 0;
    while at < 76 {
        bytes[8 + at] = match at {
            0..8 => HEADER_V6[at],
            8..40 => 0,
            _ => TRANSPORT[at - 40],
        };
        at += 1;
    }
    (bytes[8], bytes[9], bytes[10], bytes[11], bytes[15]) = (0x6f, 0xff, 0xff, 0xff, 0xff);
    (bytes[54], bytes[55], bytes[60]) = (0xff, 0xff, 0xff);
    bytes
});
/// Octets from the end of the covered part: behind the queue pair, the source port, the addresses, the identification.
const BEHIND_QPN: usize = 20;
const BEHIND_PORT: usize = 34;
const BEHIND_ADDRESSES: usize = 36;
const BEHIND_ID: usize = 50;

impl CnpSpec {
    /// The frame.
    #[must_use]
    pub fn build(&self) -> CnpFrame {
        let mut frame = CnpFrame {
            bytes: [0; MAX_LEN],
            len: 0,
        };
        let at = self.put_link(&mut frame);
        let len = if self.flow.is_ipv6() {
            let packet = frame
                .bytes
                .get_mut(at..)
                .and_then(|rest| rest.first_chunk_mut());
            packet.map_or(0, |packet| self.put_v6(packet))
        } else {
            let packet = frame
                .bytes
                .get_mut(at..)
                .and_then(|rest| rest.first_chunk_mut());
            packet.map_or(0, |packet| self.put_v4(packet))
        };
        frame.len = u8::try_from(at + len).unwrap_or(0);
        frame
    }

    /// Ethernet and tag; returns where IP begins.
    fn put_link(&self, frame: &mut CnpFrame) -> usize {
        let kind = if self.flow.is_ipv6() {
            ethernet::IPV6
        } else {
            ethernet::IPV4
        }
        .to_be_bytes();
        let bytes = &mut frame.bytes;
        bytes[..6].copy_from_slice(&self.dst_mac.0);
        bytes[6..12].copy_from_slice(&self.src_mac.0);
        let Some(vlan) = self.vlan else {
            bytes[12..14].copy_from_slice(&kind);
            return 14;
        };
        bytes[12..14].copy_from_slice(&ethernet::VLAN.to_be_bytes());
        let tag = u16::from(vlan.pcp.get()) << 13 | vlan.id & 0x0fff;
        bytes[14..16].copy_from_slice(&tag.to_be_bytes());
        bytes[16..18].copy_from_slice(&kind);
        18
    }

    fn put_v4(&self, packet: &mut [u8; V4_LEN]) -> usize {
        let ([_, receiver], [_, sender]) = (self.flow.dst, self.flow.src);
        let addresses = (receiver << 32 | sender & u64::from(u32::MAX)).to_be_bytes();
        let id = self.ip_id.to_be_bytes();
        packet[..20].copy_from_slice(&HEADER_V4);
        packet[1] = self.style.tos;
        packet[4..6].copy_from_slice(&id);
        packet[8] = self.style.ttl;
        packet[12..20].copy_from_slice(&addresses);
        let sum = 0x4500
            + u64::from(self.style.tos)
            + 60
            + u64::from(self.ip_id)
            + 0x4000
            + (u64::from(self.style.ttl) << 8 | u64::from(udp::PROTOCOL))
            + parts(u64::from_be_bytes(addresses));
        packet[10..12].copy_from_slice(&(!fold(sum)).to_be_bytes());
        packet[20..56].copy_from_slice(&TRANSPORT);
        let register = REGISTER_V4
            ^ crc_parts::add::<8, BEHIND_ADDRESSES>(addresses)
            ^ crc_parts::add::<2, BEHIND_ID>(id);
        self.finish(&mut packet[20..], register);
        V4_LEN
    }

    fn put_v6(&self, packet: &mut [u8; V6_LEN]) -> usize {
        let [a, b] = self.flow.dst;
        let [c, d] = self.flow.src;
        packet[..8].copy_from_slice(&HEADER_V6);
        packet[0] |= self.style.tos >> 4;
        packet[1] = self.style.tos << 4;
        packet[7] = self.style.ttl;
        let mut addresses = [0; 32];
        for (place, word) in addresses.chunks_exact_mut(8).zip([a, b, c, d]) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        packet[8..40].copy_from_slice(&addresses);
        packet[40..76].copy_from_slice(&TRANSPORT);
        let register = REGISTER_V6 ^ crc_parts::add::<32, BEHIND_ADDRESSES>(addresses);
        let transport = &mut packet[40..];
        let crc = self.finish(transport, register);
        let [_, qpn_high, qpn_low, _] = (self.sender_qpn.get() << 8).to_be_bytes();
        let [qpn_top, ..] = (self.sender_qpn.get() << 8).to_be_bytes();
        let sum = parts(a)
            + parts(b)
            + parts(c)
            + parts(d)
            + TRANSPORT_SUM
            + u64::from(self.style.udp_source_port)
            + u64::from(qpn_top)
            + u64::from(u16::from_be_bytes([qpn_high, qpn_low]))
            + u64::from(crc >> 16)
            + u64::from(crc & 0xffff);
        let sum = match !fold(sum) {
            0 => 0xffff, // RFC 8200 section 8.1: zero means none, which IPv6 forbids.
            sum => sum,
        };
        if let Some(place) = transport.get_mut(6..8) {
            place.copy_from_slice(&sum.to_be_bytes());
        }
        V6_LEN
    }

    /// Source port, queue pair and ICRC; returns the ICRC as it stands on the wire.
    #[inline]
    fn finish(&self, transport: &mut [u8], register: u32) -> u32 {
        let Some(transport) = transport.first_chunk_mut::<40>() else {
            return 0;
        };
        let port = self.style.udp_source_port.to_be_bytes();
        let qpn = bth::to_be24(self.sender_qpn.get());
        transport[..2].copy_from_slice(&port);
        transport[13..16].copy_from_slice(&qpn);
        let register = register
            ^ crc_parts::add::<3, BEHIND_QPN>(qpn)
            ^ crc_parts::add::<2, BEHIND_PORT>(port);
        let crc = (!register).to_le_bytes();
        transport[36..40].copy_from_slice(&crc);
        u32::from_be_bytes(crc)
    }
}

const V4_LEN: usize = ipv4::MIN_LEN + UDP_LEN as usize;
const V6_LEN: usize = ipv6::HEADER_LEN + UDP_LEN as usize;
/// Ones' complement sum of UDP over IPv6 without addresses, source port, queue pair and ICRC: the pseudo-header's length
/// and protocol, then the template's words.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which refuses an index out of bounds"
)]
const TRANSPORT_SUM: u64 = {
    let mut sum = UDP_LEN as u64 + udp::PROTOCOL as u64;
    let mut at = 0;
    while at < TRANSPORT.len() {
        sum += (TRANSPORT[at] as u64) << 8 | TRANSPORT[at + 1] as u64;
        at += 2;
    }
    sum
};

/// The sum of a word's four parts of 16 bits.
const fn parts(word: u64) -> u64 {
    (word >> 48) + (word >> 32 & 0xffff) + (word >> 16 & 0xffff) + (word & 0xffff)
}

/// A ones' complement sum in 16 bits.
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
#[path = "build_tests.rs"]
pub(crate) mod tests;

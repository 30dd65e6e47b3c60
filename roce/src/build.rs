//! Builder of a congestion notification packet's bytes (IBTA annex A17.9.3).
//!
//! ```text
//!   Ethernet [VLAN] | IPv4 20 or IPv6 40 | UDP 8 | BTH 12 (opcode 0x81, BECN) | 16 zero octets | ICRC 4
//! ```
//! The packet goes from the flow's *receiver* to its sender: endpoints compare both addresses with the queue pair's.

use npcc_pipeline::parse::L3;
use npcc_pipeline::units::{Mac, Priority};
use npcc_pipeline::wire::{bth, checksum, ethernet, ipv4, ipv6, udp};

use crate::key::{FlowKey, Qpn};
use npcc_pipeline::icrc::icrc;

/// DSCP of CNPs by default.
pub const CNP_DSCP: u8 = 48;

/// Size of a buffer for the longest CNP: Ethernet with a tag, IPv6, UDP, BTH, 16 zero octets, ICRC is 98.
pub const MAX_LEN: usize = 104;
/// Length of the UDP header and payload of every CNP.
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

/// Fields of the CNP that are the same for every flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CnpHeader {
    /// DSCP (high six bits) and ECN; NICs send 0xc2: CS6 and ECT(0).
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// UDP source port; NICs send 0.
    pub udp_source_port: u16,
}

impl CnpHeader {
    /// Header settings with this DSCP (0..=63) and ECT(0), as NICs mark their CNPs.
    #[must_use]
    pub const fn with_dscp(dscp: u8) -> CnpHeader {
        CnpHeader {
            tos: dscp << 2 | 2,
            ttl: 64,
            udp_source_port: 0,
        }
    }
}

impl Default for CnpHeader {
    fn default() -> CnpHeader {
        CnpHeader::with_dscp(CNP_DSCP)
    }
}

/// Description of one CNP to build.
#[derive(Debug, Clone, Copy)]
pub struct CnpSpec {
    /// The data flow to slow down, in its own direction: `src` is the host that is signalled.
    pub flow: FlowKey,
    /// Queue pair number at the flow's sender: the one field that no data packet carries.
    pub sender_qpn: Qpn,
    /// MAC address of the next hop toward the sender.
    pub dst_mac: Mac,
    /// Our MAC address on that port.
    pub src_mac: Mac,
    /// VLAN tag, if the next hop is in a VLAN.
    pub vlan: Option<Vlan>,
    /// Identification (IPv4). NICs count; 0 with DF is allowed by RFC 6864.
    pub ip_id: u16,
    /// DSCP, TTL, UDP source port.
    pub header: CnpHeader,
}

const V4_LEN: usize = ipv4::MIN_LEN + UDP_LEN as usize;
const V6_LEN: usize = ipv6::HEADER_LEN + UDP_LEN as usize;

impl CnpSpec {
    /// Builds the frame.
    #[must_use]
    pub fn build(&self) -> CnpFrame {
        let mut frame = CnpFrame {
            bytes: [0; MAX_LEN],
            len: 0,
        };
        let at = self.put_link(&mut frame);
        let rest = frame.bytes.get_mut(at..).unwrap_or_default();
        let len = if self.flow.is_ipv6() {
            rest.first_chunk_mut().map_or(0, |it| self.put_v6(it))
        } else {
            rest.first_chunk_mut().map_or(0, |it| self.put_v4(it))
        };
        frame.len = u8::try_from(at + len).unwrap_or(0);
        frame
    }

    /// Writes the Ethernet header and the tag; returns the offset of the IP header.
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
        let tag = u16::from(vlan.pcp.get()) << 13 | vlan.id;
        bytes[14..16].copy_from_slice(&tag.to_be_bytes());
        bytes[16..18].copy_from_slice(&kind);
        18
    }

    fn put_v4(&self, packet: &mut [u8; V4_LEN]) -> usize {
        let ([_, receiver], [_, sender]) = (self.flow.dst, self.flow.src);
        let addresses = receiver << 32 | sender & u64::from(u32::MAX);
        packet[..10].copy_from_slice(&[
            0x45,
            self.header.tos,
            0,
            60,
            0,
            0,
            0x40,
            0,
            self.header.ttl,
            udp::PROTOCOL,
        ]);
        packet[4..6].copy_from_slice(&self.ip_id.to_be_bytes());
        packet[12..20].copy_from_slice(&addresses.to_be_bytes());
        let sum = !checksum::sum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        self.put_transport(&mut packet[20..]);
        finish(L3::V4, packet);
        V4_LEN
    }

    fn put_v6(&self, packet: &mut [u8; V6_LEN]) -> usize {
        let tos = self.header.tos;
        packet[..8].copy_from_slice(&[
            0x60 | tos >> 4,
            tos << 4,
            0,
            0,
            0,
            40,
            udp::PROTOCOL,
            self.header.ttl,
        ]);
        let ([a, b], [c, d]) = (self.flow.dst, self.flow.src);
        for (place, word) in packet[8..40].chunks_exact_mut(8).zip([a, b, c, d]) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        self.put_transport(&mut packet[40..]);
        finish(L3::V6, packet);
        // The checksum covers the ICRC, and of the pseudo-header the addresses, the length and the protocol.
        let pseudo = UDP_LEN + u16::from(udp::PROTOCOL);
        let sum = match !checksum::add(pseudo, checksum::sum(&packet[8..])) {
            0 => 0xffff, // RFC 8200 section 8.1: zero means none, which IPv6 forbids.
            sum => sum,
        };
        packet[46..48].copy_from_slice(&sum.to_be_bytes());
        V6_LEN
    }

    /// Writes UDP and BTH without the checksum; the 16 octets behind them stay zero.
    fn put_transport(&self, bytes: &mut [u8]) {
        let Some(bytes) = bytes.first_chunk_mut::<{ UDP_LEN as usize }>() else {
            return;
        };
        bytes[..2].copy_from_slice(&self.header.udp_source_port.to_be_bytes());
        bytes[2..4].copy_from_slice(&udp::ROCEV2_PORT.to_be_bytes());
        bytes[4..6].copy_from_slice(&UDP_LEN.to_be_bytes());
        bytes[8] = bth::CNP;
        // The default partition key, and BECN.
        bytes[10..13].copy_from_slice(&[0xff, 0xff, 0x40]);
        bytes[13..16].copy_from_slice(&bth::to_be24(self.sender_qpn.get()));
    }
}

/// Writes the ICRC behind a packet.
fn finish(family: L3, packet: &mut [u8]) {
    let l4_off = match family {
        L3::V4 => ipv4::MIN_LEN,
        L3::V6 => ipv6::HEADER_LEN,
    };
    if let Some((covered, place)) = packet.split_last_chunk_mut::<{ bth::ICRC_LEN }>() {
        *place = icrc(family, l4_off, covered).unwrap_or_default();
    }
}

#[cfg(test)]
#[path = "build_tests.rs"]
pub(crate) mod tests;

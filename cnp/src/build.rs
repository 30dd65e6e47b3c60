//! The bytes of a congestion notification packet (IBTA annex A17.9.3; facts 4.2).
//!
//! ```text
//!   Ethernet [VLAN] | IPv4 20 or IPv6 40 | UDP 8 | BTH 12 (opcode 0x81, BECN) | 16 zero octets | ICRC 4
//! ```
//! It goes from the flow's *receiver* to its sender: endpoints compare both addresses with the queue pair's.

use npcc_pipeline::parse::L3;
use npcc_pipeline::units::{Mac, Priority};
use npcc_pipeline::wire::{bth, checksum, ethernet, ipv4, ipv6, udp};

use crate::icrc::icrc;
use crate::key::{FlowKey, Qpn};

/// Room for the longest CNP: Ethernet with a tag, IPv6, UDP, BTH, 16 zero octets, ICRC is 98.
pub const MAX_LEN: usize = 104;
/// UDP header and payload of every CNP.
const UDP_LEN: u16 = 40;
const ZEROS: usize = 16;

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

impl CnpSpec {
    /// The frame.
    #[must_use]
    pub fn build(&self) -> CnpFrame {
        let mut out = Writer {
            bytes: [0; MAX_LEN],
            at: 0,
        };
        out.put(&self.dst_mac.0);
        out.put(&self.src_mac.0);
        if let Some(vlan) = self.vlan {
            out.put(&ethernet::VLAN.to_be_bytes());
            out.put(&(u16::from(vlan.pcp.get()) << 13 | vlan.id & 0x0fff).to_be_bytes());
        }
        let [_, receiver] = self.flow.dst;
        let [_, sender] = self.flow.src;
        if self.flow.is_ipv6() {
            out.put(&ethernet::IPV6.to_be_bytes());
            let start = out.at;
            self.put_v6(&mut out);
            self.finish(&mut out, L3::V6, start);
            let sum = udp_sum(out.bytes.get(start + 8..out.at).unwrap_or_default());
            out.patch(start + ipv6::HEADER_LEN + 6, &sum.to_be_bytes());
        } else {
            out.put(&ethernet::IPV4.to_be_bytes());
            let start = out.at;
            self.put_v4(&mut out, receiver, sender);
            self.finish(&mut out, L3::V4, start);
        }
        CnpFrame {
            bytes: out.bytes,
            len: u8::try_from(out.at).unwrap_or(0),
        }
    }

    fn put_v4(&self, out: &mut Writer, receiver: u64, sender: u64) {
        let [id_high, id_low] = self.ip_id.to_be_bytes();
        let [.., a, b, c, d] = receiver.to_be_bytes();
        let [.., e, f, g, h] = sender.to_be_bytes();
        let mut header = [
            0x45,
            self.style.tos,
            0,
            60,
            id_high,
            id_low,
            0x40,
            0, // total length 60, DF
            self.style.ttl,
            udp::PROTOCOL,
            0,
            0,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
        ];
        let sum = !checksum::sum(&header);
        let [.., high, low, _, _, _, _, _, _, _, _] = &mut header;
        [*high, *low] = sum.to_be_bytes();
        out.put(&header);
    }

    fn put_v6(&self, out: &mut Writer) {
        out.put(&(6 << 28 | u32::from(self.style.tos) << 20).to_be_bytes());
        out.put(&UDP_LEN.to_be_bytes());
        out.put(&[udp::PROTOCOL, self.style.ttl]);
        for word in self.flow.dst.into_iter().chain(self.flow.src) {
            out.put(&word.to_be_bytes());
        }
    }

    /// UDP, BTH, zeros and ICRC of the packet that began at `start`.
    fn finish(&self, out: &mut Writer, family: L3, start: usize) {
        let l4_off = out.at - start;
        out.put(&self.style.udp_source_port.to_be_bytes());
        out.put(&udp::ROCEV2_PORT.to_be_bytes());
        out.put(&UDP_LEN.to_be_bytes());
        out.put(&[0, 0]);
        let [a, b, c] = bth::to_be24(self.sender_qpn.get());
        out.put(&[bth::CNP, 0, 0xff, 0xff, 0x40, a, b, c, 0, 0, 0, 0]);
        out.put(&[0; ZEROS]);
        let covered = out.bytes.get(start..out.at).unwrap_or_default();
        let crc = icrc(family, l4_off, covered).unwrap_or_default();
        out.put(&crc);
    }
}

/// UDP checksum over IPv6: `bytes` are both addresses, the UDP header with checksum 0, and the payload.
fn udp_sum(bytes: &[u8]) -> u16 {
    let pseudo = checksum::add(UDP_LEN, u16::from(udp::PROTOCOL));
    match !checksum::add(checksum::sum(bytes), pseudo) {
        0 => 0xffff, // RFC 8200 section 8.1: zero means none, which IPv6 forbids.
        sum => sum,
    }
}

struct Writer {
    bytes: [u8; MAX_LEN],
    at: usize,
}

impl Writer {
    #[inline]
    fn put(&mut self, field: &[u8]) {
        self.patch(self.at, field);
        self.at += field.len();
    }

    #[inline]
    fn patch(&mut self, at: usize, field: &[u8]) {
        if let Some(room) = self.bytes.get_mut(at..at + field.len()) {
            room.copy_from_slice(field);
        }
    }
}

const _: () = assert!(ipv4::MIN_LEN + UDP_LEN as usize == 60);

#[cfg(test)]
#[path = "build_tests.rs"]
pub(crate) mod tests;

//! Builder of frames from their fields: for tests, benches and traffic generators, not for the packet path.

use std::net::IpAddr;

use crate::icrc;
use crate::units::Mac;
use crate::wire::{bth, checksum, ethernet, ipv4, ipv6, udp};

/// Description of a UDP frame; RoCEv2 if it has a [`Craft::bth`].
#[derive(Debug, Clone)]
pub struct Craft {
    /// Destination MAC.
    pub dst_mac: Mac,
    /// Source MAC.
    pub src_mac: Mac,
    /// VLAN tags, outermost first.
    pub tags: Vec<u16>,
    /// Source address; its family decides IPv4 or IPv6.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// DSCP and ECN.
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// UDP source port.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// Base transport header.
    pub bth: Option<BthFields>,
    /// Payload after the BTH (or UDP); the right ICRC follows it if there is a BTH.
    pub payload: Vec<u8>,
}

/// BTH fields that a test varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BthFields {
    /// Opcode.
    pub opcode: u8,
    /// Destination QP.
    pub dest_qp: u32,
    /// Packet sequence number.
    pub psn: u32,
    /// Acknowledge request.
    pub ack_req: bool,
    /// BECN.
    pub becn: bool,
}

impl Craft {
    /// Returns the description of a RoCEv2 packet with `payload` bytes of data.
    #[must_use]
    pub fn roce(src: IpAddr, dst: IpAddr, opcode: u8, dest_qp: u32, payload: usize) -> Craft {
        Craft {
            dst_mac: Mac([2, 0, 0, 0, 1, 1]),
            src_mac: Mac([2, 0, 0, 0, 1, 3]),
            tags: Vec::new(),
            src,
            dst,
            tos: 0x6a, // DSCP 26, ECT(0)
            ttl: 64,
            src_port: 49_560,
            dst_port: udp::ROCEV2_PORT,
            bth: Some(BthFields {
                opcode,
                dest_qp,
                psn: 0,
                ack_req: false,
                becn: false,
            }),
            payload: vec![0; payload],
        }
    }

    /// Builds the frame.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.payload.len());
        out.extend(self.dst_mac.0);
        out.extend(self.src_mac.0);
        for (index, tci) in self.tags.iter().enumerate() {
            let outer_of_two = index == 0 && self.tags.len() > 1;
            out.extend(
                if outer_of_two {
                    ethernet::QINQ
                } else {
                    ethernet::VLAN
                }
                .to_be_bytes(),
            );
            out.extend(tci.to_be_bytes());
        }
        let body = self.udp();
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                out.extend(ethernet::IPV4.to_be_bytes());
                let total = u16::try_from(ipv4::MIN_LEN + body.len())
                    .unwrap_or(u16::MAX)
                    .to_be_bytes();
                let mut header = [
                    0x45,
                    self.tos,
                    total[0],
                    total[1],
                    0,
                    0,
                    0x40,
                    0,
                    self.ttl,
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
                header[12..16].copy_from_slice(&src.octets());
                header[16..20].copy_from_slice(&dst.octets());
                let check = !checksum::sum(&header);
                header[10..12].copy_from_slice(&check.to_be_bytes());
                out.extend(header);
            }
            (src, dst) => {
                out.extend(ethernet::IPV6.to_be_bytes());
                out.extend((6u32 << 28 | u32::from(self.tos) << 20).to_be_bytes());
                out.extend(u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
                out.extend([udp::PROTOCOL, self.ttl]);
                out.extend(to_v6(src));
                out.extend(to_v6(dst));
                debug_assert_eq!(out.len() % 2, ipv6::HEADER_LEN % 2);
            }
        }
        out.extend(body);
        if self.bth.is_some() {
            icrc::seal(&mut out);
        }
        out
    }

    fn udp(&self) -> Vec<u8> {
        let mut body = Vec::new();
        if let Some(fields) = self.bth {
            body.extend([
                fields.opcode,
                0x40,
                0xff,
                0xff,
                if fields.becn { 0x40 } else { 0 },
            ]);
            body.extend(bth::to_be24(fields.dest_qp));
            body.push(if fields.ack_req { 0x80 } else { 0 });
            body.extend(bth::to_be24(fields.psn));
        }
        body.extend(&self.payload);
        if self.bth.is_some() {
            body.extend([0; bth::ICRC_LEN]);
        }
        let len = u16::try_from(udp::HEADER_LEN + body.len()).unwrap_or(u16::MAX);
        let mut out = Vec::with_capacity(usize::from(len));
        out.extend(self.src_port.to_be_bytes());
        out.extend(self.dst_port.to_be_bytes());
        out.extend(len.to_be_bytes());
        out.extend([0, 0]);
        out.extend(body);
        out
    }
}

fn to_v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

//! Wire format of model hosts: builds the bytes they send, and reads what comes in with the switch's own parser, checking the CNP's ICRC.
//!
//! Data frames carry a zero ICRC: no device on the path reads it, and a real one would cost more than all the rest.

use std::net::{IpAddr, Ipv4Addr};

use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::icrc;
use npcc_pipeline::parse::{Kind, L3, parse};
use npcc_pipeline::units::{Mac, Nanos, Priority};
use npcc_pipeline::wire::bth::{self, Bth, RoceClass};
use npcc_pipeline::wire::{checksum, ethernet, udp};
use npcc_roce::build::{CnpHeader, CnpSpec};
use npcc_roce::key::{FlowKey, Qpn};
use zerocopy::FromBytes;

use crate::frame::SimFrame;
use crate::num::small;

/// A priority of data and its DSCP.
#[derive(Debug, Clone, Copy)]
pub struct DataClass {
    /// Priority: number of the queue and of the PFC class.
    pub priority: u8,
    /// Codepoint of its frames.
    pub dscp: u8,
}

/// Priorities of data, all of them lossless where pauses are on.
pub const DATA: [DataClass; 2] = [
    DataClass {
        priority: 3,
        dscp: 26,
    },
    DataClass {
        priority: 4,
        dscp: 34,
    },
];

/// Returns the TOS byte of data of this priority: ECT(0), or Not-ECT.
#[must_use]
pub fn data_tos(priority: Priority, ect: bool) -> u8 {
    let is_it = |class: &&DataClass| usize::from(class.priority) == priority.index();
    let dscp = DATA.iter().find(is_it).map_or(0, |class| class.dscp);
    dscp << 2 | if ect { 2 } else { 0 }
}
/// TOS byte of acknowledgements and CNPs, DSCP 48 and ECT(0): out of the data's way.
pub const CONTROL_TOS: u8 = npcc_cnp::defaults::CNP_DSCP << 2 | 2;
/// Bytes of the headers before the payload of a middle packet, and the ICRC after it.
pub const OVERHEAD: usize = 14 + 20 + 8 + 12 + 4;

/// BTH opcodes used (IBTA table 38).
pub mod opcode {
    /// RDMA WRITE first, middle, last, only.
    pub const WRITE: [u8; 4] = [0x06, 0x07, 0x08, 0x0a];
    /// RDMA READ response first, middle, last, only.
    pub const RESPONSE: [u8; 4] = [0x0d, 0x0e, 0x0f, 0x10];
    /// RDMA READ request.
    pub const READ: u8 = 0x0c;
    /// ACK or NAK.
    pub const ACK: u8 = 0x11;
}

/// Addressing of packets in one direction of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Direction {
    /// Own MAC address.
    pub src_mac: Mac,
    /// MAC address of the first switch's port.
    pub dst_mac: Mac,
    /// Own IP address.
    pub src: Ipv4Addr,
    /// IP address of the other host.
    pub dst: Ipv4Addr,
    /// UDP source port.
    pub port: u16,
    /// Queue pair of the other host.
    pub dest_qp: Qpn,
}

/// Builds a RoCEv2 packet of `payload` bytes after the extended header `extended`.
#[must_use]
pub fn packet(
    to: &Direction,
    tos: u8,
    opcode: u8,
    psn: u64,
    ack: bool,
    extended: &[u8],
    payload: usize,
) -> SimFrame {
    let len = OVERHEAD + extended.len() + payload;
    let mut frame = SimFrame::of_len(len);
    let bytes = frame.data_mut();
    let ip_len = u16::try_from(len - 14).unwrap_or(u16::MAX).to_be_bytes();
    let udp_len = u16::try_from(len - 34).unwrap_or(u16::MAX).to_be_bytes();
    bytes[..6].copy_from_slice(&to.dst_mac.0);
    bytes[6..12].copy_from_slice(&to.src_mac.0);
    bytes[12..14].copy_from_slice(&ethernet::IPV4.to_be_bytes());
    let ip = &mut bytes[14..34];
    ip[..12].copy_from_slice(&[0x45, tos, ip_len[0], ip_len[1], 0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip[12..16].copy_from_slice(&to.src.octets());
    ip[16..20].copy_from_slice(&to.dst.octets());
    let sum = !checksum::sum(ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes[34..36].copy_from_slice(&to.port.to_be_bytes());
    bytes[36..38].copy_from_slice(&udp::ROCEV2_PORT.to_be_bytes());
    bytes[38..42].copy_from_slice(&[udp_len[0], udp_len[1], 0, 0]);
    let [a, b, c] = bth::to_be24(to.dest_qp.get());
    let [d, e, f] = bth::to_be24(small(psn & 0xff_ffff));
    let ack = if ack { 0x80 } else { 0 };
    bytes[42..54].copy_from_slice(&[opcode, 0x40, 0xff, 0xff, 0, a, b, c, ack, d, e, f]);
    bytes[54..54 + extended.len()].copy_from_slice(extended);
    seal(bytes);
    frame
}

/// Writes the ICRC of a frame of plain IPv4.
fn seal(bytes: &mut [u8]) {
    let end = bytes.len() - bth::ICRC_LEN;
    if let Some(crc) = icrc::icrc(L3::V4, 20, &bytes[14..end]) {
        bytes[end..].copy_from_slice(&crc);
    }
}

/// Returns the RETH of a WRITE or READ of `length` bytes.
#[must_use]
pub const fn reth(length: u32) -> [u8; 16] {
    let [a, b, c, d] = length.to_be_bytes();
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
}

/// Returns an AETH: an ACK, or a NAK (PSN sequence error); the low 24 bits carry the packet a selective NAK has seen.
#[must_use]
pub fn aeth(nak: bool, number: u64) -> [u8; 4] {
    let [a, b, c] = bth::to_be24(small(number & 0xff_ffff));
    [if nak { 0x60 } else { 0x1f }, a, b, c]
}

/// Builds the receiver's CNP, sent in direction `back`; `period` is DCQCN+'s.
#[must_use]
pub fn cnp(back: &Direction, period: Option<Nanos>) -> SimFrame {
    let spec = CnpSpec {
        // The builder swaps the addresses; it expects the direction of the data.
        flow: FlowKey::new(IpAddr::V4(back.dst), IpAddr::V4(back.src), Qpn::new(0)),
        sender_qpn: back.dest_qp,
        dst_mac: back.dst_mac,
        src_mac: back.src_mac,
        vlan: None,
        ip_id: 0,
        header: CnpHeader::default(),
    };
    let mut frame = SimFrame::with(spec.build().bytes());
    if let Some(period) = period {
        let bytes = frame.data_mut();
        bytes[54..62].copy_from_slice(&period.0.to_be_bytes());
        seal(bytes);
    }
    frame
}

/// A received frame after parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// A MAC control frame; its payload, after the EtherType, starts at byte 14.
    MacControl,
    /// A RoCEv2 packet.
    Packet(Packet),
    /// Any other frame, or one with a wrong ICRC.
    Other,
}

/// Fields of a RoCEv2 packet that a host reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Class of the packet.
    pub class: RoceClass,
    /// Own queue pair.
    pub dest_qp: Qpn,
    /// Low 24 bits of the packet's count.
    pub psn: u32,
    /// True if it requests an acknowledgement.
    pub ack: bool,
    /// True if it arrived with CE set.
    pub ce: bool,
    /// Extra field by class. READ request: length in bytes. ACK: AETH. CNP: DCQCN+'s period.
    pub extra: u64,
}

/// Parses a frame as the receiving card would.
#[must_use]
pub fn read(frame: &[u8]) -> Contents {
    let Ok(parsed) = parse(frame) else {
        return Contents::Other;
    };
    let Some(roce) = parsed.roce else {
        return if parsed.kind == Kind::MacControl {
            Contents::MacControl
        } else {
            Contents::Other
        };
    };
    let at = usize::from(roce.bth_off);
    let Ok((header, rest)) = Bth::ref_from_prefix(&frame[at..]) else {
        return Contents::Other;
    };
    let word = |from: usize, len: usize| {
        let bytes = rest.get(from..from + len).unwrap_or_default();
        bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    let extra = match roce.class {
        RoceClass::ReadRequest => word(12, 4),
        RoceClass::Ack => word(0, 4),
        RoceClass::Cnp => {
            if icrc::verify(frame, &parsed) != Some(true) {
                return Contents::Other;
            }
            word(0, 8)
        }
        _ => 0,
    };
    Contents::Packet(Packet {
        class: roce.class,
        dest_qp: Qpn::new(header.dest_qp()),
        psn: header.psn(),
        ack: header.ack_req(),
        ce: parsed.ecn() == 3,
        extra,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction() -> Direction {
        Direction {
            src_mac: Mac([2, 0, 0, 0, 0, 1]),
            dst_mac: Mac([2, 0, 0, 0, 0, 2]),
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 1, 0, 1),
            port: 49_152,
            dest_qp: Qpn::new(0x8001),
        }
    }

    fn packet_of(frame: &SimFrame) -> Packet {
        match read(frame.data()) {
            Contents::Packet(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_built_is_read_back() {
        let frame = packet(
            &direction(),
            data_tos(Priority::new(3), true),
            0x07,
            (1 << 24) + 5,
            true,
            &[],
            4_096,
        );
        assert_eq!(frame.data().len(), 4_096 + OVERHEAD);
        let seen = packet_of(&frame);
        assert_eq!(
            (seen.class, seen.dest_qp.get(), seen.psn),
            (RoceClass::Data, 0x8001, 5)
        );
        assert!(seen.ack && !seen.ce);
        let request = packet(
            &direction(),
            CONTROL_TOS,
            opcode::READ,
            7,
            false,
            &reth(65_536),
            0,
        );
        assert_eq!(packet_of(&request).extra, 65_536);
    }

    #[test]
    fn a_cnp_is_believed_with_a_right_icrc_only() {
        let mut frame = cnp(&direction(), Some(Nanos(500_000)));
        let seen = packet_of(&frame);
        assert_eq!(
            (seen.class, seen.dest_qp.get(), seen.extra),
            (RoceClass::Cnp, 0x8001, 500_000)
        );
        frame.data_mut()[60] ^= 1;
        assert_eq!(read(frame.data()), Contents::Other);
    }
}

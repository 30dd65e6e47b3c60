//! Frames of the hosts: data, answers, messages of the connection manager; and a frame as a host reads it.

use std::net::{IpAddr, Ipv4Addr};

use npcc_pipeline::craft::Craft;
use npcc_pipeline::parse::{Kind, parse};
use npcc_pipeline::units::Mac;
use npcc_pipeline::wire::bth::RoceClass;
use npcc_pipeline::wire::mac_control::pfc_classes;
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;

pub const WRITE_ONLY: u8 = 0x0a;
const ACKNOWLEDGE: u8 = 0x11;
const UD_SEND: u8 = 0x64;
/// Attributes of the connection manager's messages.
pub const REQ: u8 = 0x10;
pub const REP: u8 = 0x13;
/// DSCP of data, in priority 3, with ECT(0).
const DATA_TOS: u8 = tos(3);

/// Traffic class of data in a priority, with ECT(0): DSCP 26 for priority 3, elsewhere eight times the priority.
const fn tos(priority: u8) -> u8 {
    let dscp = if priority == 3 { 26 } else { priority << 3 };
    dscp << 2 | 2
}

/// Two ends of an Ethernet link: the sender's address, and the switch's.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    pub host: Mac,
    pub switch: Mac,
}

/// Addresses of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub link: Link,
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
}

fn craft(way: Way, opcode: u8, qpn: u32, payload: Vec<u8>) -> Craft {
    Craft {
        dst_mac: way.link.switch,
        src_mac: way.link.host,
        tos: DATA_TOS,
        payload,
        ..Craft::roce(IpAddr::V4(way.from), IpAddr::V4(way.to), opcode, qpn, 0)
    }
}

fn framed(mut craft: Craft, port: u16, psn: u32) -> Vec<u8> {
    craft.src_port = port;
    if let Some(fields) = &mut craft.bth {
        (fields.psn, fields.ack_req) = (psn & 0xff_ffff, true);
    }
    craft.frame()
}

/// Data of a connection from queue pair `sender` to `receiver`, with this UDP source port.
pub fn data(way: Way, to: (u32, u16), psn: u32, len: usize) -> Vec<u8> {
    data_in(3, way, to, psn, len)
}

/// Data in another priority.
pub fn data_in(
    priority: u8,
    way: Way,
    (receiver, port): (u32, u16),
    psn: u32,
    len: usize,
) -> Vec<u8> {
    let craft = craft(way, WRITE_ONLY, receiver, vec![0; 16 + len]);
    let tos = tos(priority);
    framed(Craft { tos, ..craft }, port, psn)
}

/// Packet with any opcode to a queue pair.
pub fn any(way: Way, (opcode, qpn, port): (u8, u32, u16), psn: u32, payload: Vec<u8>) -> Vec<u8> {
    framed(craft(way, opcode, qpn, payload), port, psn)
}

/// Datagram from queue pair `source` to `qpn`.
pub fn datagram(way: Way, qpn: u32, source: u32) -> Vec<u8> {
    let mut payload = vec![0; 8 + 64];
    payload[4..8].copy_from_slice(&source.to_be_bytes());
    any(way, (UD_SEND, qpn, 50_000), 0, payload)
}

/// Returns a frame with a wrong ICRC, as no card takes it.
pub fn spoiled(mut frame: Vec<u8>) -> Vec<u8> {
    *frame.last_mut().unwrap() ^= 1;
    frame
}

/// Acknowledgement to queue pair `sender`.
pub fn ack(way: Way, (sender, port): (u32, u16), psn: u32) -> Vec<u8> {
    framed(craft(way, ACKNOWLEDGE, sender, vec![0, 0, 0, 1]), port, psn)
}

/// UDP source port of a connection with flow label 0.
pub fn port(sender: u32, receiver: u32) -> u16 {
    port_of(Qpn::new(sender), Qpn::new(receiver))
}

/// Message of the connection manager.
fn message(way: Way, attribute: u8, fields: &[(usize, u32)]) -> Vec<u8> {
    let mut payload = vec![0; 8 + 256];
    payload[..12].copy_from_slice(&[0x80, 1, 0, 0, 0, 0, 0, 1, 1, 7, 2, 3]);
    payload[25] = attribute;
    for (offset, value) in fields {
        payload[32 + offset..36 + offset].copy_from_slice(&value.to_be_bytes());
    }
    framed(craft(way, UD_SEND, 1, payload), 50_000, 1)
}

/// REQ of a connection; with a flow label, so that the UDP port does not identify the queue pairs.
pub fn req(way: Way, id: u32, sender: u32) -> Vec<u8> {
    message(way, REQ, &[(0, id), (32, sender << 8), (88, 0x1234_5000)])
}

/// REP to a REQ with this communication ID.
pub fn rep(way: Way, id: u32, receiver: u32) -> Vec<u8> {
    let own = id + 0x10_0000;
    message(way, REP, &[(0, own), (4, id), (12, receiver << 8)])
}

/// Content of a frame, as a host reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// PFC frame: for each class named, its quanta.
    Pfc([Option<u16>; 8]),
    Data {
        qpn: u32,
        psn: u32,
        from: Ipv4Addr,
        to: Ipv4Addr,
    },
    Ack {
        qpn: u32,
    },
    Cnp {
        qpn: u32,
        to: Ipv4Addr,
    },
    Req {
        id: u32,
    },
    Rep {
        id: u32,
    },
    Other,
}

/// Returns the content of a frame.
pub fn read(frame: &[u8]) -> Read {
    let Ok(parsed) = parse(frame) else {
        return Read::Other;
    };
    let word = |at: usize| -> Option<u32> {
        let bytes = frame.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    if parsed.kind == Kind::MacControl {
        let classes = pfc_classes(&frame[14..]).unwrap_or(0);
        let quanta = |n: usize| u16::from_be_bytes([frame[18 + 2 * n], frame[19 + 2 * n]]);
        return Read::Pfc(std::array::from_fn(|n| {
            (classes & 1 << n != 0).then(|| quanta(n))
        }));
    }
    let Some(roce) = parsed.roce else {
        return Read::Other;
    };
    let l3 = usize::from(parsed.l3_off);
    let address = |at| Ipv4Addr::from(word(l3 + at).unwrap_or(0));
    let (from, to) = (address(12), address(16));
    let qpn = roce.dest_qp;
    match roce.class {
        RoceClass::Data => Read::Data {
            qpn,
            psn: roce.psn(),
            from,
            to,
        },
        RoceClass::Ack => Read::Ack { qpn },
        RoceClass::Cnp => Read::Cnp { qpn, to },
        RoceClass::Management => {
            // The payload of a datagram begins behind BTH and DETH; `message` counts from the BTH.
            let payload = usize::from(roce.bth_off) + 12;
            let field = |at| word(payload + 32 + at).unwrap_or(0);
            match frame.get(payload + 25) {
                Some(&REQ) => Read::Req { id: field(0) },
                Some(&REP) => Read::Rep { id: field(4) },
                _ => Read::Other,
            }
        }
        _ => Read::Other,
    }
}

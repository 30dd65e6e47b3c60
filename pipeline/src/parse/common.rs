//! The frame this switch is built for, read in one go: untagged IPv4 without options, unfragmented, UDP to port 4791.
//!
//! Law: whatever it accepts, the general parser accepts with the same answer (a property in the tests). It refuses
//! nothing: what does not fit, or looks wrong, is the general parser's to name.

use super::{Kind, L3, Parsed, Roce};
use crate::wire::bth::{self, RoceClass};
use crate::wire::{ethernet, ipv4, udp};

/// Ethernet, IPv4, UDP, BTH.
const HEADERS: usize = ethernet::HEADER_LEN + ipv4::MIN_LEN + udp::HEADER_LEN + bth::HEADER_LEN;
/// Offset of the IP header.
const L3_OFF: u8 = 14;
/// Offset of the UDP header.
const L4_OFF: u16 = 34;
/// Offset of the BTH.
const BTH_OFF: u16 = 42;
/// The shortest IP packet with a BTH and an ICRC.
const MIN_IP: u16 = 44;

/// `None`: not this kind of frame.
#[inline]
pub(super) fn parse(frame: &[u8]) -> Option<Parsed> {
    let head: &[u8; HEADERS] = frame.first_chunk()?;
    let [
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        t0,
        t1,
        v,
        tos,
        l0,
        l1,
        i0,
        i1,
        f0,
        f1,
        ttl,
        proto,
        c0,
        c1,
        s0,
        s1,
        s2,
        s3,
        d0,
        d1,
        d2,
        d3,
        _,
        _,
        p0,
        p1,
        u0,
        u1,
        _,
        _,
        opcode,
        _,
        _,
        _,
        _,
        q0,
        q1,
        q2,
        ..,
    ] = *head;
    let ethertype_version = u32::from_be_bytes([t0, t1, v, tos]);
    let fragment_protocol = u32::from_be_bytes([f0, f1, ttl, proto]);
    let port = u16::from_be_bytes([p0, p1]);
    let plain = ethertype_version >> 8 == 0x0008_0045
        && fragment_protocol & 0x3fff_00ff == udp::PROTOCOL as u32
        && port == udp::ROCEV2_PORT;
    let ip_len = u16::from_be_bytes([l0, l1]);
    let udp_len = u16::from_be_bytes([u0, u1]);
    let fits = ip_len >= MIN_IP
        && udp_len == ip_len - 20
        && usize::from(ip_len) + ethernet::HEADER_LEN <= frame.len();
    let src = u32::from_be_bytes([s0, s1, s2, s3]);
    let dst = u32::from_be_bytes([d0, d1, d2, d3]);
    let words = [
        u32::from_be_bytes([v, tos, l0, l1]),
        u32::from_be_bytes([i0, i1, f0, f1]),
        u32::from_be_bytes([ttl, proto, c0, c1]),
        src,
        dst,
    ];
    if !(plain && fits && sums_to_ones(words) && routable(src) && routable(dst)) {
        return None;
    }
    let dest_qp = u32::from_be_bytes([0, q0, q1, q2]);
    Some(Parsed {
        kind: Kind::Routed(L3::V4),
        l3_off: L3_OFF,
        tci: None,
        tags: 0,
        tos,
        ip_len,
        protocol: udp::PROTOCOL,
        l4_off: L4_OFF,
        roce: Some(Roce {
            bth_off: BTH_OFF,
            class: RoceClass::of(opcode, dest_qp),
        }),
    })
}

/// Whether the header's one's complement sum is all ones (RFC 1071).
#[inline]
fn sums_to_ones(words: [u32; 5]) -> bool {
    let total: u64 = words.iter().map(|word| u64::from(*word)).sum();
    // 2^32 = 2^16 = 1 modulo 2^16 - 1, and the sum of a header is never zero: it is all ones exactly when divisible.
    total % 0xffff == 0
}

/// First octets a router must not forward from or to (0, 127, 224 and above), as a set.
const MARTIAN: [u64; 4] = {
    let mut set = [0u64; 4];
    let mut octet = 0;
    while octet < 256 {
        if octet == 0 || octet == 127 || octet >= 224 {
            set[octet / 64] |= 1 << (octet % 64);
        }
        octet += 1;
    }
    set
};

#[inline]
fn routable(address: u32) -> bool {
    let first = (address >> 24) as usize;
    let set = MARTIAN.get(first >> 6).copied().unwrap_or(u64::MAX);
    (set >> (first & 63)) & 1 == 0 && address >> 16 != 0xa9fe
}

//! Invariant CRC of a RoCEv2 packet (IBTA annex A17.3.3).
//!
//! CRC-32 of Ethernet over eight octets of ones (in place of the local route header), the IP packet with the fields that may
//! change on the way set to ones, and everything up to the CRC itself. On the wire it is stored least significant octet first.
//! IPv4 options and IPv6 extension headers are covered as they are.

use crate::parse::{Kind, L3, Parsed, parse};
use crate::wire::bth;
use crate::wire::ipv4;
use crate::wire::ipv6;
use crate::wire::udp;
use crc32fast::Hasher;

/// Length of the ones in front of the packet in octets. They are computed over, instead of starting from the running state
/// 0xdebb20e3: so the head is a multiple of 64 octets, the stride of `crc32fast` on short input.
const PREFIX: usize = 8;
const TRANSPORT: usize = udp::HEADER_LEN + bth::HEADER_LEN;

/// Length of the part of the packet that is masked in a copy: all headers, and the whole of a CNP.
const HEAD: usize = 120;

/// Returns the ICRC of `packet`, which begins with the IP header, has UDP at `l4_off`, and ends just before the ICRC.
///
/// Returns `None` if it is too short for its headers, or its IP options or extension headers exceed 60 octets.
#[inline]
#[must_use]
pub fn icrc(family: L3, l4_off: usize, packet: &[u8]) -> Option<[u8; 4]> {
    let (head, rest) = packet.split_at_checked(HEAD).unwrap_or((packet, &[]));
    let mut copy = [0xff; PREFIX + HEAD];
    let covered = copy.get_mut(..PREFIX + head.len())?;
    let masked = covered.get_mut(PREFIX..)?;
    masked.copy_from_slice(head);
    match family {
        L3::V4 => mask_v4(masked.first_chunk_mut()?),
        L3::V6 => mask_v6(masked.first_chunk_mut()?),
    }
    mask_transport(masked.get_mut(l4_off..)?.first_chunk_mut()?);
    let mut crc = Hasher::new();
    crc.update(covered);
    if !rest.is_empty() {
        crc.update(rest);
    }
    Some(crc.finalize().to_le_bytes())
}

/// Returns true if the ICRC of a parsed RoCEv2 frame is right; `None` if the frame carries none.
#[must_use]
pub fn verify(frame: &[u8], parsed: &Parsed) -> Option<bool> {
    parsed.roce?;
    let Kind::Routed(family) = parsed.kind else {
        return None;
    };
    let start = usize::from(parsed.l3_off);
    let packet = frame.get(start..start + usize::from(parsed.ip_len))?;
    let (covered, carried) = packet.split_last_chunk::<{ bth::ICRC_LEN }>()?;
    let l4_off = usize::from(parsed.l4_off).checked_sub(start)?;
    Some(icrc(family, l4_off, covered)? == *carried)
}

/// Writes the right ICRC into a RoCEv2 frame: for tests and traffic generators, not for the packet path. Leaves any other
/// frame as it is.
pub fn seal(frame: &mut [u8]) {
    let Ok(parsed) = parse(frame) else {
        return;
    };
    let start = usize::from(parsed.l3_off);
    let packet = frame.get_mut(start..start + usize::from(parsed.ip_len));
    let (Kind::Routed(family), Some(_), Some(packet)) = (parsed.kind, parsed.roce, packet) else {
        return;
    };
    let l4_off = usize::from(parsed.l4_off).saturating_sub(start);
    if let Some((covered, place)) = packet.split_last_chunk_mut::<{ bth::ICRC_LEN }>()
        && let Some(right) = icrc(family, l4_off, covered)
    {
        *place = right;
    }
}

/// Masks TOS, TTL and header checksum.
#[inline]
fn mask_v4(header: &mut [u8; ipv4::MIN_LEN]) {
    let [_, tos, _, _, _, _, _, _, ttl, _, sum_high, sum_low, ..] = header;
    *tos = 0xff;
    *ttl = 0xff;
    *sum_high = 0xff;
    *sum_low = 0xff;
}

/// Masks traffic class, flow label and hop limit.
#[inline]
fn mask_v6(header: &mut [u8; ipv6::HEADER_LEN]) {
    let [
        version,
        class,
        label_high,
        label_low,
        _,
        _,
        _,
        hop_limit,
        ..,
    ] = header;
    *version |= 0x0f;
    *class = 0xff;
    *label_high = 0xff;
    *label_low = 0xff;
    *hop_limit = 0xff;
}

/// Masks the UDP checksum, and FECN, BECN and the six reserved bits of the BTH.
#[inline]
fn mask_transport(bytes: &mut [u8; TRANSPORT]) {
    let [
        _,
        _,
        _,
        _,
        _,
        _,
        sum_high,
        sum_low,
        _,
        _,
        _,
        _,
        congestion,
        ..,
    ] = bytes;
    *sum_high = 0xff;
    *sum_low = 0xff;
    *congestion = 0xff;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_covered_and_mutable_fields_are_not() {
        // IPv4 with four octets of options (NOP), ttl 64, a SEND ONLY with no payload.
        let mut packet = vec![
            0x46, 0, 0, 48, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0,
        ];
        packet.extend([0xc0, 0, 0x12, 0xb7, 0, 24, 0, 0]);
        packet.extend([4, 0, 0xff, 0xff, 0, 0, 0, 17, 0x80, 0, 0, 0]);
        let reference = icrc(L3::V4, 24, &packet).unwrap();
        for (offset, covered) in [
            (1, false),
            (8, false),
            (10, false),
            (30, false),
            (36, false),
            (4, true),
            (21, true),
            (24, true),
            (39, true),
        ] {
            let mut changed = packet.clone();
            changed[offset] ^= 0x5a;
            assert_eq!(
                icrc(L3::V4, 24, &changed).unwrap() != reference,
                covered,
                "offset {offset}"
            );
        }
        assert_eq!(icrc(L3::V4, 24, &packet[..40]), None);
    }

    /// Each octet of an IPv6 packet is covered or is not; of the first, half is.
    #[test]
    fn traffic_class_flow_label_and_hop_limit_are_not_covered() {
        // A SEND ONLY with no payload.
        let mut packet = vec![0x60, 0, 0, 0, 0, 20, 17, 64];
        packet.extend([[0x20; 16], [0xfd; 16]].concat());
        packet.extend([0xc0, 0, 0x12, 0xb7, 0, 20, 0, 0]);
        packet.extend([4, 0, 0xff, 0xff, 0, 0, 0, 17, 0x80, 0, 0, 0]);
        let reference = icrc(L3::V6, 40, &packet).unwrap();
        let mutable = [1, 2, 3, 7, 46, 47, 52];
        for bit in 0..8 * packet.len() {
            let (offset, bit) = (bit / 8, 1 << (bit % 8));
            let mut changed = packet.clone();
            changed[offset] ^= bit;
            let covered = !mutable.contains(&offset) && (offset != 0 || bit > 0x0f);
            assert_eq!(
                icrc(L3::V6, 40, &changed).unwrap() != reference,
                covered,
                "offset {offset}, bit {bit:#x}"
            );
        }
    }
}

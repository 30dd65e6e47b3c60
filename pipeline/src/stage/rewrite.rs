//! Stage 4: the frame as it will be sent: TTL or hop limit, IPv4 checksum, VLAN tag, MAC addresses. [`super::receive`] asks.

use crate::drop::DropReason;
use crate::frame::FrameBuf;
use crate::parse::common::Untagged;
use crate::route::nexthop::{Path, UNTAGGED};
use crate::units::Priority;
use crate::wire::{checksum, ethernet};

/// Rewrites untagged IPv4 that stays untagged: three stores. On an error the frame is as it was.
#[inline(always)]
pub(super) fn plain(head: &mut Untagged, path: Path) -> Result<(), DropReason> {
    let word = u32::from_le_bytes(head.ip.ttl_protocol_checksum);
    if word & 0xfe == 0 {
        return Err(DropReason::TtlExpired);
    }
    head.ip.ttl_protocol_checksum = checksum::ttl_less_one(word).to_le_bytes();
    (head.macs, head.more_macs) = path.addresses();
    Ok(())
}

/// Rewrites any frame, whose IP header stands at `l3_off`. On an error the frame may be dropped only.
#[inline]
pub(super) fn any<B: FrameBuf>(
    buf: &mut B,
    (l3_off, is_v6): (usize, bool),
    path: Path,
    priority: Priority,
) -> Result<(), DropReason> {
    let packet = buf.data_mut().get_mut(l3_off..).unwrap_or_default();
    if is_v6 {
        one_hop_less_v6(packet)?;
    } else {
        one_hop_less_v4(packet)?;
    }
    let tag = if path.vlan() == UNTAGGED {
        0
    } else {
        ethernet::TAG_LEN
    };
    let new = ethernet::HEADER_LEN + tag;
    if new != l3_off {
        resize(buf, l3_off, new)?;
    }
    let ethertype = if is_v6 {
        ethernet::IPV6
    } else {
        ethernet::IPV4
    };
    let (first, second) = path.addresses();
    if let Some((head, rest)) = buf.data_mut().split_first_chunk_mut::<14>() {
        let [addresses @ .., a, b, c, d, high, low] = head;
        *addresses = first;
        [*a, *b, *c, *d] = second;
        let outer = if tag == 0 { ethertype } else { ethernet::VLAN };
        [*high, *low] = outer.to_be_bytes();
        if tag != 0
            && let Some(place) = rest.first_chunk_mut::<4>()
        {
            let tci = u32::from(priority.get()) << 13 | u32::from(path.vlan());
            *place = (tci << 16 | u32::from(ethertype)).to_be_bytes();
        }
    }
    Ok(())
}

#[inline]
fn one_hop_less_v6(packet: &mut [u8]) -> Result<(), DropReason> {
    match packet.get_mut(7) {
        Some(hop_limit) if *hop_limit > 1 => {
            *hop_limit -= 1;
            Ok(())
        }
        _ => Err(DropReason::TtlExpired),
    }
}

#[inline]
fn one_hop_less_v4(packet: &mut [u8]) -> Result<(), DropReason> {
    let word = packet
        .get_mut(8..)
        .and_then(|rest| rest.first_chunk_mut::<4>());
    match word {
        Some(bytes) if u32::from_le_bytes(*bytes) & 0xfe != 0 => {
            *bytes = checksum::ttl_less_one(u32::from_le_bytes(*bytes)).to_le_bytes();
            Ok(())
        }
        _ => Err(DropReason::TtlExpired),
    }
}

/// Makes layer 3 start at `new`, by trimming or growing the front.
#[inline]
fn resize<B: FrameBuf>(buf: &mut B, old: usize, new: usize) -> Result<(), DropReason> {
    let resized = if new < old {
        buf.trim_front(old - new)
    } else {
        buf.prepend(new - old)
    };
    if resized {
        Ok(())
    } else {
        Err(DropReason::NoHeadroom)
    }
}

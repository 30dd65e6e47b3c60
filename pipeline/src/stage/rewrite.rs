//! Stage 4: the frame as it will be sent: TTL or hop limit, IPv4 checksum, VLAN tag, MAC addresses. [`super::receive`] asks.

use super::packet::Packet;
use crate::bits::{low8, low16};
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::{FrameBuf, wire_len};
use crate::parse::common::Headers;
use crate::parse::{Kind, L3, Parsed};
use crate::route::nexthop::{Path, UNTAGGED};
use crate::units::Priority;
use crate::wire::{checksum, ethernet};

/// Rewrites untagged IPv4 that stays untagged: three stores. On an error the frame is as it was.
#[inline(always)]
pub(super) fn plain(head: &mut Headers, path: Path) -> Result<(), Drop> {
    let word = u32::from_le_bytes(head.ttl_protocol_checksum);
    if word & 0xfe == 0 {
        return Err(Drop::TtlExpired);
    }
    let word = checksum::ttl_less_one(word);
    head.ttl_protocol_checksum = word.to_le_bytes();
    (head.macs, head.more_macs) = path.addresses();
    Ok(())
}

/// Rewrites any frame, whose headers are `parsed`; `packet` follows. On an error the frame may be dropped only.
pub(super) fn any<B: FrameBuf>(
    buf: &mut B,
    mut parsed: Parsed,
    path: Path,
    packet: &mut Packet,
    counters: &PortCounters,
) -> Result<(), Drop> {
    let before = buf.data().len();
    rewrite_any(buf, &mut parsed, path, packet.meta.priority)?;
    let after = buf.data().len();
    if after != before {
        counters
            .tag_bytes_added
            .add(after.saturating_sub(before) as u64);
        counters
            .tag_bytes_removed
            .add(before.saturating_sub(after) as u64);
        packet.meta.wire_len = wire_len(after);
        packet.meta.l3_off = parsed.l3_off;
        packet.set_parsed(parsed, low16(after));
    }
    Ok(())
}

/// Any layer 2 to any other.
fn rewrite_any<B: FrameBuf>(
    buf: &mut B,
    parsed: &mut Parsed,
    path: Path,
    priority: Priority,
) -> Result<(), Drop> {
    let old = usize::from(parsed.l3_off);
    decrement_ttl(
        buf.data_mut().get_mut(old..).unwrap_or_default(),
        parsed.kind,
    )?;
    let tag = if path.vlan() == UNTAGGED {
        0
    } else {
        ethernet::TAG_LEN
    };
    let new = ethernet::HEADER_LEN + tag;
    if new != old {
        resize_l2(buf, parsed, new)?;
    }
    let header = buf.data_mut();
    let ethertype = match parsed.kind {
        Kind::Routed(L3::V6) => ethernet::IPV6,
        _ => ethernet::IPV4,
    };
    let (first, second) = path.addresses();
    if let Some(([addresses @ .., a, b, c, d], rest)) = header.split_first_chunk_mut::<12>() {
        *addresses = first;
        [*a, *b, *c, *d] = second;
        if tag == 0 {
            if new != old {
                write_u16(rest, 0, ethertype);
            }
        } else {
            write_u16(rest, 0, ethernet::VLAN);
            write_u16(rest, 2, u16::from(priority.get()) << 13 | path.vlan());
            write_u16(rest, 4, ethertype);
        }
    }
    Ok(())
}

#[inline]
fn decrement_ttl(l3: &mut [u8], kind: Kind) -> Result<(), Drop> {
    if kind == Kind::Routed(L3::V6) {
        return match l3.get_mut(7) {
            Some(hop_limit) if *hop_limit > 1 => {
                *hop_limit -= 1;
                Ok(())
            }
            _ => Err(Drop::TtlExpired),
        };
    }
    let [
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        ttl,
        protocol,
        check_high,
        check_low,
        ..,
    ] = l3
    else {
        return Err(Drop::TtlExpired);
    };
    if *ttl <= 1 {
        return Err(Drop::TtlExpired);
    }
    let old = u16::from_be_bytes([*ttl, *protocol]);
    *ttl -= 1;
    let new = u16::from_be_bytes([*ttl, *protocol]);
    let check = checksum::update(u16::from_be_bytes([*check_high, *check_low]), old, new);
    [*check_high, *check_low] = check.to_be_bytes();
    Ok(())
}

/// Makes layer 3 start at `new`, by trimming or growing the front.
#[cold]
fn resize_l2<B: FrameBuf>(buf: &mut B, parsed: &mut Parsed, new: usize) -> Result<(), Drop> {
    let old = usize::from(parsed.l3_off);
    let resized = if new < old {
        buf.trim_front(old - new)
    } else {
        buf.prepend(new - old)
    };
    if !resized {
        return Err(Drop::NoHeadroom);
    }
    let moved = |off: u16| low16(usize::from(off) + new - old);
    parsed.l3_off = low8(new);
    if parsed.l4_off != 0 {
        parsed.l4_off = moved(parsed.l4_off);
    }
    if let Some(roce) = &mut parsed.roce {
        roce.bth_off = moved(roce.bth_off);
    }
    Ok(())
}

#[inline]
fn write_u16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

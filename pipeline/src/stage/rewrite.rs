//! Rewrite of a frame for its path: TTL or hop limit, IPv4 checksum, VLAN tag, MAC addresses. Called by [`super::receive`].
//!
//! Law: a frame ends with its packet, or with zeros up to the length Ethernet pads to. Bytes behind the packet are not
//! forwarded: they count in no MTU, and may be some host's stale memory.

use super::kinds::l3_off;
use crate::bits::low8;
use crate::drop::DropReason;
use crate::frame::FrameBuf;
use crate::parse::common::SHORTEST;
use crate::route::nexthop::{Path, UNTAGGED};
use crate::units::Priority;
use crate::wire::{checksum, ethernet};

/// Rewrites a frame whose header keeps its length: three stores, or four with a tag. `priority` returns its priority by the tag
/// control word it came with. `None` if it is left unchanged.
#[inline(always)]
pub(super) fn in_place<const TAGGED: bool, const V6: bool>(
    frame: &mut [u8],
    path: Path,
    priority: impl FnOnce(Option<u16>) -> Priority,
) -> Option<Priority> {
    // All offsets are known when compiled, so that this is the one check of the length.
    let head = frame.first_chunk_mut::<30>()?;
    let (header, packet) = head.split_at_mut_checked(l3_off::<TAGGED>())?;
    let packet = packet.first_chunk_mut::<12>()?;
    if V6 {
        one_hop_less_v6(packet).ok()?;
    } else {
        one_hop_less_v4(packet).ok()?;
    }
    let (macs, rest) = header.split_first_chunk_mut::<12>()?;
    let [addresses @ .., a, b, c, d] = macs;
    let (first, second) = path.addresses();
    *addresses = first;
    [*a, *b, *c, *d] = second;
    let tci = match rest {
        [_, _, tci @ ..] if TAGGED => tci.first_chunk_mut::<2>(),
        _ => None,
    };
    let priority = priority(tci.as_ref().map(|tci| u16::from_be_bytes(**tci)));
    if let Some(tci) = tci {
        let dei = u16::from_be_bytes(*tci) & ethernet::DEI;
        *tci = (u16::from(priority.get()) << 13 | dei | path.vlan()).to_be_bytes();
    }
    Some(priority)
}

/// Position of the IP packet in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    /// Offset of its header.
    pub(super) l3_off: usize,
    /// Length in bytes, header included.
    pub(super) len: u16,
    pub(super) is_v6: bool,
}

/// Rewrites any frame. Returns the number of bytes cut off behind its packet; after an error the frame can only be dropped.
#[inline]
pub(super) fn any<B: FrameBuf>(
    buf: &mut B,
    packet: Packet,
    path: Path,
    priority: Priority,
) -> Result<usize, DropReason> {
    let Packet { l3_off, len, is_v6 } = packet;
    let packet = buf.data_mut().get_mut(l3_off..).unwrap_or_default();
    if is_v6 {
        one_hop_less_v6(packet)?;
    } else {
        one_hop_less_v4(packet)?;
    }
    let tag = tag_len(path);
    let new = ethernet::HEADER_LEN + tag;
    let dei = dei(buf.data(), l3_off);
    if new != l3_off {
        resize(buf, l3_off, new)?;
    }
    header(buf.data_mut(), path, priority, is_v6);
    if let Some(octet) = buf.data_mut().get_mut(TCI).filter(|_| tag != 0) {
        *octet |= dei;
    }
    Ok(end(buf, new + usize::from(len), SHORTEST + tag))
}

/// Offset of the tag control word in a frame with a tag.
const TCI: usize = ethernet::HEADER_LEN;

/// Returns the drop eligible indicator of a frame whose packet begins at `l3_off`, in its place in the first octet of the tag control word;
/// 0 of a frame without a tag.
fn dei(frame: &[u8], l3_off: usize) -> u8 {
    const IN_OCTET: u8 = low8((ethernet::DEI >> 8) as usize);
    let octet = frame.get(TCI).filter(|_| l3_off > ethernet::HEADER_LEN);
    octet.map_or(0, |octet| octet & IN_OCTET)
}

/// Returns the length of the VLAN tag of a frame that takes this path.
#[inline(always)]
pub(crate) fn tag_len(path: Path) -> usize {
    if path.vlan() == UNTAGGED {
        0
    } else {
        ethernet::TAG_LEN
    }
}

/// Writes the Ethernet header of a frame that takes this path, tag included, before its IP packet.
#[inline(always)]
pub(crate) fn header(frame: &mut [u8], path: Path, priority: Priority, is_v6: bool) {
    let tag = tag_len(path);
    let ethertype = if is_v6 {
        ethernet::IPV6
    } else {
        ethernet::IPV4
    };
    let (first, second) = path.addresses();
    if let Some((head, rest)) = frame.split_first_chunk_mut::<14>() {
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
}

/// Ends a frame at the end of its packet, but not before `shortest`, with zeros behind the packet; returns the number of bytes
/// cut off. A frame that arrived shorter stays so: its device pads it.
#[inline]
fn end<B: FrameBuf>(buf: &mut B, packet: usize, shortest: usize) -> usize {
    if buf.data().len() <= packet {
        return 0;
    }
    cut(buf, packet, shortest)
}

#[inline(never)]
fn cut<B: FrameBuf>(buf: &mut B, packet: usize, shortest: usize) -> usize {
    let came = buf.data().len();
    let wanted = packet.max(shortest).min(came);
    let cut = if buf.truncate(wanted) {
        came - wanted
    } else {
        0
    };
    if let Some(padding) = buf.data_mut().get_mut(packet..) {
        padding.fill(0);
    }
    cut
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

/// Makes layer 3 start at `new`, by trimming or growing the front; a frame that would get shorter than Ethernet pads to keeps
/// its length, with the packet moved to the front.
#[inline]
fn resize<B: FrameBuf>(buf: &mut B, old: usize, new: usize) -> Result<(), DropReason> {
    let resized = if new < old {
        if buf.data().len() < SHORTEST + (old - new) {
            return advance(buf, old, new);
        }
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

/// Moves everything from `old` on to `new`, which is less; the bytes between end up behind it.
#[cold]
fn advance<B: FrameBuf>(buf: &mut B, old: usize, new: usize) -> Result<(), DropReason> {
    let rest = buf.data_mut().get_mut(new..).unwrap_or_default();
    if rest.len() < old - new {
        return Err(DropReason::Runt);
    }
    rest.rotate_left(old - new);
    Ok(())
}

//! Kinds of frame that have a loop of their own: tagged or not, IPv4 or IPv6; and the stretches of one kind in a burst.

use arrayvec::ArrayVec;

use crate::bits::Octets;
use crate::burst::Places;
use crate::frame::MetaFlags;
use crate::units::BURST;
use crate::wire::{ethernet, ipv6};

/// Kind of a frame by its EtherTypes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Untagged IPv4.
    V4,
    /// IPv4 behind one customer tag.
    TaggedV4,
    /// Untagged IPv6.
    V6,
    /// IPv6 behind one customer tag.
    TaggedV6,
}

impl FrameKind {
    /// Returns the kind of a frame; `None` if it is of no such kind.
    #[inline]
    pub(super) fn of(frame: &[u8]) -> Option<FrameKind> {
        let [high, low, _, _, inner @ ..] = *frame.get(12..)?.first_chunk::<6>()?;
        match (u16::from_be_bytes([high, low]), u16::from_be_bytes(inner)) {
            (ethernet::IPV4, _) => Some(FrameKind::V4),
            (ethernet::IPV6, _) => Some(FrameKind::V6),
            (ethernet::VLAN, ethernet::IPV4) => Some(FrameKind::TaggedV4),
            (ethernet::VLAN, ethernet::IPV6) => Some(FrameKind::TaggedV6),
            _ => None,
        }
    }

    const fn is_v6(self) -> bool {
        matches!(self, FrameKind::V6 | FrameKind::TaggedV6)
    }
}

/// Returns the first 64 bits of the destination of an IPv6 packet; `None` for a frame of any other kind.
#[inline]
pub(super) fn network_of(frame: &[u8]) -> Option<u64> {
    let header = match FrameKind::of(frame)? {
        FrameKind::V6 => l3_off::<false>(),
        FrameKind::TaggedV6 => l3_off::<true>(),
        _ => return None,
    };
    let dst = frame.get(header + ipv6::ADDRESSES + 16..)?;
    Some(u64::from_be_bytes(*dst.first_chunk()?))
}

/// Returns the [flags](MetaFlags) that all frames of a kind have.
#[must_use]
pub const fn flags_of<const TAGGED: bool, const V6: bool>() -> u8 {
    let tag = if TAGGED { MetaFlags::TAGGED } else { 0 };
    tag | if V6 { MetaFlags::IPV6 } else { 0 }
}

/// Returns the offset of the IP header in the frames of a kind.
#[must_use]
pub const fn l3_off<const TAGGED: bool>() -> usize {
    ethernet::HEADER_LEN + if TAGGED { ethernet::TAG_LEN } else { 0 }
}

/// Kinds of the frames of a burst.
#[derive(Debug)]
pub(super) struct Kinds {
    /// Frames whose headers were not read.
    pub(super) unread: Places,
    /// Frames of one kind that follow one another and were read, in order: their kind, and the positions of the first and of the one
    /// after the last.
    pub(super) stretches: ArrayVec<(FrameKind, u8, u8), BURST>,
    /// DSCPs and ECN fields of all frames that were read.
    pub(super) tos: Octets,
}

impl Kinds {
    /// Returns the kinds of no frames.
    pub(super) fn new() -> Kinds {
        Kinds {
            unread: Places::NONE,
            stretches: ArrayVec::new(),
            tos: Octets::NONE,
        }
    }

    /// Returns true if all frames were read, and none is IPv6.
    pub(super) fn are_v4(&self) -> bool {
        let mut kinds = self.stretches.iter().map(|(kind, ..)| kind);
        self.unread.is_empty() && kinds.all(|kind| !kind.is_v6())
    }
}

//! Kinds of frame that have a loop of their own: tagged or not, IPv4 or IPv6; and the stretches of one kind in a burst.

use std::ops::Range;

use crate::bits::Octets;
use crate::burst::Places;
use crate::frame::MetaFlags;
use crate::wire::ethernet;

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
}

/// Returns the flags of the frames of a kind.
pub(super) const fn flags_of<const TAGGED: bool, const V6: bool>() -> u8 {
    let tag = if TAGGED { MetaFlags::TAGGED } else { 0 };
    tag | if V6 { MetaFlags::IPV6 } else { 0 }
}

/// Returns the offset of the IP header in the frames of a kind.
pub(super) const fn l3_off<const TAGGED: bool>() -> usize {
    ethernet::HEADER_LEN + if TAGGED { ethernet::TAG_LEN } else { 0 }
}

/// Kinds of the frames of a burst, as sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds {
    /// Frames whose headers were not read.
    pub(super) unread: Places,
    pub(super) v6: Places,
    tagged: Places,
    /// DSCPs and ECN fields of all frames that were read.
    pub(super) tos: Octets,
}

impl Kinds {
    /// Sets of no frames.
    pub(super) const NONE: Kinds = Kinds {
        unread: Places::NONE,
        v6: Places::NONE,
        tagged: Places::NONE,
        tos: Octets::NONE,
    };

    /// Notes that `count` frames from `first` on were read and are of this kind, and what their [`tos`](Kinds::tos) are.
    #[inline]
    pub(super) const fn add(
        &mut self,
        kind: FrameKind,
        (first, count): (usize, usize),
        tos: Octets,
    ) {
        self.tos = self.tos.and(tos);
        if matches!(kind, FrameKind::V6 | FrameKind::TaggedV6) {
            self.v6.add_all(first, count);
        }
        if matches!(kind, FrameKind::TaggedV4 | FrameKind::TaggedV6) {
            self.tagged.add_all(first, count);
        }
    }

    /// Iterates over the longest stretches of one kind among the first `frames` that were read.
    #[inline]
    pub(super) fn stretches(
        self,
        frames: usize,
    ) -> impl Iterator<Item = (FrameKind, Range<usize>)> {
        let mut place = 0;
        let mut next = move || {
            let first = place;
            if first >= frames {
                return None;
            }
            let sets = [self.unread, self.v6, self.tagged];
            let alike = sets.map(|set| set.alike_from(first)).into_iter().min();
            place = (first + alike.unwrap_or(frames).max(1)).min(frames);
            Some(first..place)
        };
        std::iter::from_fn(move || {
            let mut places = next()?;
            while self.unread.has(places.start) {
                places = next()?;
            }
            let first = places.start;
            let kind = match (self.tagged.has(first), self.v6.has(first)) {
                (false, false) => FrameKind::V4,
                (true, false) => FrameKind::TaggedV4,
                (false, true) => FrameKind::V6,
                (true, true) => FrameKind::TaggedV6,
            };
            Some((kind, places))
        })
    }
}

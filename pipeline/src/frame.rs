//! What the pipeline asks of a frame buffer, and what travels with a frame.
//!
//! The pipeline never names DPDK: an mbuf in production and a heap buffer in every test and in the simulator both
//! implement [`FrameBuf`]. A frame is one contiguous segment.

use arrayvec::ArrayVec;

use crate::bits::low16;
use crate::buffer::GroupId;
use crate::parse::Parsed;
use crate::units::{BURST, PortId, Priority, WIRE_OVERHEAD, WorkerId};
use crate::wire::bth::Traits;
use crate::wire::ethernet;

/// An owned frame buffer: one contiguous Ethernet frame, without FCS.
///
/// Dropping it gives the memory back.
pub trait FrameBuf {
    /// The frame's bytes, first octet of the destination address first.
    fn data(&self) -> &[u8];

    /// The same, writable.
    fn data_mut(&mut self) -> &mut [u8];

    /// Makes `n` bytes of room before the frame; `false` (and no change) when the headroom is used up.
    fn prepend(&mut self, n: usize) -> bool;

    /// Takes `n` bytes off the front; `false` (and no change) when the frame is shorter.
    fn trim_front(&mut self, n: usize) -> bool;

    /// Keeps the first `n` bytes; `false` (and no change) when the frame is shorter.
    fn truncate(&mut self, n: usize) -> bool;

    /// Which buffer this is: a number that no other buffer in use has, above 0, and that stays while the frame goes its way.
    fn handle(&self) -> usize;

    /// Starts loading the buffer's own descriptor line into the cache and touches nothing of it: the first of two distances, for
    /// a frame that has long been out of the cache.
    #[inline]
    fn prefetch_handle(&self) {}

    /// Starts loading the frame's headers into the cache. Where they lie stands in the descriptor line, which is read for it.
    #[inline]
    fn prefetch(&self) {}

    /// Gives back many frames at once.
    #[inline]
    fn free_all(frames: &mut ArrayVec<Self, BURST>)
    where
        Self: Sized,
    {
        frames.clear();
    }
}

/// A burst that changes hands by its pointer: among those who receive, keep and send frames each has a row, and they swap them.
pub type FrameVec<B> = Box<ArrayVec<B, BURST>>;

/// The worker's flow-cache slot a frame was counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSlot(pub u32);

impl FlowSlot {
    /// The frame belongs to no sampled flow.
    pub const NONE: FlowSlot = FlowSlot(u32::MAX);
}

/// What a frame must still know after it was queued: 12 bytes beside the buffer's pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Meta {
    /// Flow-cache slot, by which a strike is owed to the sender.
    pub slot: FlowSlot,
    /// Bytes of the frame.
    pub len: u16,
    /// What it is charged to: the worker that took it in, the port it came in by, its priority.
    pub group: GroupId,
    /// Port it leaves by.
    pub egress: PortId,
    /// Its queue.
    pub priority: Priority,
    /// What may be done to it on the way out.
    pub flags: MetaFlags,
}

impl Meta {
    /// The note of an empty cell.
    pub const NOTHING: Meta = Meta {
        slot: FlowSlot::NONE,
        len: 0,
        group: GroupId::NONE,
        egress: PortId(0),
        priority: Priority::new(0),
        flags: MetaFlags(0),
    };

    /// The meta of an untagged IPv4 frame of `len` bytes that the first worker took in by `ingress`, to leave by `egress`
    /// in the queue `priority`; it may not be marked, and NPCC has not seen it.
    #[must_use]
    pub fn of(len: usize, ingress: PortId, egress: PortId, priority: Priority) -> Meta {
        Meta {
            slot: FlowSlot::NONE,
            len: low16(len),
            group: GroupId::new(WorkerId::FIRST, ingress, priority),
            egress,
            priority,
            flags: MetaFlags::default(),
        }
    }

    /// Bytes on the wire, overhead included.
    #[inline]
    #[must_use]
    pub fn wire_len(&self) -> u16 {
        wire_len(self.len.into())
    }

    /// Port it came in by; none for a frame the switch made itself.
    #[inline]
    #[must_use]
    pub fn ingress(&self) -> Option<PortId> {
        (!self.group.is_none()).then(|| self.group.ingress())
    }
}

/// Bits that say how a frame may be changed on its way out: of [`Meta::flags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetaFlags(pub u8);

impl MetaFlags {
    /// IPv6 (else IPv4).
    pub const IPV6: u8 = 1;
    /// ECT(0) or ECT(1), and of a kind that may be marked CE.
    pub const MARKABLE: u8 = 2;
    /// The frame as it is sent has a VLAN tag.
    pub const TAGGED: u8 = 4;
    /// CE on arrival, of a kind that may be marked CE.
    pub const MARKED: u8 = 8;

    /// The flags of a frame as it was read: family, tag, ECN.
    #[must_use]
    pub const fn of(parsed: &Parsed) -> MetaFlags {
        let family = if parsed.is_v6() { MetaFlags::IPV6 } else { 0 };
        let tag = if parsed.tags > 0 {
            MetaFlags::TAGGED
        } else {
            0
        };
        MetaFlags(family | tag | MetaFlags::of_ecn(parsed.tos).0)
    }

    /// What the ECN field, the low two bits of `tos`, allows (RFC 3168 section 5).
    #[inline]
    #[must_use]
    pub const fn of_ecn(tos: u8) -> MetaFlags {
        // Not-ECT, ECT(1), ECT(0), CE: an octet each.
        const BY_ECN: u32 = u32::from_le_bytes([
            0,
            MetaFlags::MARKABLE,
            MetaFlags::MARKABLE,
            MetaFlags::MARKED,
        ]);
        let [flags, ..] = (BY_ECN >> (8 * (tos & 3))).to_le_bytes();
        MetaFlags(flags)
    }

    /// These flags for a RoCEv2 packet of this class: some may never be marked.
    #[inline]
    #[must_use]
    pub const fn of_class(self, traits: Traits) -> MetaFlags {
        if traits.any(Traits::UNMARKABLE) {
            MetaFlags(self.0 & (MetaFlags::IPV6 | MetaFlags::TAGGED))
        } else {
            self
        }
    }

    /// Whether all of `bits` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }

    /// Offset of the IP header in the frame as it is sent.
    #[inline]
    #[must_use]
    pub const fn l3_off(self) -> usize {
        ethernet::HEADER_LEN
            + (self.0 & MetaFlags::TAGGED) as usize / MetaFlags::TAGGED as usize * ethernet::TAG_LEN
    }
}

/// A frame in a queue.
#[derive(Debug)]
pub struct Queued<B> {
    /// The buffer.
    pub buf: B,
    /// What travels with it.
    pub meta: Meta,
}

/// Bytes on the wire of a frame of `len` bytes (without FCS).
#[inline]
#[must_use]
pub fn wire_len(len: usize) -> u16 {
    // Ethernet pads to 60 + FCS; the overhead counts the FCS.
    low16(len.clamp(60, LONGEST) + WIRE_OVERHEAD as usize)
}

/// The longest frame whose length on the wire fits its field.
pub(crate) const LONGEST: usize = u16::MAX as usize - WIRE_OVERHEAD as usize;

/// A frame on the heap: stands in for an mbuf in tests, benches and the simulator. One pointer large, as an mbuf is.
#[derive(Debug, Clone)]
pub struct HeapFrame(Box<Heap>);

#[derive(Debug, Clone)]
struct Heap {
    bytes: Vec<u8>,
    start: usize,
}

impl HeapFrame {
    /// Headroom of a fresh frame, as DPDK's `RTE_PKTMBUF_HEADROOM`.
    pub const HEADROOM: usize = 128;

    /// A frame with these bytes.
    #[must_use]
    pub fn new(frame: &[u8]) -> HeapFrame {
        let mut bytes = vec![0; HeapFrame::HEADROOM];
        bytes.extend_from_slice(frame);
        HeapFrame(Box::new(Heap {
            bytes,
            start: HeapFrame::HEADROOM,
        }))
    }
}

impl FrameBuf for HeapFrame {
    fn data(&self) -> &[u8] {
        self.0.bytes.get(self.0.start..).unwrap_or_default()
    }

    fn data_mut(&mut self) -> &mut [u8] {
        let Heap { bytes, start } = &mut *self.0;
        bytes.get_mut(*start..).unwrap_or_default()
    }

    fn prepend(&mut self, n: usize) -> bool {
        match self.0.start.checked_sub(n) {
            Some(start) => {
                self.0.start = start;
                true
            }
            None => false,
        }
    }

    fn trim_front(&mut self, n: usize) -> bool {
        if n > self.data().len() {
            return false;
        }
        self.0.start += n;
        true
    }

    fn truncate(&mut self, n: usize) -> bool {
        let Heap { bytes, start } = &mut *self.0;
        let fits = *start + n <= bytes.len();
        if fits {
            bytes.truncate(*start + n);
        }
        fits
    }

    fn handle(&self) -> usize {
        std::ptr::from_ref(&*self.0).addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queued_frame_is_small() {
        assert_eq!(size_of::<Meta>(), 12);
        assert_eq!(size_of::<Option<Queued<Box<u8>>>>(), 24);
    }

    #[test]
    fn short_frames_cost_a_padded_one() {
        assert_eq!(wire_len(42), 84);
        assert_eq!(wire_len(60), 84);
        assert_eq!(wire_len(1082), 1106);
    }

    #[test]
    fn a_heap_frame_grows_and_shrinks_at_the_front_and_shrinks_at_the_end() {
        let mut frame = HeapFrame::new(&[1, 2, 3]);
        assert!(frame.prepend(2));
        assert_eq!(frame.data(), &[0, 0, 1, 2, 3]);
        assert!(!frame.prepend(HeapFrame::HEADROOM));
        assert!(frame.trim_front(3));
        assert_eq!(frame.data(), &[2, 3]);
        assert!(!frame.trim_front(3));
        assert!(!frame.truncate(3));
        assert!(frame.truncate(1));
        assert_eq!(frame.data(), &[2]);
    }
}

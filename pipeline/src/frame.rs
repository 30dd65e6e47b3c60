//! Frame buffer trait of the pipeline, and the metadata that travels with a frame.
//!
//! The pipeline never names DPDK: an mbuf in production and a heap buffer in every test and in the simulator both implement
//! [`FrameBuf`]. A frame is one contiguous segment.

use arrayvec::ArrayVec;

use crate::bits::low16;
use crate::buffer::GroupId;
use crate::parse::Parsed;
use crate::units::{BURST, PortId, Priority, WIRE_OVERHEAD, WorkerId};
use crate::wire::bth::Traits;
use crate::wire::ethernet;

/// An owned frame buffer: one contiguous Ethernet frame, without FCS.
///
/// Dropping it frees the memory.
pub trait FrameBuf {
    /// Returns the frame's bytes, from the first octet of the destination address.
    fn data(&self) -> &[u8];

    /// Returns the frame's bytes, writable.
    fn data_mut(&mut self) -> &mut [u8];

    /// Extends the frame by `n` bytes at the front; returns false, and changes nothing, if the headroom is too small.
    fn prepend(&mut self, n: usize) -> bool;

    /// Removes `n` bytes from the front; returns false, and changes nothing, if the frame is shorter.
    fn trim_front(&mut self, n: usize) -> bool;

    /// Keeps the first `n` bytes; returns false, and changes nothing, if the frame is shorter.
    fn truncate(&mut self, n: usize) -> bool;

    /// Returns true if the driver put the frame into several buffers, of which `data` is the first.
    fn is_chain(&self) -> bool {
        false
    }

    /// Returns the identity of the buffer: a number above 0 that no other buffer in use has, and that stays the same
    /// throughout the path.
    fn handle(&self) -> usize;

    /// Prefetches the cache line of the buffer's descriptor without reading it: the first of two prefetch distances, for a
    /// frame that has long left the cache.
    #[inline]
    fn prefetch_handle(&self) {}

    /// Prefetches the frame's headers. Their address is in the descriptor, which is read for it.
    #[inline]
    fn prefetch(&self) {}

    /// Frees many frames at once.
    #[inline]
    fn free_all(frames: &mut ArrayVec<Self, BURST>)
    where
        Self: Sized,
    {
        frames.clear();
    }
}

/// A burst that is passed on by pointer: a receive queue, each run, and a transmit queue have one, and swap them when they pass
/// frames on.
pub type FrameVec<B> = Box<ArrayVec<B, BURST>>;

/// Slot of the worker's flow cache in which a frame was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSlot(pub u32);

impl FlowSlot {
    /// Slot of a frame that belongs to no sampled flow.
    pub const NONE: FlowSlot = FlowSlot(u32::MAX);
}

/// Metadata of a queued frame: 12 bytes beside the buffer's pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Meta {
    /// Flow-cache slot, by which a strike is owed to the sender.
    pub slot: FlowSlot,
    /// Length of the frame in bytes.
    pub len: u16,
    /// Ingress group it is charged to: the worker and port that received it, and its priority.
    pub group: GroupId,
    /// Egress port.
    pub egress: PortId,
    /// Priority: its queue at the egress port.
    pub priority: Priority,
    /// Changes allowed on the way out.
    pub flags: MetaFlags,
}

impl Meta {
    /// Metadata of an empty cell.
    pub const NOTHING: Meta = Meta {
        slot: FlowSlot::NONE,
        len: 0,
        group: GroupId::NONE,
        egress: PortId(0),
        priority: Priority::new(0),
        flags: MetaFlags(0),
    };

    /// Returns the metadata of an untagged IPv4 frame of `len` bytes that the first worker received on `ingress`, to leave by
    /// `egress` in the queue `priority`; it may not be marked, and NPCC has not seen it.
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

    /// Returns its bytes on the wire, overhead included.
    #[inline]
    #[must_use]
    pub fn wire_len(&self) -> u16 {
        wire_len(self.len.into())
    }

    /// Returns the ingress port; `None` for a frame the switch made itself.
    #[inline]
    #[must_use]
    pub fn ingress(&self) -> Option<PortId> {
        (!self.group.is_none()).then(|| self.group.ingress())
    }
}

/// Flag bits, in [`Meta::flags`], that control how a frame may be changed on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetaFlags(pub u8);

impl MetaFlags {
    /// Flag of IPv6; IPv4 if not set.
    pub const IPV6: u8 = 1;
    /// Flag of ECT(0) or ECT(1), on a frame of a kind that may be marked CE.
    pub const MARKABLE: u8 = 2;
    /// Flag of a frame that has a VLAN tag as it is sent.
    pub const TAGGED: u8 = 4;
    /// Flag of CE on arrival, on a frame of a kind that may be marked CE.
    pub const MARKED: u8 = 8;

    /// Returns the flags of a parsed frame: family, tag, ECN.
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

    /// Returns the flags that the ECN field, the low two bits of `tos`, implies (RFC 3168 section 5).
    #[inline]
    #[must_use]
    pub const fn of_ecn(tos: u8) -> MetaFlags {
        // One octet each for Not-ECT, ECT(1), ECT(0), CE.
        const BY_ECN: u32 = u32::from_le_bytes([
            0,
            MetaFlags::MARKABLE,
            MetaFlags::MARKABLE,
            MetaFlags::MARKED,
        ]);
        let [flags, ..] = (BY_ECN >> (8 * (tos & 3))).to_le_bytes();
        MetaFlags(flags)
    }

    /// Returns these flags for a RoCEv2 packet with these traits: some classes may never be marked.
    #[inline]
    #[must_use]
    pub const fn of_class(self, traits: Traits) -> MetaFlags {
        if traits.any(Traits::UNMARKABLE) {
            MetaFlags(self.0 & (MetaFlags::IPV6 | MetaFlags::TAGGED))
        } else {
            self
        }
    }

    /// Returns true if all of `bits` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }

    /// Returns the offset of the IP header in the frame as it is sent.
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
    /// Buffer of the frame.
    pub buf: B,
    /// Metadata that travels with it.
    pub meta: Meta,
}

/// Returns the bytes on the wire of a frame of `len` bytes (without FCS).
#[inline]
#[must_use]
pub fn wire_len(len: usize) -> u16 {
    // Ethernet pads to 60 + FCS; the overhead counts the FCS.
    low16(len.clamp(60, LONGEST) + WIRE_OVERHEAD as usize)
}

/// Length of the longest frame whose length on the wire fits in 16 bits.
pub(crate) const LONGEST: usize = u16::MAX as usize - WIRE_OVERHEAD as usize;

/// Frame on the heap: stands in for an mbuf in tests, benches and the simulator. It is one pointer large, as an mbuf is.
#[derive(Debug, Clone)]
pub struct HeapFrame(Box<Heap>);

#[derive(Debug, Clone)]
struct Heap {
    bytes: Vec<u8>,
    start: usize,
    is_chain: bool,
}

impl HeapFrame {
    /// Headroom of a fresh frame in bytes, as DPDK's `RTE_PKTMBUF_HEADROOM`.
    pub const HEADROOM: usize = 128;

    /// Returns a frame with these bytes.
    #[must_use]
    pub fn new(frame: &[u8]) -> HeapFrame {
        let mut bytes = vec![0; HeapFrame::HEADROOM];
        bytes.extend_from_slice(frame);
        HeapFrame(Box::new(Heap {
            bytes,
            start: HeapFrame::HEADROOM,
            is_chain: false,
        }))
    }

    /// Returns a frame of which these bytes are the first buffer, and others follow.
    #[must_use]
    pub fn chain(first: &[u8]) -> HeapFrame {
        let mut frame = HeapFrame::new(first);
        frame.0.is_chain = true;
        frame
    }
}

impl FrameBuf for HeapFrame {
    fn data(&self) -> &[u8] {
        self.0.bytes.get(self.0.start..).unwrap_or_default()
    }

    fn data_mut(&mut self) -> &mut [u8] {
        let Heap { bytes, start, .. } = &mut *self.0;
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
        let Heap { bytes, start, .. } = &mut *self.0;
        let fits = *start + n <= bytes.len();
        if fits {
            bytes.truncate(*start + n);
        }
        fits
    }

    fn is_chain(&self) -> bool {
        self.0.is_chain
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

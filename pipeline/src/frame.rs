//! What the pipeline asks of a frame buffer, and what travels with a frame.
//!
//! The pipeline never names DPDK: an mbuf in production and a heap buffer in every test and in the simulator both
//! implement [`FrameBuf`]. A frame is one contiguous segment.

use arrayvec::ArrayVec;

use crate::bits::low16;
use crate::buffer::GroupId;
use crate::units::{BURST, PortId, Priority, WIRE_OVERHEAD, WorkerId};

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
pub type Row<B> = Box<ArrayVec<B, BURST>>;

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
    /// Bytes on the wire, overhead included.
    pub wire_len: u16,
    /// What it is charged to: the worker that took it in, the port it came in by, its priority.
    pub group: GroupId,
    /// Port it leaves by.
    pub egress: PortId,
    /// Its queue.
    pub priority: Priority,
    /// Offset of the IP header in the frame as it will be sent.
    pub l3_off: u8,
    /// What may be done to it on the way out.
    pub flags: MetaFlags,
    /// Flow-cache slot, for `notified_until`.
    pub slot: FlowSlot,
}

impl Meta {
    /// Of no frame.
    pub const NOTHING: Meta = Meta {
        slot: FlowSlot::NONE,
        wire_len: 0,
        group: GroupId::NONE,
        egress: PortId(0),
        priority: Priority::new(0),
        l3_off: 0,
        flags: MetaFlags(0),
    };

    /// Of an untagged IPv4 frame of `len` bytes that the first worker took in by `ingress`, to leave by `egress` in the
    /// queue `priority`; it may not be marked, and NPCC has not seen it.
    #[must_use]
    pub fn of(len: usize, ingress: PortId, egress: PortId, priority: Priority) -> Meta {
        Meta {
            slot: FlowSlot::NONE,
            wire_len: wire_len(len),
            group: GroupId::new(WorkerId::FIRST, ingress, priority),
            egress,
            priority,
            l3_off: 14,
            flags: MetaFlags::default(),
        }
    }

    /// Egress port and priority in one word: equal for frames of one queue, and for no others.
    #[inline]
    #[must_use]
    pub const fn queue(&self) -> u16 {
        u16::from_le_bytes([self.egress.0, self.priority.get()])
    }

    /// Port it came in by; none for a frame the switch made itself.
    #[inline]
    #[must_use]
    pub fn ingress(&self) -> Option<PortId> {
        (self.group != GroupId::NONE).then(|| self.group.ingress())
    }
}

/// Bits of [`Meta::flags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetaFlags(pub u8);

impl MetaFlags {
    /// IPv6 (else IPv4).
    pub const IPV6: u8 = 1;
    /// ECT(0) or ECT(1), and of a kind that may be marked CE.
    pub const MARKABLE: u8 = 2;
    /// CE on arrival, of a kind that may be marked CE.
    pub const MARKED: u8 = 8;

    /// Whether all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
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
    fn a_heap_frame_grows_and_shrinks_at_the_front() {
        let mut frame = HeapFrame::new(&[1, 2, 3]);
        assert!(frame.prepend(2));
        assert_eq!(frame.data(), &[0, 0, 1, 2, 3]);
        assert!(!frame.prepend(HeapFrame::HEADROOM));
        assert!(frame.trim_front(3));
        assert_eq!(frame.data(), &[2, 3]);
        assert!(!frame.trim_front(3));
    }
}

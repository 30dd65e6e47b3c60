//! Owned packet buffer (mbuf).
//!
//! ```text
//!  rte_mbuf      | headroom | data (first segment)        | tailroom |
//!  (2 lines)     ^ buf_addr ^ buf_addr + data_off          ^ + data_len ^ buf_addr + buf_len
//! ```
//!
//! Law: one owner, freed once. Every frame here fits its first segment unless a driver chained it;
//! `data` is always the first segment, `len` the whole frame. No function here clones or shares a
//! buffer.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use dpdk_sys::rte_mbuf;

use crate::layout::{BUF_ADDR, BUF_LEN, DATA_LEN, DATA_OFF, NB_SEGS, NEXT, PKT_LEN, PORT};

/// Bytes free before the data of a fresh buffer, in which headers can be prepended.
#[allow(clippy::cast_possible_truncation, reason = "the assertion below")]
pub const HEADROOM: u16 = dpdk_sys::RTE_PKTMBUF_HEADROOM as u16;
const _: () = assert!(dpdk_sys::RTE_PKTMBUF_HEADROOM <= 0xffff);

/// Frame in DPDK's memory. Dropping it returns the buffer, and any chained to it, to its pool.
#[derive(derive_more::Debug)]
#[repr(transparent)]
#[debug("Mbuf {{ len: {}, segments: {}, port: {:?}, .. }}", self.len(), self.segment_count(), self.port())]
pub struct Mbuf {
    raw: NonNull<rte_mbuf>,
}

/// Bursts reinterpret arrays of pointers as arrays of `Mbuf`.
const _: () = assert!(size_of::<Option<Mbuf>>() == size_of::<*mut rte_mbuf>());

// SAFETY: the value is the only reference to the buffer and to its chain, and pools take buffers
// back from any thread. It is not Sync: reading fields while a driver callback on another thread
// writes them is not ruled out by type.
unsafe impl Send for Mbuf {}

/// Error of writing a frame into a buffer.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FillError {
    /// The frame is longer than the space behind the headroom.
    #[error(
        "a frame of {needed} bytes does not fit the {room} bytes of one buffer: raise the pool's \
         frame_room"
    )]
    TooLong {
        /// Bytes of the frame.
        needed: usize,
        /// Bytes available.
        room: usize,
    },
    /// The buffer is a chain.
    #[error("the buffer is a chain of {segments} segments: take a fresh one")]
    Chained {
        /// Number of segments in the chain.
        segments: u16,
    },
}

impl Mbuf {
    /// Takes ownership of a buffer.
    ///
    /// # Safety
    /// `raw` is a live mbuf, first of its chain, with reference count 1, that nobody else will use
    /// or free.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<rte_mbuf>) -> Self {
        Self { raw }
    }

    /// Releases ownership of the buffer to the user of the pointer.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<rte_mbuf> {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }

    /// Returns the buffer's address: an identifier while it is in use, constant from reception to transmission.
    #[inline]
    #[must_use]
    pub fn address(&self) -> usize {
        self.raw.as_ptr().addr()
    }

    /// Returns the first segment's bytes: the whole frame unless [`segment_count`](Self::segment_count) is
    /// above 1.
    #[inline]
    #[must_use]
    pub fn data(&self) -> &[u8] {
        // SAFETY: `self` owns the chain, so its first segment is live and not being written.
        unsafe { segment(self.raw.as_ptr()) }
    }

    /// Returns the first segment's bytes, for writing.
    #[inline]
    #[must_use]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let raw = self.raw.as_ptr();
        // SAFETY: DPDK keeps data_off + data_len <= buf_len, and so do the methods below; the bytes
        // are DPDK's mapped memory, always initialised; `&mut self` is the only way to them while
        // the slice lives.
        unsafe {
            let start = BUF_ADDR.get(raw).add(usize::from(DATA_OFF.get(raw)));
            slice::from_raw_parts_mut(start, usize::from(DATA_LEN.get(raw)))
        }
    }

    /// Number of bytes of the whole frame, over all segments, without FCS.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        // SAFETY: `self` owns a live mbuf.
        unsafe { PKT_LEN.get(self.raw.as_ptr()) }
    }

    /// Returns true if the frame has no bytes, as a fresh buffer.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of segments in the chain, at least 1.
    #[inline]
    #[must_use]
    pub fn segment_count(&self) -> u16 {
        // SAFETY: `self` owns a live mbuf.
        unsafe { NB_SEGS.get(self.raw.as_ptr()) }
    }

    /// Iterates over the bytes of each segment in order; together they are the whole frame.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        Segments {
            next: self.raw.as_ptr(),
            mbuf: PhantomData,
        }
    }

    /// Returns EAL's number of the port that received the frame. Some software drivers do not set it.
    #[inline]
    #[must_use]
    pub fn port(&self) -> u16 {
        // SAFETY: `self` owns a live mbuf.
        unsafe { PORT.get(self.raw.as_ptr()) }
    }

    /// Number of bytes free before the data.
    #[inline]
    #[must_use]
    pub fn headroom(&self) -> u16 {
        // SAFETY: `self` owns a live mbuf.
        unsafe { DATA_OFF.get(self.raw.as_ptr()) }
    }

    /// Number of bytes free behind the data of the first segment.
    #[inline]
    #[must_use]
    pub fn tailroom(&self) -> u16 {
        let raw = self.raw.as_ptr();
        // SAFETY: `self` owns a live mbuf.
        let (size, offset, len) =
            unsafe { (BUF_LEN.get(raw), DATA_OFF.get(raw), DATA_LEN.get(raw)) };
        size.saturating_sub(offset).saturating_sub(len)
    }

    /// Extends the frame by `n` bytes at the front, with undefined content; returns false, and does nothing,
    /// if the headroom is smaller.
    #[inline]
    #[must_use]
    pub fn prepend(&mut self, n: usize) -> bool {
        let raw = self.raw.as_ptr();
        let Ok(n) = u16::try_from(n) else {
            return false;
        };
        // SAFETY: `self` owns the mbuf alone. The start moves down by no more than the headroom and
        // the lengths grow by as much, so the data stay inside the buffer: data_len + n <= data_len
        // + data_off <= buf_len fits u16.
        unsafe {
            let Some(offset) = DATA_OFF.get(raw).checked_sub(n) else {
                return false;
            };
            let Some(total) = PKT_LEN.get(raw).checked_add(u32::from(n)) else {
                return false;
            };
            DATA_OFF.set(raw, offset);
            DATA_LEN.set(raw, DATA_LEN.get(raw) + n);
            PKT_LEN.set(raw, total);
        }
        true
    }

    /// Removes `n` bytes from the front; returns false, and does nothing, if the first segment has fewer.
    #[inline]
    #[must_use]
    pub fn trim_front(&mut self, n: usize) -> bool {
        let raw = self.raw.as_ptr();
        let Ok(n) = u16::try_from(n) else {
            return false;
        };
        // SAFETY: `self` owns the mbuf alone. The start moves up by no more than data_len, and the
        // lengths shrink by as much; pkt_len is the sum over segments, so it is at least data_len.
        unsafe {
            let Some(len) = DATA_LEN.get(raw).checked_sub(n) else {
                return false;
            };
            DATA_OFF.set(raw, DATA_OFF.get(raw) + n);
            DATA_LEN.set(raw, len);
            PKT_LEN.set(raw, PKT_LEN.get(raw) - u32::from(n));
        }
        true
    }

    /// Shortens the frame to `n` bytes; returns false, and does nothing, if it is shorter already or a
    /// chain.
    #[inline]
    #[must_use]
    pub fn truncate(&mut self, n: usize) -> bool {
        let raw = self.raw.as_ptr();
        let Ok(n) = u16::try_from(n) else {
            return false;
        };
        // SAFETY: `self` owns the mbuf alone; both lengths only shrink, and are equal in a single
        // segment.
        unsafe {
            if self.segment_count() != 1 || n > DATA_LEN.get(raw) {
                return false;
            }
            DATA_LEN.set(raw, n);
            PKT_LEN.set(raw, u32::from(n));
        }
        true
    }

    /// Replaces the content by `frame`, behind the present headroom.
    ///
    /// # Errors
    /// When the frame is too long or the buffer is a chain; the content is then as before.
    pub fn fill(&mut self, frame: &[u8]) -> Result<(), FillError> {
        let raw = self.raw.as_ptr();
        let segments = self.segment_count();
        if segments != 1 {
            return Err(FillError::Chained { segments });
        }
        // SAFETY: `self` owns the mbuf alone.
        let room = unsafe { BUF_LEN.get(raw).saturating_sub(DATA_OFF.get(raw)) };
        let len = u16::try_from(frame.len())
            .ok()
            .filter(|&len| len <= room)
            .ok_or_else(|| FillError::TooLong {
                needed: frame.len(),
                room: usize::from(room),
            })?;
        // SAFETY: data_off + len <= buf_len was checked, and `self` owns the mbuf alone.
        unsafe {
            DATA_LEN.set(raw, len);
            PKT_LEN.set(raw, u32::from(len));
        }
        self.data_mut().copy_from_slice(frame);
        Ok(())
    }

    /// Prefetches the first cache line of the data. The call reads the buffer's own header
    /// (`buf_addr` and `data_off`), so prefetch that earlier with
    /// [`prefetch_header`](Self::prefetch_header).
    #[inline]
    pub fn prefetch(&self) {
        let raw = self.raw.as_ptr();
        // SAFETY: `self` owns a live mbuf; the address is inside its buffer or one past it.
        prefetch(unsafe { BUF_ADDR.get(raw).add(usize::from(DATA_OFF.get(raw))) });
    }

    /// Prefetches both cache lines of the buffer's header, `struct rte_mbuf`: lengths and address lie
    /// in the first, and what freeing reads (`next`) in the second. The call reads no memory: the
    /// pointer is the address of the lines.
    #[inline]
    pub fn prefetch_header(&self) {
        let first: *const u8 = self.raw.as_ptr().cast();
        prefetch(first);
        prefetch(first.wrapping_add(64));
    }
}

/// The fields that [`Mbuf::prefetch`] and the lengths read lie in the first line that
/// [`Mbuf::prefetch_header`] prefetches.
const _: () = assert!(
    dpdk_sys::NPCC_MBUF_BUF_ADDR < 64
        && dpdk_sys::NPCC_MBUF_DATA_OFF < 64
        && dpdk_sys::NPCC_MBUF_DATA_LEN < 64
        && dpdk_sys::NPCC_MBUF_PKT_LEN < 64
);

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: `self` owns the chain and is gone after this; the array of one is only read.
        unsafe { dpdk_sys::rte_pktmbuf_free_bulk(&raw mut raw, 1) };
    }
}

/// Iterator over the segments of a frame, see [`Mbuf::segments`].
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    next: *mut rte_mbuf,
    mbuf: PhantomData<&'a Mbuf>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next.is_null() {
            return None;
        }
        let this = self.next;
        // SAFETY: not null, so a segment of the chain that the borrowed Mbuf owns, which lives for
        // 'a.
        unsafe {
            self.next = NEXT.get(this);
            Some(segment(this))
        }
    }
}

/// # Safety
/// `raw` is a live segment that stays live and unwritten for 'a.
#[inline]
unsafe fn segment<'a>(raw: *mut rte_mbuf) -> &'a [u8] {
    // SAFETY: DPDK keeps data_off + data_len <= buf_len, and the bytes are mapped and initialised;
    // the rest is the caller's contract.
    unsafe {
        let start = BUF_ADDR.get(raw).add(usize::from(DATA_OFF.get(raw)));
        slice::from_raw_parts(start, usize::from(DATA_LEN.get(raw)))
    }
}

/// Hints the cache to fetch a line; no architecture but x86-64 gets one yet, which costs time only.
#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

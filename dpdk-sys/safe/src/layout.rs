//! Fields of `rte_mbuf` that are read and written from Rust, by their offsets.
//!
//! A field access is one load or store, as in C. The offsets come from the C compiler (see
//! `dpdk-sys`), so that releases which nest the fields differently need no change here.

use std::marker::PhantomData;

use dpdk_sys::rte_mbuf;

/// Field of type `T` at a fixed offset.
pub(crate) struct Field<T> {
    offset: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T: Copy> Field<T> {
    const fn at(offset: u32) -> Self {
        Self {
            offset: offset as usize,
            kind: PhantomData,
        }
    }

    /// # Safety
    /// `mbuf` points to a live mbuf that no other thread writes.
    #[inline(always)]
    pub(crate) unsafe fn get(&self, mbuf: *const rte_mbuf) -> T {
        // SAFETY: the C compiler says that a T lies at this offset, naturally aligned; the caller
        // says that the mbuf is live and not being written.
        unsafe { mbuf.byte_add(self.offset).cast::<T>().read() }
    }

    /// # Safety
    /// `mbuf` points to a live mbuf that the caller alone uses, and the value keeps its invariants.
    #[inline(always)]
    pub(crate) unsafe fn set(&self, mbuf: *mut rte_mbuf, value: T) {
        // SAFETY: as in `get`, and the caller has the mbuf to itself.
        unsafe { mbuf.byte_add(self.offset).cast::<T>().write(value) }
    }
}

/// Start of the buffer that holds the segment's bytes.
pub(crate) const BUF_ADDR: Field<*mut u8> = Field::at(dpdk_sys::NPCC_MBUF_BUF_ADDR);
/// Offset of the first byte in the buffer.
pub(crate) const DATA_OFF: Field<u16> = Field::at(dpdk_sys::NPCC_MBUF_DATA_OFF);
/// Number of segments in the chain; valid in the first.
pub(crate) const NB_SEGS: Field<u16> = Field::at(dpdk_sys::NPCC_MBUF_NB_SEGS);
/// EAL's number of the port that received the frame.
pub(crate) const PORT: Field<u16> = Field::at(dpdk_sys::NPCC_MBUF_PORT);
/// Bytes of the whole frame; valid in the first segment.
pub(crate) const PKT_LEN: Field<u32> = Field::at(dpdk_sys::NPCC_MBUF_PKT_LEN);
/// Bytes in this segment.
pub(crate) const DATA_LEN: Field<u16> = Field::at(dpdk_sys::NPCC_MBUF_DATA_LEN);
/// Size of this segment's buffer in bytes.
pub(crate) const BUF_LEN: Field<u16> = Field::at(dpdk_sys::NPCC_MBUF_BUF_LEN);
/// Pool that the segment belongs to.
pub(crate) const POOL: Field<*mut dpdk_sys::rte_mempool> = Field::at(dpdk_sys::NPCC_MBUF_POOL);
/// Next segment, or null.
pub(crate) const NEXT: Field<*mut rte_mbuf> = Field::at(dpdk_sys::NPCC_MBUF_NEXT);

//! Transmit queue.
//!
//! Law: one sender (`&mut self`, no `Clone`), and only while the port runs. Frames that the device took are
//! no longer in the row, nor is a frame that was freed instead of sent ([`TxQueue::refused`]); those that the device
//! did not take still are, at the front and in order.
//!
//! A full queue is no error here: whether to hold or to drop the rest is the caller's policy.

use std::ffi::c_void;
use std::sync::Arc;

use super::fast_free::FastFree;
use super::fast_path::{fast_path, load};
use super::shared::PortCore;
use super::state::{Direction, Sending};
use crate::frames::Frames;

/// Transmit queue, taken by its only sender. Dropping it returns the queue to its port.
#[derive(derive_more::Debug)]
#[debug("TxQueue {{ port: {:?}, queue: {queue} }}", core.name)]
pub struct TxQueue {
    core: Arc<PortCore>,
    ops: *const dpdk_sys::rte_eth_fp_ops,
    queue: u16,
    descriptors: u16,
    fast_free: Option<FastFree>,
    refused: u64,
}

// SAFETY: the pointer is to a static table; a queue may be used from any one thread at a time, and
// `&mut self` sees to that.
unsafe impl Send for TxQueue {}

impl TxQueue {
    /// Creates the queue, which the caller has taken out of the port's state.
    pub(super) fn new(core: Arc<PortCore>, queue: u16, sending: Sending) -> Self {
        Self {
            ops: fast_path(core.id),
            core,
            queue,
            descriptors: sending.descriptors,
            fast_free: sending.fast_free,
            refused: 0,
        }
    }

    /// Sends from the front of the row as many frames as the device takes. Returns the number of frames that
    /// left the row: those sent, or 1 for a frame that was freed instead ([`refused`](Self::refused)). The
    /// rest moves to the front.
    #[inline]
    pub fn tx(&mut self, row: &mut impl Frames) -> usize {
        self.tx_up_to(row, usize::MAX)
    }

    /// Sends as [`tx`](Self::tx), but at most `most` frames.
    #[inline]
    pub fn tx_up_to(&mut self, row: &mut impl Frames, most: usize) -> usize {
        let (slots, lent) = row.lend();
        let mut count = lent.min(u16::try_from(most).unwrap_or(u16::MAX));
        let sent = match self.fast_free {
            // SAFETY: the slots were lent just now, and are so many.
            None => unsafe { self.send(slots, count) }.min(count),
            // SAFETY: as above; what may not be sent is the first one, and is the row's no more.
            Some(fast) => unsafe {
                let offered = count;
                count = fast.sendable(slots, offered);
                if count == 0 && offered > 0 {
                    self.refuse(slots)
                } else {
                    self.send(slots, count).min(count)
                }
            },
        };
        // SAFETY: the driver has taken over so many of those lent, the first ones.
        unsafe { row.take_back(usize::from(lent), usize::from(sent)) };
        usize::from(sent)
    }

    /// Passes `count` frames to the driver; returns the number it took, from the first on.
    ///
    /// # Safety
    /// The slots are so many owned buffers.
    #[inline]
    unsafe fn send(&mut self, slots: *mut *mut dpdk_sys::rte_mbuf, count: u16) -> u16 {
        if count == 0 {
            return 0;
        }
        // SAFETY: the port is started as long as this value lives, so its table entry is set and
        // the queue has an entry in `txq.data`; the slots are owned buffers, of which the driver
        // takes over those it counts in its answer; nobody else sends on the queue.
        unsafe {
            let Some(send) = load(&raw const (*self.ops).tx_pkt_burst) else {
                return 0;
            };
            let queue = usize::from(self.queue);
            let callback = load((*self.ops).txq.clbk.add(queue));
            if !callback.is_null() {
                let left = self.callbacks(slots, count, callback).min(count);
                if left < count {
                    // A callback has taken frames out, and which of the slots are owned is not known: all count as taken, and those
                    // that the driver leaves are lost rather than freed twice.
                    send(load((*self.ops).txq.data.add(queue)), slots, left);
                    return count;
                }
            }
            send(load((*self.ops).txq.data.add(queue)), slots, count)
        }
    }

    /// Frees the first frame, which is a chain or of another pool; returns 1, for the frame that is gone.
    ///
    /// # Safety
    /// The first slot is an owned buffer, which its row is told to forget.
    #[cold]
    unsafe fn refuse(&mut self, slots: *mut *mut dpdk_sys::rte_mbuf) -> u16 {
        // SAFETY: one owned chain, whoever's pool it is of.
        unsafe { dpdk_sys::rte_pktmbuf_free_bulk(slots, 1) };
        self.refused += 1;
        1
    }

    /// Number of frames freed instead of sent, because the driver returns buffers unread and they were chains
    /// or of another pool: see [`PortConfig::one_pool`](super::PortConfig::one_pool).
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Calls the transmit callbacks, which packet capture (dpdk-dumpcap) installs.
    ///
    /// # Safety
    /// The arguments are those of the burst about to be sent.
    #[cold]
    unsafe fn callbacks(
        &mut self,
        slots: *mut *mut dpdk_sys::rte_mbuf,
        count: u16,
        callback: *mut c_void,
    ) -> u16 {
        // SAFETY: as the inline function of DPDK calls it; the rest is the caller's contract.
        unsafe {
            dpdk_sys::rte_eth_call_tx_callbacks(self.core.id, self.queue, slots, count, callback)
        }
    }

    /// Number of descriptors of the device's ring, one for each frame: as the driver adjusted the requested number.
    #[must_use]
    pub fn descriptors(&self) -> u16 {
        self.descriptors
    }

    /// Returns true if the driver calls the descriptor at `offset` full, false if done: one query, cheap enough for once per burst. `None` when
    /// the driver has no such call, as with every software driver, or when the ring is not that large.
    ///
    /// DPDK documents the offset as counted from the next descriptor to be filled. Drivers understand it in several ways; the answers are the
    /// caller's to judge.
    #[inline]
    #[must_use]
    pub fn is_full(&self, offset: u16) -> Option<bool> {
        // SAFETY: the port is started, so its table entry is set and the queue has an entry; the
        // driver checks the offset.
        let status = unsafe {
            let ask = load(&raw const (*self.ops).tx_descriptor_status)?;
            ask(
                load((*self.ops).txq.data.add(usize::from(self.queue))),
                offset,
            )
        };
        match u32::try_from(status) {
            Ok(dpdk_sys::RTE_ETH_TX_DESC_FULL) => Some(true),
            Ok(_) => Some(false),
            Err(_) => None,
        }
    }

    /// Returns true if at least `frames` of those sent are still in the device's ring, by what DPDK documents; `None` as in
    /// [`is_full`](Self::is_full).
    #[must_use]
    pub fn holds_at_least(&self, frames: u16) -> Option<bool> {
        if frames == 0 {
            return Some(true);
        }
        // Offset 0 is the next descriptor to be filled, so the last filled is at the end of the
        // ring, and the `frames`-th last as many before it.
        self.is_full(self.descriptors.checked_sub(frames)?)
    }

    /// Returns EAL's number of the port.
    #[must_use]
    pub fn port_id(&self) -> u16 {
        self.core.id
    }

    /// Returns the number of the queue in its port.
    #[must_use]
    pub fn index(&self) -> u16 {
        self.queue
    }
}

impl Drop for TxQueue {
    fn drop(&mut self) {
        self.core.give_back(Direction::Tx, self.queue);
    }
}

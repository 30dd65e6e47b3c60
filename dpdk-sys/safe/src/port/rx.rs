//! Receive queue.
//!
//! Law: a queue has one poller (`&mut self`, no `Clone`), and is polled only while its port runs. The
//! frames that a call receives belong to the row before the call returns.
//!
//! The code does what DPDK's inline `rte_eth_rx_burst` does, without its C: one indirect call into the
//! driver. The driver's table entry is read anew each burst and not kept: a driver swaps it under
//! the application while it recovers from a hardware error, and the two loads hit the same cache
//! line every time.

use std::ffi::c_void;
use std::sync::Arc;

use super::chains;
use super::fast_path::{fast_path, load};
use super::shared::PortCore;
use super::state::Direction;
use crate::frames::Frames;
use crate::rx_interrupt::RxInterrupt;

/// Receive queue, taken by its only poller. Dropping it returns the queue to its port.
#[derive(derive_more::Debug)]
#[debug("RxQueue {{ port: {:?}, queue: {queue} }}", core.name)]
pub struct RxQueue {
    core: Arc<PortCore>,
    ops: *const dpdk_sys::rte_eth_fp_ops,
    queue: u16,
    descriptors: u16,
    /// True if the driver may receive a frame in several buffers.
    scatters: bool,
    /// True if the driver answers cheaply how many frames wait.
    tells_fill: bool,
}

/// Returns true if the driver looks at one descriptor, or a register, to tell how many frames wait. mlx5 walks all completions up to there
/// (drivers/net/mlx5/mlx5_rx.c, `rx_queue_count`): up to a cache miss a frame, and most of them when the worker is behind.
fn tells_fill(driver: &str) -> bool {
    !driver.starts_with("mlx5")
}

// SAFETY: the pointer is to a static table; a queue may be polled from any one thread at a time,
// and `&mut self` sees to that.
unsafe impl Send for RxQueue {}

impl RxQueue {
    /// Creates the queue, which the caller has taken out of the port's state.
    pub(super) fn new(core: Arc<PortCore>, queue: u16, descriptors: u16) -> Self {
        Self {
            ops: fast_path(core.id),
            scatters: chains::scatters(core.id, queue),
            tells_fill: tells_fill(&core.driver),
            core,
            queue,
            descriptors,
        }
    }

    /// Number of descriptors of its ring, as the driver has them.
    #[must_use]
    pub fn descriptors(&self) -> u16 {
        self.descriptors
    }

    /// Receives as many frames as are there and fit the row, behind those it holds; returns their
    /// number.
    ///
    /// Some hardware drivers work in steps of 4 to 32 and receive nothing into less room than that:
    /// poll with an empty row of 32 or 64.
    #[inline]
    pub fn rx(&mut self, row: &mut impl Frames) -> usize {
        self.rx_up_to(row, usize::MAX)
    }

    /// Receives as [`rx`](Self::rx), but at most `most` frames. A driver may receive none if `most` is below its step.
    #[inline]
    pub fn rx_up_to(&mut self, row: &mut impl Frames, most: usize) -> usize {
        let (slots, room) = row.spare();
        let room = room.min(u16::try_from(most).unwrap_or(u16::MAX));
        if room == 0 {
            return 0;
        }
        // SAFETY: the port is started as long as this value lives, so its table entry is set and
        // the queue has an entry in `rxq.data`; `room` slots from the pointer on are ours for the
        // driver to write; nobody else polls the queue.
        let received = unsafe {
            let Some(receive) = load(&raw const (*self.ops).rx_pkt_burst) else {
                return 0;
            };
            let queue = usize::from(self.queue);
            // Read beforehand: a driver that copies frames may push it out of the cache.
            let callback = load((*self.ops).rxq.clbk.add(queue));
            let received = receive(load((*self.ops).rxq.data.add(queue)), slots, room);
            if callback.is_null() {
                received
            } else {
                self.callbacks(slots, received, room, callback)
            }
        };
        // The slots have no more, whatever a driver or a callback of another process counts.
        let received = received.min(room);
        if self.scatters {
            // SAFETY: the driver wrote that many buffers and handed them over.
            unsafe { chains::join(slots, received) };
        }
        // SAFETY: the driver wrote that many buffers, each with one reference, and handed them
        // over.
        unsafe { row.grow(usize::from(received)) };
        usize::from(received)
    }

    /// Calls the receive callbacks, which packet capture (dpdk-dumpcap) installs.
    ///
    /// # Safety
    /// The arguments are those of the burst just received.
    #[cold]
    unsafe fn callbacks(
        &mut self,
        slots: *mut *mut dpdk_sys::rte_mbuf,
        received: u16,
        room: u16,
        callback: *mut c_void,
    ) -> u16 {
        // SAFETY: as the inline function of DPDK calls it; the rest is the caller's contract.
        unsafe {
            dpdk_sys::rte_eth_call_rx_callbacks(
                self.core.id,
                self.queue,
                slots,
                received,
                room,
                callback,
            )
        }
    }

    /// Returns true if more than `frames` wait in the device's ring: one query to the driver, cheap enough for once per burst. `None`
    /// when the driver cannot report it, as with every software driver, or not cheaply (mlx5), or when the ring is not that large.
    #[inline]
    #[must_use]
    pub fn holds_more_than(&self, frames: u16) -> Option<bool> {
        if !self.tells_fill {
            return None;
        }
        // SAFETY: the port is started, so its table entry is set and the queue has an entry; the driver checks the offset.
        unsafe {
            let queue = load((*self.ops).rxq.data.add(usize::from(self.queue)));
            if let Some(ask) = load(&raw const (*self.ops).rx_descriptor_status) {
                return match u32::try_from(ask(queue, frames)) {
                    Ok(dpdk_sys::RTE_ETH_RX_DESC_DONE) => Some(true),
                    Ok(_) => Some(false),
                    Err(_) => None,
                };
            }
            let ask = load(&raw const (*self.ops).rx_queue_count)?;
            // A driver that refuses does so as a negative number.
            let count = i32::try_from(ask(queue)).ok()?;
            Some(count > i32::from(frames))
        }
    }

    /// Returns the interrupt for frames that arrive while the queue is [armed](Self::arm); `None` unless the port was configured with
    /// [`interrupts`](super::PortConfig::interrupts) and the device has them.
    #[must_use]
    pub fn interrupt(&self) -> Option<RxInterrupt> {
        // SAFETY: a started port; the callee checks that there is such an interrupt.
        let fd = unsafe { dpdk_sys::rte_eth_dev_rx_intr_ctl_q_get_fd(self.core.id, self.queue) };
        // SAFETY: the descriptor is the driver's, which keeps it open while the port runs.
        unsafe { RxInterrupt::duplicate(fd) }
    }

    /// Enables or disables the [`interrupt`](Self::interrupt) for the next frame. A frame that arrived before does not raise it: poll once
    /// more after this. Takes a system call or two; returns true if the driver did it (one whose descriptor is always live has nothing to do).
    pub fn arm(&self, on: bool) -> bool {
        // SAFETY: a started port; the callee checks the queue and that the driver can.
        let rc = unsafe {
            if on {
                dpdk_sys::rte_eth_dev_rx_intr_enable(self.core.id, self.queue)
            } else {
                dpdk_sys::rte_eth_dev_rx_intr_disable(self.core.id, self.queue)
            }
        };
        rc == 0
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

impl Drop for RxQueue {
    fn drop(&mut self) {
        self.core.give_back(Direction::Rx, self.queue);
    }
}

#[cfg(test)]
mod tests {
    use super::tells_fill;

    /// Names of drivers as DPDK has them (`RTE_PMD_REGISTER_PCI`, `MLX5_PCI_DRIVER_NAME`, `MLX5_AUXILIARY_DRIVER_NAME`).
    #[test]
    fn mlx5_is_not_queried_for_its_ring() {
        for driver in ["mlx5_pci", "mlx5_auxiliary"] {
            assert!(!tells_fill(driver), "{driver}");
        }
        for driver in ["net_ice", "net_mlx4", "net_bnxt", "net_af_packet"] {
            assert!(tells_fill(driver), "{driver}");
        }
    }
}

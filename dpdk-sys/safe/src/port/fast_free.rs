//! Transmission by a driver that returns sent buffers to their pool without reading them
//! (`RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE`).
//!
//! Law: such a queue is passed only buffers of its one pool, in one segment, with one reference. The
//! reference is [`Mbuf`](crate::Mbuf)'s law; pool and segments are compared here, in the cache line of the
//! buffer that the driver reads next anyway. A driver that receives into several buffers, or a
//! second pool, can therefore cost frames but never a pool.
//!
//! In DPDK 22.11 NICs offer it (i40e, ice and mlx5 among them), and no virtual device does: net_null,
//! net_ring, net_pcap, net_tap, net_af_packet, net_memif and net_vhost were checked. Nor does one of
//! them prefer a size of its rings.

use dpdk_sys::rte_mbuf;

use crate::layout::{NB_SEGS, POOL};
use crate::mempool::Mempool;

/// Filter of frames for a queue whose driver returns buffers unread: only those of one pool may be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastFree {
    pool: *mut dpdk_sys::rte_mempool,
}

// SAFETY: the pointer is compared with others and never followed.
unsafe impl Send for FastFree {}

impl FastFree {
    pub(super) fn of(pool: &Mempool) -> Self {
        Self {
            pool: pool.as_ptr(),
        }
    }

    /// Returns the number of frames, of the first `count`, that may be sent, up to the first that may not.
    ///
    /// # Safety
    /// The slots hold `count` owned buffers.
    #[inline]
    pub(super) unsafe fn sendable(self, slots: *const *mut rte_mbuf, count: u16) -> u16 {
        for place in 0..count {
            // SAFETY: the place is among those that hold owned buffers, which nobody else writes.
            let (pool, segments) = unsafe {
                let mbuf = slots.add(usize::from(place)).read();
                (POOL.get(mbuf), NB_SEGS.get(mbuf))
            };
            if pool != self.pool || segments != 1 {
                return place;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::Burst;
    use crate::eal::Eal;
    use crate::frames::Slots;
    use crate::mempool::MempoolConfig;

    #[test]
    fn a_buffer_of_another_pool_is_not_sendable_where_drivers_do_not_look() {
        let prefix = format!("--file-prefix=npcc-fast-free-{}", std::process::id());
        let fixed = ["--no-huge", "-m", "16", "--no-shconf", "--no-pci"];
        let args = fixed.into_iter().chain(["--no-telemetry", "-l", "0"]);
        let args: Vec<String> = args.chain([prefix.as_str()]).map(str::to_owned).collect();
        let eal = Eal::init(&args).unwrap();
        let pool = |name: &str| {
            let config = MempoolConfig {
                name: name.to_owned(),
                mbufs: 63,
                cache: 0,
                frame_room: 256,
                socket: None,
            };
            Mempool::new(&eal, &config).unwrap()
        };
        let (ours, other) = (pool("ours"), pool("other"));
        let fast = FastFree::of(&ours);
        for before in 0..8 {
            let mut burst = Burst::<16>::new();
            (0..before).for_each(|_| burst.push(ours.alloc().unwrap()).unwrap());
            other.alloc_bulk(&mut burst, 1).unwrap();
            ours.alloc_bulk(&mut burst, 3).unwrap();
            let (slots, count) = burst.lend();
            // SAFETY: the buffers were lent just now, and all of them are taken back.
            let sendable = unsafe {
                let sendable = fast.sendable(slots, count);
                burst.take_back(usize::from(count), 0);
                sendable
            };
            assert_eq!(usize::from(sendable), before);
        }
        let mut burst = Burst::<16>::new();
        ours.alloc_bulk(&mut burst, 4).unwrap();
        let (slots, count) = burst.lend();
        // SAFETY: as above.
        unsafe {
            assert_eq!(fast.sendable(slots, count), 4);
            *slots
                .read()
                .byte_add(dpdk_sys::NPCC_MBUF_NB_SEGS as usize)
                .cast::<u16>() = 2;
            assert_eq!(fast.sendable(slots, count), 0, "a chain");
            *slots
                .read()
                .byte_add(dpdk_sys::NPCC_MBUF_NB_SEGS as usize)
                .cast::<u16>() = 1;
            burst.take_back(usize::from(count), 0);
        }
    }
}

//! Chains of a driver that splits long frames, joined into the first buffer.
//!
//! Some drivers count the room of a buffer in coarser units than there is of it (e1000: powers of two), and put the rest of a long frame into
//! a second buffer. Stages of the pipeline read one buffer a frame. A frame that does not fit its first buffer stays a chain, of which nothing
//! but the two MAC addresses can be read: the pipeline drops it for a reason of its own.

/// Returns true if the driver of a started port may receive a frame in several buffers.
pub(super) fn scatters(port: u16, queue: u16) -> bool {
    // SAFETY: the callee checks both numbers, and that the driver has the call.
    unsafe { dpdk_sys::npcc_rx_scatters(port, queue) }
}

/// Joins the chains among `count` received frames.
///
/// # Safety
/// The slots hold so many owned frames.
pub(super) unsafe fn join(slots: *mut *mut dpdk_sys::rte_mbuf, count: u16) {
    // SAFETY: the caller's contract: so many live mbufs, each the first of a chain that nobody else refers to. The callee copies within the
    // buffer's length.
    unsafe { dpdk_sys::npcc_join_chains(slots, u32::from(count)) }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::burst::Burst;
    use crate::eal::Eal;
    use crate::frames::Slots;
    use crate::layout::{DATA_LEN, NB_SEGS, NEXT, PKT_LEN};
    use crate::mbuf::Mbuf;
    use crate::mempool::{Mempool, MempoolConfig};

    /// Returns a frame of `lengths` bytes in so many buffers, the k-th of which has bytes k.
    fn chain(pool: &Mempool, lengths: [u16; 2]) -> Mbuf {
        let [first, second] = [0, 1].map(|k: u8| {
            let mut mbuf = pool.alloc().unwrap();
            let bytes = vec![k; usize::from(lengths[usize::from(k)])];
            mbuf.fill(&bytes).unwrap();
            mbuf.into_raw()
        });
        let all = lengths.map(u32::from).iter().sum();
        // SAFETY: both buffers are ours; the first becomes a chain of the two.
        unsafe {
            NEXT.set(first.as_ptr(), second.as_ptr());
            NB_SEGS.set(first.as_ptr(), 2);
            PKT_LEN.set(first.as_ptr(), all);
            assert_eq!(DATA_LEN.get(first.as_ptr()), lengths[0]);
            Mbuf::from_raw(NonNull::new(first.as_ptr()).unwrap())
        }
    }

    #[test]
    fn a_frame_in_two_buffers_becomes_one_where_the_first_has_room() {
        let prefix = format!("--file-prefix=npcc-chains-{}", std::process::id());
        let fixed = ["--no-huge", "-m", "16", "--no-shconf", "--no-pci"];
        let args = fixed.into_iter().chain(["--no-telemetry", "-l", "0"]);
        let args: Vec<String> = args.chain([prefix.as_str()]).map(str::to_owned).collect();
        let eal = Eal::init(&args).unwrap();
        let config = MempoolConfig {
            name: "chains".to_owned(),
            mbufs: 63,
            cache: 0,
            frame_room: 9_216,
            socket: None,
        };
        let pool = Mempool::new(&eal, &config).unwrap();
        let mut burst = Burst::<8>::new();
        for lengths in [[8_192, 1_024], [8_192, 1_025], [60, 1]] {
            burst.push(chain(&pool, lengths)).unwrap();
        }
        burst.push(pool.alloc().unwrap()).unwrap();
        let (slots, count) = burst.lend();
        // SAFETY: the frames were lent just now, and all of them are taken back.
        unsafe {
            join(slots, count);
            burst.take_back(usize::from(count), 0);
        }
        let segments = burst.iter().map(Mbuf::segment_count);
        assert_eq!(segments.collect::<Vec<_>>(), [1, 2, 1, 1]);
        let left: Vec<usize> = burst.iter().map(|mbuf| mbuf.data().len()).collect();
        assert_eq!(left, [9_216, 12, 61, 0], "a chain is no shorter frame");
        let joined = burst.iter().next().unwrap();
        let bytes = [vec![0; 8_192], vec![1; 1_024]].concat();
        assert_eq!((joined.data(), joined.len()), (&bytes[..], 9_216));
        assert_eq!(pool.in_use(), 5, "the second buffers of two are free");
        drop(burst);
        assert_eq!(pool.in_use(), 0);
    }
}

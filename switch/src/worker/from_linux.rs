//! What Linux sends: out of the rings, into mbufs, into the queues of this worker's ports.

use npcc_dpdk::{Burst, Mempool};
use npcc_pipeline::units::{BURST, Nanos};

use super::frame::{Datapath, Frame};
use crate::linux_io::LinuxFrames;

/// Buffers kept for control frames: the pool may be empty when BFD must leave.
const SPARES: usize = 32;

/// The worker's end of Linux's frames.
#[derive(Debug)]
pub struct FromLinux {
    frames: LinuxFrames,
    spares: Burst<SPARES>,
}

impl FromLinux {
    /// No buffer laid by yet.
    #[must_use]
    pub fn new(frames: LinuxFrames) -> FromLinux {
        FromLinux {
            frames,
            spares: Burst::new(),
        }
    }

    /// Whether nothing waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Lays buffers by, as far as the pool has some.
    #[cold]
    pub(super) fn keep_spares(&mut self, pool: &Mempool) {
        let wanted = SPARES - self.spares.len();
        if wanted > 0 {
            // Asked again with the next frame where there are none.
            let _ = pool.alloc_bulk(&mut self.spares, wanted);
        }
    }

    /// Queues what waits, control first and at most a burst; returns how many frames that were. What finds no buffer or no room is
    /// counted as lost.
    #[cold]
    pub(super) fn take(&mut self, path: &mut Datapath, pool: &Mempool, now: Nanos) -> usize {
        let mut taken = 0;
        while taken < BURST
            && let Some((control, place, frame)) = self.frames.pop()
        {
            taken += 1;
            let spare = || if control { self.spares.pop() } else { None };
            let filled = pool.alloc().or_else(spare).and_then(|mut mbuf| {
                mbuf.fill(frame).ok()?;
                Some(Frame(mbuf))
            });
            match filled {
                Some(buf) => {
                    path.inject(place, control, buf, now);
                }
                None => path.counters().punt.inject_lost.add(1),
            }
        }
        self.keep_spares(pool);
        taken
    }
}

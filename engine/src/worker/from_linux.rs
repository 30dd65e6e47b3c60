//! Frames from Linux: out of the rings, into mbufs, into the queues of this worker's ports.

use arrayvec::ArrayVec;
use npcc_pipeline::units::{BURST, Nanos};

use super::dpdk::Dpdk;
use super::frame::Datapath;
use super::io::{Buffer, Io, Pool, one};
use crate::linux_io::LinuxFrames;

/// Buffers kept for control frames: the pool may be empty when BFD must be sent.
const SPARES: usize = 32;

/// Worker's end of the rings of frames from Linux.
#[derive(Debug)]
pub struct FromLinux<I: Io = Dpdk> {
    frames: LinuxFrames,
    spares: ArrayVec<I::Buf, SPARES>,
}

impl<I: Io> FromLinux<I> {
    /// Wraps the rings, with no spare buffers yet.
    #[must_use]
    pub fn new(frames: LinuxFrames) -> FromLinux<I> {
        FromLinux {
            frames,
            spares: ArrayVec::new(),
        }
    }

    /// Returns true if no frame waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Refills the spare buffers, as far as the pool has some.
    #[cold]
    pub(super) fn keep_spares(&mut self, pool: &I::Pool) {
        let wanted = SPARES - self.spares.len();
        if wanted > 0 {
            // If the pool has none, the next frame tries again.
            pool.alloc_bulk(&mut self.spares, wanted);
        }
    }

    /// Queues waiting frames, control first and at most a burst; returns the number dequeued. A frame without a buffer or room is counted
    /// as lost.
    #[cold]
    pub(super) fn take(
        &mut self,
        path: &mut Datapath<I::Buf>,
        pool: &I::Pool,
        now: Nanos,
    ) -> usize {
        let mut taken = 0;
        while taken < BURST
            && let Some((control, place, frame)) = self.frames.pop()
        {
            taken += 1;
            let spare = || if control { self.spares.pop() } else { None };
            let buffer = one(pool).or_else(spare);
            let filled = buffer.and_then(|mut buf| buf.fill(frame).then_some(buf));
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

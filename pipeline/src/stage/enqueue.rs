//! Stage 5: past an idle queue or into it; room was taken before.

use crate::buffer::Amount;
use crate::burst::{Run, RunHead, RunPool};
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::egress::bypass::Bypass;
use crate::egress::fifo::FifoStore;
use crate::egress::port::EgressPort;
use crate::frame::{FrameBuf, Meta};
use crate::units::Priority;

/// Frames and their bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their bytes on the wire.
    pub wire: u64,
}

impl Taken {
    /// All frames of a run.
    #[inline]
    #[must_use]
    pub const fn all(run: &RunHead) -> Taken {
        Taken {
            frames: run.amount.frames,
            bytes: run.bytes,
            wire: run.amount.bytes,
        }
    }

    /// One more frame.
    pub fn add(&mut self, meta: &Meta) {
        self.frames += 1;
        self.bytes += u64::from(meta.len);
        self.wire += u64::from(meta.wire_len());
    }

    /// All but `lost`.
    #[inline]
    #[must_use]
    pub const fn without(self, lost: Taken) -> Taken {
        Taken {
            frames: self.frames - lost.frames,
            bytes: self.bytes - lost.bytes,
            wire: self.wire - lost.wire,
        }
    }

    /// What they hold of the buffer.
    #[must_use]
    pub const fn amount(&self) -> Amount {
        Amount {
            bytes: self.wire,
            frames: self.frames,
        }
    }
}

/// Lets a run that was admitted to `port` wait past its queue if that is idle, else puts it into the queue, behind what
/// waited past it. `lost` takes the frames there is no cell for: there is one for every frame of the pool the path was made
/// with.
#[inline]
pub fn enqueue<B: FrameBuf>(
    run: Box<Run<B>>,
    port: &mut EgressPort,
    bypass: &mut Bypass<B>,
    (store, pool): (&mut FifoStore<B, Meta>, &mut RunPool<B>),
    lost: impl FnMut(B, Meta),
) {
    if let Some(run) = bypass.offer(port, run) {
        queue(run, port, bypass, (store, pool), lost);
    }
}

#[inline(never)]
fn queue<B: FrameBuf>(
    mut run: Box<Run<B>>,
    port: &mut EgressPort,
    bypass: &mut Bypass<B>,
    (store, pool): (&mut FifoStore<B, Meta>, &mut RunPool<B>),
    mut lost: impl FnMut(B, Meta),
) {
    if let Some(mut older) = bypass.take(run.head.priority) {
        port.fill(store, &mut older, &mut lost);
        pool.give(older);
    }
    port.fill(store, &mut run, &mut lost);
    pool.give(run);
}

/// Counts a refused frame on its queue.
#[cold]
pub fn count_refused(egress: &PortCounters, priority: Priority, reason: Drop) {
    if let Some(queue) = egress.queues.get(priority.index()) {
        queue.dropped.add(1);
        if reason == Drop::Wred {
            queue.wred_dropped.add(1);
        }
    }
}

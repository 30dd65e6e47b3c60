//! Stage 5 counts what enters a queue and what does not; the path itself ([`Datapath`](crate::datapath::Datapath)) puts it there.

use crate::buffer::Amount;
use crate::burst::RunHead;
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::frame::Meta;
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

/// Counts a refused frame on its queue.
#[cold]
pub fn count_refused(egress: &PortCounters, priority: Priority, reason: DropReason) {
    if let Some(queue) = egress.queues.get(priority.index()) {
        queue.dropped.add(1);
        if reason == DropReason::Wred {
            queue.wred_dropped.add(1);
        }
    }
}

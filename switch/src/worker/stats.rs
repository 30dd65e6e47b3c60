//! What a worker tells about itself.

use npcc_pipeline::counters::{Counter, Gauge};

use super::stages::StageCounters;

/// What a worker tells about itself.
#[derive(Debug, Default)]
pub struct WorkerStats {
    /// Turns of the loop.
    pub loops: Counter,
    /// Turns in which a frame moved.
    pub busy: Counter,
    /// Longest turn in ns since the last `clear watermarks`.
    pub longest_ns: Gauge,
    /// Longest turn in ns before that.
    pub longest_before_ns: Gauge,
    /// CNPs lost because the pool or the buffer was empty.
    pub cnp_lost: Counter,
    /// Times it slept, for some milliseconds at most.
    pub naps: Counter,
    /// Of these, times something woke it: a frame, or another thread with work for it.
    pub woken: Counter,
    /// Time it slept, in ns of the worker's clock.
    pub slept_ns: Counter,
    /// Where its time goes.
    pub stages: StageCounters,
}

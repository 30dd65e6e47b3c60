//! What a worker tells about itself.

use npcc_pipeline::counters;
use npcc_pipeline::counters::{Counter, Gauge};

use super::stages::StageCounters;

counters! {
    /// What a worker tells about itself.
    pub struct WorkerStats => WorkerCount {
        /// Turns of the loop.
        loops: Counter,
        /// Turns in which a frame moved.
        busy: Counter,
        /// Longest turn in ns since the last `clear watermarks`.
        longest_ns: Gauge,
        /// Longest turn in ns before that.
        longest_before_ns: Gauge => (skip),
        /// CNPs lost because the pool or the buffer was empty.
        cnp_lost: Counter,
        /// Times it slept, for some milliseconds at most.
        naps: Counter,
        /// Of these, times something woke it: a frame, or another thread with work for it.
        woken: Counter,
        /// Time it slept, in ns of the worker's clock.
        slept_ns: Counter => (skip),
        /// Where its time goes.
        stages: StageCounters => (skip),
    }
}

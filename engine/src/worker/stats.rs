//! Statistics that a worker publishes.

use npcc_pipeline::counters;
use npcc_pipeline::counters::{Counter, Gauge};

use super::stages::StageCounters;

counters! {
    /// Statistics that a worker publishes.
    pub struct WorkerStats => WorkerCount {
        /// Turns of the worker's loop.
        loops: Counter => metric("npcc_worker_turns"),
        /// Turns of the worker's loop in which a frame moved.
        busy: Counter => metric("npcc_worker_busy_turns"),
        /// Longest turn of the worker's loop since watermarks were cleared.
        longest_ns: Gauge => metric("npcc_worker_turn_longest_seconds").seconds(),
        /// Longest turn in ns before that.
        #[serde(skip)] longest_before_ns: Gauge => no_metric(),
        /// CNPs that the worker could not queue: packet buffers, shared buffer or queue store exhausted, or the link down.
        cnp_lost: Counter => metric("npcc_worker_lost_cnps").column("CNP LOST"),
        /// Times the worker slept.
        naps: Counter => metric("npcc_worker_naps"),
        /// Times something woke the worker: a frame, or another thread with work for it.
        woken: Counter => metric("npcc_worker_wakes"),
        /// Time the worker slept.
        #[serde(skip)] slept_ns: Counter => metric("npcc_worker_slept_seconds").seconds(),
        /// Cycles by stage of the timed turns.
        #[serde(skip)] stages: StageCounters => nested(),
    }
}

//! Settings of a port's egress side and of its queues.

use super::ecn::Red;
use super::scheduler::Discipline;
use crate::units::{BitRate, Nanos, PRIORITIES};

crate::defaults! {
    /// One queue's settings.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct QueueConfig {
        /// How it is served.
        pub discipline: Discipline = Discipline::Dwrr(1),
        /// Highest rate on the wire, if any.
        pub max_rate: Option<BitRate> = None,
        /// Rate on the wire served before every share and every strict queue, if any.
        pub min_rate: Option<BitRate> = None,
        /// CE marking of ECT frames at dequeue.
        pub ecn: Option<Red> = None,
        /// Early drop of Not-ECT frames at enqueue; never for a lossless queue.
        pub wred: Option<Red> = None,
        /// Frames must not be dropped for want of a share of the pool.
        pub lossless: bool = false,
        /// Wire bytes it may hold whatever others hold: of a queue of control frames.
        pub reserve: u64 = 0,
        /// Depths in wire bytes whose crossing is timed; `u64::MAX` for none.
        pub watch: [u64; 2] = [u64::MAX; 2],
    }
}

/// One port's settings.
#[derive(Debug, Clone)]
pub struct EgressConfig {
    /// Rate on the wire the port is shaped to, if any.
    pub rate: Option<BitRate>,
    /// Longest frame, for the shaper's burst.
    pub max_frame: u16,
    /// Longest time the worker may be away without the port losing rate: what its shapers save up, at least
    /// [`SHAPER_BURST`](super::port::SHAPER_BURST).
    pub away: Nanos,
    /// Lowest priority first.
    pub queues: [QueueConfig; PRIORITIES],
}

impl EgressConfig {
    /// Of a port that is not configured.
    pub(crate) fn nothing() -> EgressConfig {
        EgressConfig {
            rate: None,
            max_frame: 0,
            away: Nanos::ZERO,
            queues: Default::default(),
        }
    }
}

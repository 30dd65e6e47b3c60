//! Configuration of a port's egress side and of its queues.

use super::ecn::Red;
use super::scheduler::Discipline;
use crate::units::{BitRate, Nanos, PRIORITIES};

crate::defaults! {
    /// Configuration of one queue.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EgressQueueConfig {
        /// Scheduling discipline.
        pub discipline: Discipline = Discipline::Dwrr(1),
        /// Maximum rate on the wire, if any.
        pub max_rate: Option<BitRate> = None,
        /// Minimum rate on the wire, served before every share and every strict queue, if any.
        pub min_rate: Option<BitRate> = None,
        /// RED curve of CE marking of ECT frames at dequeue.
        pub ecn: Option<Red> = None,
        /// RED curve of early drop of Not-ECT frames at enqueue; never for a lossless queue.
        pub wred: Option<Red> = None,
        /// True if frames must not be dropped for exceeding the queue's share of the pool.
        pub lossless: bool = false,
        /// Wire bytes it may hold regardless of the others: nonzero for a queue of control frames.
        pub reserve: u64 = 0,
        /// Watched depths in wire bytes, shallow and hard; `u64::MAX` for none. The time of each crossing is published.
        /// Crossing the second also raises the port's alarm, and from it on only senders that are believed to respond may
        /// be owed a CNP.
        pub watched_depths: [u64; 2] = [u64::MAX; 2],
    }
}

impl EgressQueueConfig {
    /// Returns true if NPCC watches the queue.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watched_depths != [u64::MAX; 2]
    }
}

/// Configuration of one port's egress side.
#[derive(Debug, Clone)]
pub struct EgressConfig {
    /// Rate on the wire that the port is shaped to, if any.
    pub rate: Option<BitRate>,
    /// Length of the longest frame in bytes, for the shaper's burst.
    pub max_frame: u16,
    /// Longest interval between two visits of the worker after which the port still reaches its rate: the shapers save up
    /// credit for this long, and at least for [`SHAPER_BURST`](super::port::SHAPER_BURST).
    pub max_absence: Nanos,
    /// Configuration of the queues, priority 0 first.
    pub queues: [EgressQueueConfig; PRIORITIES],
}

impl EgressConfig {
    /// Returns the configuration of a port that is not configured.
    pub(crate) fn nothing() -> EgressConfig {
        EgressConfig {
            rate: None,
            max_frame: 0,
            max_absence: Nanos::ZERO,
            queues: Default::default(),
        }
    }
}

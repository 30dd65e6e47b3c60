//! Settings of a watched queue, from which each policy takes its parameters.

use npcc_pipeline::units::{BitRate, Nanos};

use crate::defaults;

npcc_pipeline::defaults! {
    /// Settings of one watched queue that policies share; the defaults are those of a queue of 100G.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct PolicyInputs {
        /// Time between ticks.
        pub tick: Nanos = defaults::TICK,
        /// Time of the network card's rate-increase timer.
        pub recovery: Nanos = defaults::RECOVERY,
        /// Shortest time between two CNPs to one flow in rounds of few.
        pub min_cnp_interval: Nanos = defaults::MIN_CNP_INTERVAL,
        /// Time from a CNP to its effect in the queue, until it is learned.
        pub feedback: Nanos = defaults::FEEDBACK,
        /// Time that a rise must last so as not to count as a microburst: `filter` ticks.
        pub filter: Nanos = Nanos(defaults::TICK.0 * u64::from(defaults::FILTER)),
        /// Bytes of the pool from which the queue takes its buffers, if it is limited.
        pub pool: Option<u64> = None,
        /// Wire bytes from which the queue is shallow.
        pub shallow: u64 = defaults::DRAIN.bytes_in(defaults::SHALLOW),
        /// The queue's drain rate.
        pub drain: BitRate = defaults::DRAIN,
    }
}

impl PolicyInputs {
    /// Time in which the queue drains this many bytes, rounded down.
    pub(super) fn time_of(&self, bytes: u64) -> Nanos {
        let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(self.drain.0.max(1));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

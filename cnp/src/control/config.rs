//! Configuration of one switch's control core: its initial [`Settings`], and the values fixed at the start.

use npcc_pipeline::units::Nanos;

use crate::defaults;

pub use super::settings::{EcnMode, Gate, Settings, WatchedQueueConfig};

npcc_pipeline::defaults! {
    /// Configuration of [`super::ControlCore`].
    #[derive(Debug, Clone)]
    pub struct ControlConfig {
        /// Settings at the start; [`Settings`] may change while the core runs.
        pub settings: Settings = Settings::default(),
        /// Time between ticks.
        pub tick: Nanos = defaults::TICK,
        /// Capacity of the flow table: data flows in watched queues (about 600 bytes each, with their snapshots for readers).
        pub flows: usize = defaults::FLOWS,
        /// Capacity of the table of connections in endpoints, two a connection (about 400 bytes each).
        pub ends: usize = 2 * defaults::FLOWS,
        /// Rate limit on new endpoints per second from one source address by one port (default 20,000).
        pub new_flows: u64 = 20_000,
        /// Burst of new endpoints from one source address by one port (default 16,384).
        pub new_flows_burst: u64 = 16_384,
        /// Rate limit on REQ and REP per second from one source address by one port (default 5,000).
        pub new_connections: u64 = 5_000,
        /// Burst of REQ and REP from one source address by one port (default 8,192).
        pub new_connections_burst: u64 = 8_192,
        /// Maximum number of records processed in a call, from each worker (default 512).
        pub records_per_tick: usize = 512,
        /// Maximum number of flows of one queue read at a time while it is busy (default 512). With `model`: per look while it is not empty, at most
        /// 64; else per tick, from `shallow` on.
        pub reads_per_tick: usize = 512,
        /// Maximum number of CNPs sent in one round of a queue (default 128: at one round in 20 us near 5 % of 100G). Rounds may be 4 us apart.
        pub cnps_per_tick: usize = 128,
        /// Time from the start of a call after which it starts no more work (default 60 us, at least two ticks). Records have half of it; queues at
        /// `hard` and strikes have twice as long. Each worker's records and one queue below `hard` get a turn in every call.
        pub deadline: Nanos = Nanos::from_micros(60),
        /// Seed of the hash tables. It should differ from start to start, so that nobody can aim at one hash bucket.
        pub hash_seed: u64 = 0,
    }
}

impl ControlConfig {
    /// Time over which contributions are counted: five ticks, at least 100 us.
    #[must_use]
    pub fn window(&self) -> Nanos {
        Nanos(self.tick.0.saturating_mul(5)).max(Nanos::from_micros(100))
    }
}

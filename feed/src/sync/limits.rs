//! Bounds of a machine.

use serde::Deserialize;

npcc_pipeline::defaults! {
    /// Bounds of what a box and each of its peers may hold and send.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Limits {
        /// Ends of a box, 1 to 131,072.
        pub ends: usize = 65_536,
        /// Rows a second of a peer, 1,000 to 1,000,000; twice as many at once.
        pub rows_per_second: u64 = 200_000,
    }
}

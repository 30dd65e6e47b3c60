//! Bounds of a machine.

npcc_pipeline::defaults! {
    /// Bounds of what a box and each of its peers may hold and send.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Limits {
        /// Ends of a box.
        pub ends: usize = 65_536,
        /// Rows a second of a peer; twice as many at once.
        pub rows_a_second: u64 = 200_000,
    }
}

//! The feed of a box: one thread, and tasks for the switch's rows, the suggestions, the bus and the records.

mod feed;
mod lease_queue;
mod report;
mod subscribe;

pub use feed::{RunError, run};
pub use report::{FeedReport, PeerReport};

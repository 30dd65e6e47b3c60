//! The bus: a client of NATS whose queues are bounded and never wait.

mod connect;
mod counts;
mod link;

pub use connect::{ConnectFailure, connect, options};
pub use counts::{BusCounted, BusCounts};
pub use link::{Link, Published};

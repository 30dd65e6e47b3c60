//! Management: a Unix socket that answers questions with JSON, one line each way. Runs on a thread of its own; reads only
//! what workers and control core publish, and never makes them wait.

pub mod apply;
pub mod client;
pub mod links;
pub mod orders;
pub mod protocol;
pub mod reload;
pub mod server;
pub mod tables;
pub mod thresholds;
pub mod view;

/// Where a switch listens unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/npcc-switch.sock";

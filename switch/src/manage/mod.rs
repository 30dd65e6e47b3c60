//! Management: Unix sockets that answer requests with JSON, a line each; rows, ends and captures are answered with many. Each client has a thread of its own, for a bounded time, so
//! that none waits for another; the threads read what workers and control core publish, and never make those wait.

pub mod access;
mod answer;
pub mod capture;
pub mod carrier;
pub mod client;
mod connect;
pub mod ends;
mod flow_rows;
pub mod kernel;
pub mod link_state;
pub mod links;
pub mod management;
mod patience;
pub mod pending;
pub mod ready;
pub mod recording;
pub mod reload;
pub mod rows;
pub mod server;
pub mod tables;
pub mod targets;
pub mod thread_limit;
pub mod view;

/// Default path of the management socket.
pub const DEFAULT_SOCKET: &str = "/run/npcc-switch.sock";

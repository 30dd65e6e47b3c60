//! Management: HTTP over Unix sockets. One thread serves all connections and never waits for a client; what may wait or take long runs in a thread of
//! its own for a bounded time. The threads read what workers and control core publish, and never make those wait.

pub mod access;
mod answer;
pub mod capture;
pub mod carrier;
pub mod ends;
mod errors;
mod flow_rows;
mod http;
pub mod kernel;
pub mod link_state;
pub mod links;
pub mod management;
pub mod pending;
pub mod ready;
pub mod reload;
pub mod rows;
pub mod server;
pub mod tables;
pub mod targets;
pub mod view;
pub mod waiting;

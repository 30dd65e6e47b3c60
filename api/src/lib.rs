//! Everything that crosses a socket of the switch, declared once: operations, requests, replies, rows, the snapshot, events and the log of
//! changes; and the client of it.
//!
//! The switch, its command line, npcc-feed, npcc-agent and the lab use these types. Field names are a contract with scripts: a field may be
//! added, never renamed.

#![forbid(unsafe_code)]

pub mod audit;
pub mod capture;
#[cfg(feature = "client")]
pub mod client;
pub mod cnps;
mod counted;
pub mod dcbx;
pub mod ends;
pub mod events;
pub mod lossless;
pub mod model;
pub mod openapi;
pub mod operations;
pub mod outcome;
pub mod pairs;
pub mod peers;
pub mod protocol;
pub mod punt;
pub mod qos;
pub mod query;
pub mod ready;
pub mod routes;
pub mod rows;
pub mod text;

//! The appliance: what touches the world around the packet path.
//!
//! | thread | core | does |
//! |---|---|---|
//! | worker | `cores.workers` | [`worker`]: receive, walk the pipeline, inject CNPs, send |
//! | control | `cores.control` | [`control`]: NPCC's tick; no other work of ours |
//! | management | any other | [`manage`]: the Unix socket, the progress line |
#![forbid(unsafe_code)]

pub mod apply;
pub mod bench;
pub mod cli;
pub mod clock;
pub mod command;
pub mod control;
pub mod control_commands;
mod curves;
pub mod drill;
pub mod frame;
pub mod idle;
pub mod inject;
pub mod live;
pub mod live_routes;
pub mod manage;
pub mod outstanding;
pub mod prefixes;
pub mod reaction;
pub mod reload;
pub mod report;
pub mod run;
pub mod stages;
pub mod stamp;
pub mod timings;
pub mod traffic;
pub mod transmit;
pub mod wiring;
pub mod worker;

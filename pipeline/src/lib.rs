//! The packet path of npcc-switch as plain Rust: parse, classify, route, admit, rewrite, enqueue, schedule, mark.
//!
//! No DPDK, no I/O, no clock, no allocation after construction. Every stage is a function over a burst; one worker runs
//! them all to completion. Generic over [`frame::FrameBuf`], so that heap buffers stand in for mbufs in every test.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]
#![cfg_attr(
    test,
    allow(clippy::cast_possible_truncation, reason = "test numbers are small")
)]

pub mod bits;
pub mod buffer;
pub mod burst;
pub mod capture;
pub mod classify;
pub mod counters;
pub mod craft;
pub mod datapath;
mod defaults;
pub mod drop;
pub mod egress;
pub mod frame;
pub mod handoff;
pub mod icrc;
pub mod named;
pub mod num;
pub mod parse;
pub mod partial;
pub mod pause;
pub mod per;
pub mod punt;
pub mod quantity;
pub mod route;
pub mod shares;
pub mod stage;
pub mod tap;
pub mod units;
pub mod wire;

pub use npcc_heap::sync;

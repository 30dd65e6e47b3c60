//! The packet path of npcc-switch as plain Rust: parse, classify, route, rewrite, admit, enqueue, schedule, mark.
//!
//! No DPDK, no I/O, no clock, no allocation after construction. Frames are received a burst at a time, admitted a run of
//! that burst at a time, and leave their queues in turns. Each worker runs all stages, and hands a run over only if another
//! worker owns its egress port. The package is generic over [`frame::FrameBuf`], so that heap buffers stand in for mbufs in every test.
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
#[cfg(test)]
mod cases;
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
pub mod moved_hosts;
pub mod named;
pub mod num;
pub mod parse;
pub mod partial;
pub mod pause;
pub mod per;
pub mod punt;
pub mod quantity;
pub mod route;
pub mod seqlock;
pub mod shares;
pub mod stage;
pub mod tap;
pub mod token_bucket;
pub mod tx_ring;
pub mod units;
pub mod wire;

pub use npcc_heap::sync;

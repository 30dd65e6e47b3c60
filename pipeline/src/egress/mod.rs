//! Egress side of a port: eight queues, the scheduler, and the marking of frames on the way out.
//!
//! Owned by one worker. Depths are wire bytes, so that a depth divided by the drain rate is a time.

pub mod bypass;
pub mod config;
pub mod ecn;
pub mod fifo;
pub mod marking;
pub mod port;
mod queue;
pub mod rng;
pub mod scheduler;
pub mod serve;
pub mod shaper;

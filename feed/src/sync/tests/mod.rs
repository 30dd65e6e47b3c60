//! Machines over a channel that loses, delays, reorders, repeats and is cut, and peers that lie.

#![allow(
    clippy::cast_possible_truncation,
    reason = "the numbers of tests are small"
)]

mod faults;
mod harness;
mod lies;
mod steps;

//! Laws of NPCC: pairing, policies and what becomes of marks, by a clock of their own.
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect, and its numbers are small"
)]

mod captures;
mod closed_loop;
mod dcqcn;
mod ecn_modes;
mod edges;
mod foreign_ends;
mod pairing_table;
mod policy_laws;
mod traffic;

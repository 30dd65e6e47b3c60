//! The feed between real nats-servers, and the records it exchanges.
#![allow(
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect, and its numbers are small"
)]

mod bus;
mod common;
mod exchange;
mod history;
mod identity;
mod leases;
mod operator;
mod records;

//! The kernel's tables as the switch follows them: a model kernel, and the real one in namespaces.
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect, and its numbers are small"
)]

mod ahead;
mod alien_messages;
mod common;
mod decoding;
mod dumps;
mod effects;
mod interface;
mod live;
mod lookups;
mod losses;
mod multipath;
mod neighbors;
mod not_followed;
mod resolving;
mod route_attributes;
mod wants;

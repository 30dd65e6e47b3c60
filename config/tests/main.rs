//! Configurations that are accepted, those that are rejected, and what is computed from them.
#![allow(
    clippy::cast_possible_truncation,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect, and its numbers are small"
)]

mod cards;
mod defaults;
mod examples;
mod headroom;
mod reject;
mod robust;

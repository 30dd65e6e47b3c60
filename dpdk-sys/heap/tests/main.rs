//! Blocks of hugepage memory.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect, and its numbers are small"
)]

mod pieces;
mod shared;
mod unwritten;

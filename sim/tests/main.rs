//! Laws of the simulator and of its measure, and short forms of the scenarios in docs/evidence.md.
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect, and its numbers are small"
)]

mod applications;
mod cards;
mod host_feed;
mod imperfections;
mod laws;
mod measure;
mod never_worse;
mod ns3;
mod snapshots;
mod trials;
mod validation;

//! Laws of the packet path, by a clock of their own.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect, and its numbers are small"
)]

mod between_workers;
mod buffer_limits;
mod capture;
mod link;
mod long_links;
mod pfc_flapping;
mod pfc_honour;
mod pfc_watchdog;
mod reference_model;
mod rig;
mod schedule_full_width;
mod several_workers;
mod tx_ring;

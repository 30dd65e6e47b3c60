//! Ends for other boxes: `show ends` exports what this box saw, `pair suggest` takes what others saw.
//!
//! The program that carries both (`npcc-feed`) is outside of the switch, whose sandbox allows no connection to anywhere.

pub mod calendar;
pub mod export;
pub mod names;
pub mod peers;
pub mod row;

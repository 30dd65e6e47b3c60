//! Closed-loop simulation: model hosts, links with length, and between them the switch's own packet path and NPCC.
//!
//! ```text
//!   scenario (YAML) -> plan of runs -> engine: hosts <-> links <-> switches(npcc_pipeline + npcc_cnp) -> outcome -> report
//! ```
//! Law: time is an integer of nanoseconds that only the event queue moves; one seed gives one outcome, bit for bit; every
//! frame is real bytes that both ends and the switches parse; bytes are conserved and no link carries more than its rate.
//! It does not model the network card's memory system, nor time inside the switch: a frame is in its queue when it has
//! arrived, and the control core takes no time between reading a depth and queueing a CNP.
#![forbid(unsafe_code)]

pub mod acceptance;
pub mod app;
pub mod covering;
pub mod engine;
pub mod figures;
pub mod frame;
pub mod harm;
pub mod hash;
pub mod host;
pub mod matrix;
pub mod measure;
mod num;
pub mod report;
pub mod results;
mod rng;
pub mod scenario;
pub mod sweep;
pub mod wire;

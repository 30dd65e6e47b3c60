//! Report of the switch: one snapshot, as stable JSON and as tables.
//!
//! Field names are a contract with scripts; a field may be added, never renamed.

pub mod dcbx;
pub mod ends;
pub mod events;
pub mod journal;
pub mod lossless_table;
pub mod npcc_table;
pub mod ports_table;
pub mod punt_table;
pub mod qos;
pub mod routes;
mod table;
pub mod workers;

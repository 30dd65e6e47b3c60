//! RoCEv2 endpoints: which queue pair sends what an endpoint receives, learnt from packets of both directions, and the bytes of a CNP.
//!
//! ```text
//!   PacketSample -> ConnectionTable -> sender's QPN and the evidence for it -> CnpSpec::build
//! ```
//! A caller shows packets ([`sample`]), gives the time and asks; nothing here reads a clock, does I/O, locks or panics. Tables have a fixed
//! capacity; an entry beyond it is refused and counted.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod build;
pub mod cm;
pub mod fixed_map;
pub mod holdings;
pub mod key;
pub mod links;
pub mod pair;
pub mod sample;
pub mod source_check;
pub mod source_limit;

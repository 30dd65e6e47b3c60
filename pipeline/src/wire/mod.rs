//! Header layouts to the byte: one protocol per file, as zerocopy views of the frame.
//!
//! A view is checked for length only; the parser checks the fields' values ([`crate::parse`]).

pub mod bth;
pub mod checksum;
pub mod ethernet;
pub mod ipv4;
pub mod ipv6;
pub mod mac_control;
pub mod udp;

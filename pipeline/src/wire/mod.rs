//! Headers to the byte: one protocol a file, as zerocopy views over the frame.
//!
//! A view is checked for length only; what a field may hold is the parser's business ([`crate::parse`]).

pub mod bth;
pub mod checksum;
pub mod ethernet;
pub mod ipv4;
pub mod ipv6;
pub mod mac_control;
pub mod udp;

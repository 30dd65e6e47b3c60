//! Desired forwarding state, computed from the kernel's state, and its differences from the installed one.
//!
//! [`decide`] selects the next hops of a prefix, [`members`] resolves them to ports, VLANs and MAC addresses, and [`differ`] compares
//! both with the state of the switch. Many routes share one group, so that a changed next hop is one change.

pub mod decide;
pub mod differ;
pub mod groups;
pub mod members;
pub mod ports;
pub mod resolving;

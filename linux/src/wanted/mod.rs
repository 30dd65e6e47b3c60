//! What is to be forwarded by the kernel's state, and only what changed of it.
//!
//! [`decide`] says by what a prefix leads, [`members`] what that is in ports, VLANs and MAC addresses, and [`differ`] holds
//! both against what the switch has already. Many routes lead by one group, so that a next hop that changes is one change.

pub mod decide;
pub mod differ;
pub mod groups;
pub mod members;
pub mod ports;
pub mod resolving;

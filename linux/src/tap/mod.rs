//! A device in Linux for each port and VLAN: what Linux sends comes out of it, what is for Linux goes in.

pub mod device;
pub mod namespace;
pub mod sysctl;

pub use device::{Tap, TapPort};

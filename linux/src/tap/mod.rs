//! TAP device in Linux for each port and VLAN: it carries frames from Linux to the port, and punted frames to Linux.

pub mod device;
pub mod namespace;
pub mod sysctl;

pub use device::{Tap, TapPort};

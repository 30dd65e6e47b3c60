//! Netlink sockets, and the thread that reads them.
//!
//! [`stream`] receives the kernel's notifications, [`requests`] sends requests. [`mirror`] keeps the model equal to
//! the kernel by both: the stream, and after message loss, or every few seconds as a proof, dumps.

pub mod ages;
pub mod ahead;
mod compare;
pub mod ethtool;
pub mod handle;
pub mod interface;
pub mod lookup;
pub mod mirror;
mod recover;
pub mod report;
pub mod requests;
pub mod service;
mod state;
pub mod stream;
pub mod wants;

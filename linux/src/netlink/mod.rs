//! The sockets, and the thread that reads them.
//!
//! [`stream`] is what the kernel tells of its own accord, [`requests`] what it is asked. [`mirror`] keeps the model equal to
//! the kernel by both: the stream, and when messages of it were lost, or every few seconds to prove it, dumps.

pub mod ahead;
mod compare;
pub mod ethtool;
pub mod handle;
pub mod mirror;
mod recover;
pub mod report;
pub mod requests;
pub mod service;
mod state;
pub mod stream;
pub mod wants;

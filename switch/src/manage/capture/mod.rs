//! Captures: a command to the workers for as long as a client listens, and the frames they copy, written to that client.
//!
//! The answer is a [`CaptureLine`](npcc_api::capture::CaptureLine) a line.
//!
//! Law: once a client is gone, for whatever reason, no frames are captured any more. One capture runs at a time. A client that does not
//! read makes the workers' rings fill, which loses captures and nothing else.

mod rings;
mod serve;

pub use self::rings::{Captures, WorkerCaptures};
pub(super) use self::serve::write;

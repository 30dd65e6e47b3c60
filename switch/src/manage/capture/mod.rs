//! Captures: a command to the workers for as long as a client listens, and the frames they copy, written to that client.
//!
//! The answer is a line with a [`CaptureStart`](npcc_api::capture::CaptureStart), then frames, each behind its length (four octets, lowest first) and its
//! [`Event`](npcc_pipeline::capture::Event), then the length 0 and a line with a [`CaptureEnd`](npcc_api::capture::CaptureEnd).
//!
//! Law: once a client is gone, for whatever reason, no frames are captured any more. One capture runs at a time. A client that does not
//! read makes the workers' rings fill, which loses captures and nothing else.

mod rings;
mod serve;

pub use self::rings::{Captures, WorkerCaptures};
pub(in crate::manage) use self::serve::is_gone;
pub(super) use self::serve::serve;

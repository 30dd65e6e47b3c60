//! A capture: an order to the workers for as long as a client listens, and what they copy, written to that client.
//!
//! The answer is a line with a [`CaptureStart`], then frames, each behind its length (four octets, lowest first) and its
//! [`Event`](npcc_pipeline::capture::Event), then the length 0 and a line with a [`CaptureEnd`].
//!
//! Law: when a client is gone, whatever became of it, nothing is captured any more. One capture runs at a time. A client that does not
//! read makes the workers' rings fill, which loses captures and nothing else.

mod request;
mod rings;
mod serve;

pub use self::request::{CaptureEnd, CaptureRequest, CaptureStart};
pub use self::rings::{Captures, WorkerCaptures};
pub(super) use self::serve::serve;

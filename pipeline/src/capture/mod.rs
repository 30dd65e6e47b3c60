//! Packet capture: frames as they came, as they left and as they were dropped, copied out of the running packet path for an
//! operator.
//!
//! A filter ([`Filter`]) chooses frames; the worker copies those, each behind its metadata ([`Event`]), into a byte ring that
//! another thread reads. Law: a frame takes the same path whether it is captured or not. A full ring, or an iteration in which
//! more than [`TURN`] bytes were copied already, loses the copy and counts it; no thread waits. While nothing is captured the
//! path pays one test a burst, and none a frame. Malformed frames are kept at all times ([`Standing`]).

mod event;
mod expression;
mod fields;
mod filter;
mod operands;
mod point;
mod standing;
mod tracked;
mod tx_sink;
mod words;
mod worker;

#[cfg(test)]
mod filter_tests;

pub use event::{Event, HEAD, Kind, Notes};
pub use expression::FilterError;
pub use fields::Fields;
pub use filter::{Filter, MOST_TESTS, Seen, Sightings};
pub(crate) use point::CapturePoint;
pub use standing::{SNAPLEN, Standing, WORDS as STANDING_WORDS};
pub use tracked::Tracked;
pub(crate) use tx_sink::Captured;
pub use worker::{Capture, CaptureCount, CaptureEnd, CaptureOrder, CaptureStats, RING, TURN, ends};

//! Frames on their way from the worker that took them in to the worker that owns their egress port.
//!
//! ```text
//!   taking worker                                         owner of the egress port
//!   parse .. rewrite -> charge -> burst -> ring (SPSC) -> wred, queue limit -> NPCC -> enqueue -> schedule -> mark
//!                                   \-> stuck, by ingress port: the queue is not polled until it is empty
//! ```
//! One way (`road.rs`) a pair of workers and direction, written and read in bursts; a train stays one. Law: a frame crosses at most once; frames of a flow
//! keep their order; a lossless frame is never dropped here; a frame in a ring is charged and counts as held.

mod mesh;
mod road;
mod roads;
mod stuck;

pub use mesh::{CROSSING_RING, Seat, Seating, seats};
pub(crate) use road::{Arrival, Convoy, Inward};
pub(crate) use roads::Roads;

use crate::frame::Queued;
use crate::pause::Asked;
use crate::stage::packet::Brief;
use crate::units::PortId;

/// A frame that crosses: charged by the worker that took it in, and rewritten.
#[derive(Debug)]
pub struct Crossing<B> {
    /// The frame and what travels with it.
    pub frame: Queued<B>,
    /// What is known of it.
    pub brief: Brief,
}

/// A pause that came in by another worker's queue, for the owner of the port.
#[derive(Debug, Clone, Copy)]
pub struct Relay {
    /// The port.
    pub port: PortId,
    /// What its peer asks.
    pub asked: Asked,
}

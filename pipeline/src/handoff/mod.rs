//! Handoff of frames from the worker that received them to the worker that owns their egress port.
//!
//! ```text
//!   receiving worker                                     owner of the egress port
//!   parse .. rewrite -> run -> charge -> channel (SPSC) -> wred, queue limit -> NPCC -> enqueue -> schedule -> mark
//!                                  \-> backlog, by ingress port: while it holds frames, that port's receive queue is not polled
//! ```
//! One channel (`channel.rs`) a pair of workers and direction, written and read run by run; its room is divided among the priorities of the
//! ingress ports (`shares.rs`). Law: a frame crosses at most once;
//! frames of a flow keep their order; a lossless frame is dropped here only when the switch stops; a frame in a channel is charged and counts as held.

mod channel;
mod channels;
mod mesh;
#[cfg(loom)]
#[path = "ring_model.rs"]
mod ring;
mod shares;
#[cfg(not(loom))]
use rtrb as ring;

pub(crate) use channels::Channels;
pub use mesh::{HANDOFF_RING, WorkerLinks, WorkerPlan, links};

use crate::pause::PauseRequest;
use crate::units::PortId;

/// Pause received on another worker's queue, for the owner of the port.
#[derive(Debug, Clone, Copy)]
pub struct Relay {
    /// Port on which the pause was received.
    pub port: PortId,
    /// Pause that the peer requests.
    pub request: PauseRequest,
}

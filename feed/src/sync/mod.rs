//! Exchange of ends between the feeds of two boxes: a state machine without I/O and without a clock.
//!
//! A [`Machine`] holds the ends of its own box and a copy of each peer's. A box numbers its rows and publishes them as *deltas*. A
//! *heartbeat* every 500 ms has the last number and a hash of all its ends, so that a peer notices lost rows also when nothing follows
//! them. Ends are divided into [`PARTS`] parts by a hash of their identity that is seeded with the box's epoch, which no host knows. A
//! *digest*, every 10 s and by request, has the hash of each part. A copy that may differ requests the digest, then the parts that do
//! differ: a lost delta costs a few parts, not a snapshot of everything.
//!
//! Laws: a copy holds only ends that its peer published. Memory is bounded by [`Limits`], whatever a peer sends and however long the bus
//! is down. Nothing is requested of a peer that is silent. All that is refused is counted by reason.

mod ends;
mod limits;
mod machine;
mod message;
mod own;
mod parts;
mod pending;
mod replica;

#[cfg(test)]
mod tests;

pub use limits::Limits;
pub use machine::{Machine, Outgoing, PeerState};
pub use message::{LONGEST, RejectReason, Topic};
pub use parts::PARTS;
pub use replica::PeerCounts;

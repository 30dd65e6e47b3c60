//! The shared buffer: who may hold how much of it, and which senders must pause.
//!
//! Everything is counted twice, in wire bytes and in frames, for a frame takes a whole packet buffer however short it is.
//! A group is what came in by one port with one priority. A lossless group fills its reserve, then its share of what is
//! free (dynamic threshold, Choudhury and Hahne 1998), then its headroom; from the first frame in headroom on its sender
//! is to pause. A lossy queue may hold its share of what is free; reserves and headroom are out of its reach.
//!
//! Law: `charged - released = held`, of every group and of the whole, in bytes and in frames; no lossless frame is refused
//! while headroom lasts. Does not send pause frames: see [`crate::pause`].

mod amount;
mod board;
mod config;
mod group;
mod group_id;
mod in_flight;
mod others;
mod pool;

pub use amount::Amount;
pub use board::UsageBoard;
pub use config::{BufferConfig, ControlReserve, GroupConfig, PoolConfig};
pub use group::Group;
pub use group_id::GroupId;
pub use in_flight::{Charge, InFlight, Sent};
pub use pool::{Buffer, Queue};

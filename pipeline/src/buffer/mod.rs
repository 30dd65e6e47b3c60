//! The shared buffer: limits on what each group and queue may hold, and the decision which senders must pause.
//!
//! Everything is counted twice, in wire bytes and in frames, because a frame takes a whole packet buffer however short it is.
//! A group is the frames that arrived on one port with one priority; each worker that receives from the port keeps an
//! account of its own, and adds what the others publish. A lossless group fills its reserve, then its share of the free pool
//! (dynamic threshold, Choudhury and Hahne 1998), then its headroom; its sender must pause from the first frame in headroom
//! on. A lossy queue may hold its share of the free pool; reserves and headroom are out of its reach.
//!
//! Law: `charged - released = held` for every group and for the whole buffer, in bytes and in frames; no lossless frame is
//! refused while headroom lasts. This module does not send pause frames: see [`crate::pause`].

mod amount;
mod config;
mod group;
mod group_id;
mod in_flight;
mod ledger;
mod originated;
mod release;
mod remote;
mod shared;

pub use amount::Amount;
pub use config::{BufferConfig, ControlReserve, GroupConfig, PoolConfig};
pub use group::Group;
pub use group_id::GroupId;
pub use in_flight::{Charge, InFlight, Sent};
pub use ledger::UsageLedger;
pub use shared::{Buffer, QueueAdmission};

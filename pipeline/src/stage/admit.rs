//! Stage 4: room in the shared buffer, in wire bytes and in frames.
//!
//! The accounting itself, ingress groups, headroom and thresholds are [`crate::buffer`]'s; this stage asks it for each
//! frame, in [`crate::stage::enqueue`], right before the frame joins its queue.

pub use crate::buffer::{Buffer, PoolConfig};

//! The stages of the ingress walk: each a function over the burst in hand, in the order of [`crate::datapath`].
//!
//! A frame that a stage drops leaves its lane empty; later stages pass over it, and the buffers are freed together at the end.

pub mod admit;
pub mod enqueue;
pub mod lane;
pub mod parse;
pub mod rewrite;
pub mod route;

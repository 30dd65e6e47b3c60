//! The stages of the ingress walk: each a function over the burst in hand, in the order of [`crate::datapath`].

pub mod admit;
pub mod enqueue;
pub mod packet;
pub mod parse;
pub mod receive;
pub mod rewrite;
pub mod route;
pub mod train;

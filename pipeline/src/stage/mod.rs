//! Stages of the ingress path, in the order of [`crate::datapath`]: the first makes runs of a burst, each later one is a
//! function over a run.

pub mod admit;
pub mod enqueue;
pub mod parse;
pub mod receive;
pub mod rewrite;
pub mod route;

//! Stages of the ingress path; [`crate::datapath`] has their order. [`receive`] takes each frame of a burst through
//! [`parse`], [`route`] and [`rewrite`]. The burst is then sorted into runs, and [`admit`] and [`enqueue`] work on a run at
//! a time.

pub mod admit;
pub mod enqueue;
pub mod heads;
pub mod kinds;
pub mod parse;
pub mod receive;
pub mod rewrite;
pub mod route;

//! Stages of the ingress path; [`crate::datapath`] has their order. [`receive`] takes each frame of a burst through
//! [`parse`], [`route`] and [`rewrite`]; [`moved`] changes the queues of moved hosts' frames. The burst is then sorted into runs; [`admit`] admits a run at a time, and
//! [`enqueue`] has the totals of the frames that enter a queue and the count of those refused.

pub mod admit;
pub mod enqueue;
pub mod heads;
pub mod kinds;
pub mod moved;
pub mod parse;
pub mod receive;
pub mod rewrite;
pub mod route;

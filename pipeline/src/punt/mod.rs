//! Punt and inject: frames given to Linux, requests made of it, and frames it sends.
//!
//! Law: Linux is given nothing that it could forward a second time: only frames to one of our own addresses, to groups that no
//! router forwards, and non-IP frames. Only a frame that would otherwise be dropped is examined, so data pays nothing for it.
//!
//! Frames cross as bytes, in byte rings, one for each class: the ring is the quota of its class, and no flood of punted frames
//! takes a buffer from the pool. A ring has one writer and one reader; a writer that finds it full drops the frame and counts
//! it.

pub mod ask;
pub mod class;
pub mod classify;
pub mod icmp;
pub mod interface;
pub mod layer2;
pub mod ring;
mod worker;

pub use ask::Ask;
pub use class::PuntClass;
pub use interface::{PuntInterface, PuntPort};
pub use ring::{FrameReceiver, FrameSender, Place};
pub use worker::{Punt, PuntConfig, PuntHost, PuntRates};

pub(crate) use worker::PuntCandidate;

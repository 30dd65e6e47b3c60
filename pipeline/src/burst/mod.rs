//! A burst is a list of runs.
//!
//! A *run* is the frames of a burst that leave by one port with one priority and belong to one ingress group, in the order
//! in which they came. What its frames have in common stands once, in its [`RunHead`]; what a frame has of its own stands in
//! its [`Record`]. ECN, opcode, next hop, tag and IP version are a frame's own and end no run, so a burst has a few runs
//! however it is shuffled, and most bursts have one. Every stage behind the first is a function over a run, and a run is
//! what waits past an idle queue, crosses between workers and is given back by a device.

mod record;
mod run;
mod sort;

pub use record::{Places, Record};
pub use run::{Run, RunHead, RunPool};
pub use sort::{QueueKey, Sorter};

use arrayvec::ArrayVec;

use crate::units::BURST;

/// Frames to be freed together.
pub type Trash<B> = ArrayVec<B, BURST>;

/// The runs of one burst; together all of its frames that go on.
pub type Runs<B> = ArrayVec<Box<Run<B>>, BURST>;

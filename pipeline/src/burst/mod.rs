//! Representation of a burst as a list of runs.
//!
//! A *run* is the frames of a burst that leave by one port with one priority and belong to one ingress group, in order of
//! arrival. Properties its frames share are stored once, in its [`RunHead`]; those of each frame in its [`Record`]. ECN,
//! opcode, next hop, tag and IP version are a frame's own and end no run, so a burst has few runs however it is shuffled,
//! and most bursts have one. A run is the unit that is admitted, seen by NPCC, handed to another worker, and that bypasses
//! an idle queue. Frames in a queue are single again.

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

/// Runs of one burst; together all of its frames that go on.
pub type Runs<B> = ArrayVec<Box<Run<B>>, BURST>;

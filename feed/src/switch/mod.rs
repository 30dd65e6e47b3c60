//! The own switch, by its management sockets.

mod envelope;
mod follow;
mod suggest;

pub use envelope::HostLeases;
pub use follow::{FromSwitch, follow};
pub use suggest::{Batch, SuggestCounts, suggest};

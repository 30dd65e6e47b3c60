//! The own switch, by its management sockets.

mod envelope;
mod follow;
mod request;
mod suggest;

pub use envelope::HostLeases;
pub use follow::{FromSwitch, follow};
pub use request::{RequestError, ask, ask_rows};
pub use suggest::{Batch, SuggestCounts, suggest};

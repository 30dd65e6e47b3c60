//! A burst on its way through the stages.

use arrayvec::ArrayVec;

use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::FrameBuf;
use crate::parse::Parsed;
use crate::route::nexthop::Path;
use crate::units::{BURST, Priority};

/// One frame of the burst. Without a buffer: already dropped or consumed.
#[derive(Debug)]
pub struct Lane<B> {
    /// The frame.
    pub buf: Option<B>,
    /// Its headers.
    pub parsed: Parsed,
    /// Its priority.
    pub priority: Priority,
    /// Where it goes; "no route" until the route stage.
    pub path: Path,
}

/// The burst.
pub type Lanes<B> = ArrayVec<Lane<B>, BURST>;

/// Frames to be freed together.
pub type Trash<B> = ArrayVec<B, BURST>;

/// Empties a lane into the trash and counts the reason on `counters`.
#[cold]
pub fn discard<B: FrameBuf>(buf: B, reason: Drop, counters: &PortCounters, trash: &mut Trash<B>) {
    counters.drop(reason, buf.data().len() as u64);
    if let Err(full) = trash.try_push(buf) {
        // At most a burst is dropped per walk; a frame beyond that is freed alone.
        drop(full);
    }
}

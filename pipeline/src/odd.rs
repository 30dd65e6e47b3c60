//! Frames that no neighbour in order sends, shown to whoever keeps the last of them: [`OddFrames`].
//!
//! Only a frame that is dropped for a reason of [`DropReason::is_odd`] comes to here.

use std::fmt::Debug;

use crate::drop::DropReason;
use crate::units::{Nanos, PortId};

/// Takes odd frames. Called by one worker only, on its packet path: it neither waits nor allocates.
pub trait OddFrames: Debug + Send {
    /// A frame came in by `port` and was dropped.
    fn saw(&mut self, port: PortId, reason: DropReason, frame: &[u8], now: Nanos);
}

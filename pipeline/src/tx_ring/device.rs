//! Transmit queue of a device, as the account of its ring needs it.

use crate::frame::FrameVec;

/// Transmit queue of a device.
pub trait Device<B> {
    /// Returns the number of descriptors, one for each frame.
    fn descriptors(&self) -> u16;

    /// Returns true if the driver calls the descriptor full, false if done; `None` if it has no such call.
    fn is_full(&self, offset: u16) -> Option<bool>;

    /// Sends at most `most` frames from the front; returns the number that the device took. The rest moves to the front.
    fn send(&mut self, frames: &mut FrameVec<B>, most: usize) -> usize;

    /// Returns the length of a frame, without FCS.
    fn length(&self, frame: &B) -> usize;
}

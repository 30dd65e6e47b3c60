//! Rings that carry frames from Linux to a worker: one for control, which is emptied first, and one for all others.

use npcc_pipeline::punt::{FrameReceiver, FrameSender, Place, ring as frame_ring};

/// Ring size in bytes for control frames: a window of BGP, and more BFD than a second has.
const CONTROL: usize = 512 << 10;
/// Ring size in bytes for other frames.
const OTHER: usize = 256 << 10;

/// Longest frame read from Linux, in bytes.
pub(super) const LONGEST: usize = 16 << 10;

/// Housekeeping thread's end.
#[derive(Debug)]
pub struct ToWorker {
    control: FrameSender,
    other: FrameSender,
}

/// Worker's end.
#[derive(Debug)]
pub struct LinuxFrames {
    control: FrameReceiver,
    other: FrameReceiver,
    frame: Box<[u8]>,
}

/// Makes both ends.
#[must_use]
pub fn ring() -> (ToWorker, LinuxFrames) {
    let (to_control, control) = frame_ring::ring(CONTROL);
    let (to_other, other) = frame_ring::ring(OTHER);
    let to_worker = ToWorker {
        control: to_control,
        other: to_other,
    };
    let frames = LinuxFrames {
        control,
        other,
        frame: vec![0; LONGEST].into_boxed_slice(),
    };
    (to_worker, frames)
}

impl ToWorker {
    /// Enqueues a frame; returns false if there is no room.
    pub(super) fn push(&mut self, at: Place, control: bool, frame: &[u8]) -> bool {
        let ring = if control {
            &mut self.control
        } else {
            &mut self.other
        };
        ring.push(at, &[frame])
    }
}

impl LinuxFrames {
    /// Returns true if no frame waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.control.waiting() == 0 && self.other.waiting() == 0
    }

    /// Returns the next frame: true for control, its place, and its bytes.
    pub fn pop(&mut self) -> Option<(bool, Place, &[u8])> {
        let control = self.control.waiting() > 0;
        let ring = if control {
            &mut self.control
        } else {
            &mut self.other
        };
        let (place, frame) = ring.pop(&mut self.frame)?;
        Some((control, place, frame))
    }
}

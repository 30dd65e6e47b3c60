//! The rings by which Linux's frames come to a worker: one for control, which is emptied first, and one for all else.

use npcc_pipeline::punt::{FrameReceiver, FrameSender, Place, ring as frame_ring};

/// Bytes of control frames on the way: a window of BGP, and more BFD than a second has.
const CONTROL: usize = 512 << 10;
/// Bytes of other frames on the way.
const OTHER: usize = 256 << 10;

/// The longest frame that is read from Linux.
pub(super) const LONGEST: usize = 16 << 10;

/// The housekeeping thread's end.
#[derive(Debug)]
pub struct ToWorker {
    control: FrameSender,
    other: FrameSender,
}

/// The worker's end.
#[derive(Debug)]
pub struct LinuxFrames {
    control: FrameReceiver,
    other: FrameReceiver,
    frame: Box<[u8]>,
}

/// Both ends.
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
    /// Puts a frame in; `false`: there is no room.
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
    /// Whether nothing waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.control.waiting() == 0 && self.other.waiting() == 0
    }

    /// The next frame: whether it is control, where it leaves, and its bytes.
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

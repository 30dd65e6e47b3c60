//! Ends that are not paired are shown to the thread that keeps them over a restart: a few places of the table a tick, over a ring.
//!
//! Law: while the ring is full nothing is looked at; the control core never waits for who reads it.

use npcc_cnp::control::ControlCore;
use npcc_cnp::pair::loose_end::LooseEnd;
use npcc_pipeline::units::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};

/// Places of the table looked at in a tick: of 100,000 ends all within a second.
const PLACES: u32 = 4;
/// Ends on their way.
const RING: usize = 4_096;

/// The control core's end.
#[derive(Debug)]
pub struct LooseEnds {
    to: Producer<LooseEnd>,
    at: u32,
}

impl LooseEnds {
    /// Once a tick.
    #[inline]
    pub fn turn(&mut self, core: &ControlCore, now: Nanos) {
        if self.to.slots() < PLACES as usize {
            return;
        }
        let to = &mut self.to;
        self.at = core.loose_ends(self.at, PLACES, now, |end| {
            // There is room for as many as there are places.
            let _ = to.push(end);
        });
    }
}

/// Both ends.
#[must_use]
pub fn ring() -> (LooseEnds, Consumer<LooseEnd>) {
    let (to, from) = RingBuffer::new(RING);
    (LooseEnds { to, at: 0 }, from)
}

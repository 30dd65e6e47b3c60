//! What the management thread writes into the flight recorder each turn: that it moves itself, when each other thread last moved, and how
//! the switch's clock stands to the time of day.

use std::sync::Arc;

use super::roll::Roll;
use crate::clock::Clock;
use crate::recorder::beats::{Beat, wall};
use crate::recorder::start::Recorder;

/// See the module's text. Without a recorder it does nothing.
#[derive(Debug)]
pub(super) struct Pulse {
    recorder: Option<Arc<Recorder>>,
    own: Option<Beat>,
    others: Vec<Beat>,
}

impl Pulse {
    /// Of management, and of all on the roll.
    pub(super) fn new(recorder: Option<Arc<Recorder>>, roll: &Roll) -> Pulse {
        let beat = |name: &str| recorder.as_ref()?.beat(name);
        let others = roll.threads().filter_map(|one| beat(&one.name));
        Pulse {
            own: beat("management"),
            others: others.collect(),
            recorder,
        }
    }

    /// Once a turn.
    pub(super) fn turn(&mut self, roll: &Roll, clock: &Clock) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        let now = wall();
        if let Some(own) = &mut self.own {
            own.moves(now);
        }
        for (beat, turns) in self.others.iter_mut().zip(roll.progress()) {
            beat.look(turns, now);
        }
        recorder.tell_time(clock);
    }
}

//! What the management thread writes into the flight recorder each turn: that it moves itself, when workers and control last moved, and
//! how the switch's clock stands to the time of day.

use std::sync::Arc;

use super::service::{names, progress};
use crate::manage::view::View;
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
    /// Of management, and of all that `view` sees.
    pub(super) fn new(recorder: Option<Arc<Recorder>>, view: &View) -> Pulse {
        let beat = |name: &str| recorder.as_ref()?.beat(name);
        Pulse {
            own: beat("management"),
            others: names(view).iter().filter_map(|name| beat(name)).collect(),
            recorder,
        }
    }

    /// Once a turn.
    pub(super) fn turn(&mut self, view: &View) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        let now = wall();
        if let Some(own) = &mut self.own {
            own.moves(now);
        }
        for (beat, loops) in self.others.iter_mut().zip(progress(view)) {
            beat.look(loops, now);
        }
        recorder.tell_time(&view.clock);
    }
}

//! Imperfections: late ticks, lost CNPs, far-end pauses. They draw from a generator of their own, so that a run without them is
//! unchanged by their existence.

use npcc_config::units::Percent;
use npcc_pipeline::frame::wire_len;
use npcc_pipeline::units::Nanos;
use npcc_pipeline::wire::mac_control;

use super::Engine;
use super::event::Event;
use crate::frame::SimFrame;
use crate::num::small;
use crate::rng::Rng;
use crate::scenario::Imperfections;

/// Refresh interval of a lasting pause: 65,535 quanta are 84 us at 400 Gb/s.
const REFRESH: Nanos = Nanos::from_micros(40);

/// Random imperfections of a run.
#[derive(Debug)]
pub(crate) struct Chance {
    rng: Rng,
    /// End of each far end's current pause; zero while it does not pause.
    pausing: Vec<Nanos>,
    /// Generators, by pause, of those whose times are the same for every seed.
    fixed: Vec<Option<Rng>>,
    /// Pause frames sent by far ends, for the audit.
    pub(crate) pause_frames: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64, given: &Imperfections) -> Chance {
        Chance {
            // A different sequence from that of the start times, out of the same seed.
            rng: Rng::new(!seed),
            pausing: vec![Nanos::ZERO; given.pauses.len()],
            fixed: given
                .pauses
                .iter()
                .map(|pause| pause.first.map(|first| Rng::new(first.0)))
                .collect(),
            pause_frames: 0,
        }
    }

    /// Draws whether an event of this probability happens now.
    fn happens(&mut self, share: Percent) -> bool {
        share.basis_points() > 0 && self.rng.below(10_000) < u64::from(share.basis_points())
    }

    /// Draws the delay of a control core's next tick.
    pub(crate) fn lateness(&mut self, given: &Imperfections) -> Nanos {
        let mut late = self.rng.below(given.tick_jitter.0);
        if self.happens(given.tick_late) {
            late += self.rng.below(given.tick_late_by.0);
        }
        Nanos(late)
    }

    /// Draws whether a CNP is lost at the sender's card.
    pub(crate) fn loses_cnp(&mut self, given: &Imperfections) -> bool {
        self.happens(given.cnp_loss)
    }
}

impl Engine {
    /// Schedules the first pause of each intermittently paused link.
    pub(super) fn first_pauses(&mut self) {
        let pauses = &self.scenario.imperfections.pauses;
        for (pause, index) in pauses.iter().zip(0u32..) {
            let anywhere = Nanos(self.chance.rng.below(pause.every.0));
            let first = pause.first.unwrap_or(anywhere);
            self.queue.at(self.start + first, Event::FarPause(index));
        }
    }

    /// Begins, refreshes or ends a far end's pause.
    pub(super) fn far_pause(&mut self, index: usize) {
        let now = self.now;
        let Some(pause) = self.scenario.imperfections.pauses.get(index) else {
            return;
        };
        let (time, every) = (pause.time, pause.every.0);
        let trunk = self.trunks.iter().find(|trunk| trunk.name == pause.link);
        let Some(back) = trunk.map(|trunk| trunk.links[1]) else {
            return;
        };
        let until = self.chance.pausing[index];
        let (quanta, next) = if until == Nanos::ZERO {
            self.chance.pausing[index] = now + time;
            (u16::MAX, now + time.min(REFRESH))
        } else if now < until {
            (u16::MAX, until.min(now + REFRESH))
        } else {
            self.chance.pausing[index] = Nanos::ZERO;
            let fixed = self.chance.fixed.get_mut(index).and_then(Option::as_mut);
            let rng = fixed.unwrap_or(&mut self.chance.rng);
            let around = every * 3 / 4 + rng.below(every / 2);
            (0, now + Nanos(around).since(time).max(Nanos(1)))
        };
        let (mut classes, mut set) = ([0; 8], 0);
        for priority in self.scenario.priorities() {
            classes[priority.index()] = quanta;
            set |= priority.bit();
        }
        let mac = npcc_pipeline::units::Mac([2, 2, 1, 0, 0, 0]);
        let frame = mac_control::build(mac, set, classes);
        debug_assert!(wire_len(frame.len()) <= self.frame_wire);
        self.chance.pause_frames += 1;
        self.put_on(back, SimFrame::with(&frame));
        self.queue.at(next, Event::FarPause(small(index as u64)));
    }
}

//! Restart of the switch (docs/restart.md): the process is killed, frames find nobody for a while, and another process begins with the pairs
//! and the pause storms that the one before saved. The memory is of this process, in the words of the real one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use npcc_appliance::saved::pairs::{self, Pairs};
use npcc_engine::control::pairs::pair_command;
use npcc_heap::records::{HEAD, Place, Ring};
use npcc_pipeline::units::{Nanos, PortId, Priority};

use super::build::{Found, Made, loaded};
use super::{Event, World, laws};

/// Storm that was found at a time.
pub type Storm = (PortId, Priority, Nanos);

/// Most pairs that are saved.
const PAIRS: usize = 1_024;
/// Place of the list of pairs in its memory.
const PLACE: Place = Place {
    first: 0,
    slots: 2,
    width: HEAD + PAIRS * pairs::WORDS,
};

/// Memory that outlives the switch, and the switch's end of it.
pub struct Saved {
    memory: Arc<Vec<AtomicU64>>,
    pairs: Pairs,
    storms: Vec<Storm>,
    /// Time 0 of the world.
    zero: Instant,
}

impl Default for Saved {
    fn default() -> Saved {
        let memory = (0..PLACE.words()).map(|_| AtomicU64::new(0));
        let (memory, zero) = (Arc::new(memory.collect::<Vec<_>>()), Instant::now());
        let (pairs, _) = Pairs::of(Ring::new(memory.clone(), PLACE), zero);
        Saved {
            memory,
            pairs,
            storms: Vec::new(),
            zero,
        }
    }
}

impl World {
    /// Saves the pairs and the storms of now, as the switch does every 250 ms.
    pub fn save(&mut self) {
        let now = self.saved.zero + Duration::from_nanos(self.now);
        let flows = self.control.core.flows();
        self.saved.pairs.leave_at(now, flows.flows());
        self.saved.storms.clear();
        for worker in &self.workers {
            for (port, id) in worker.path.counters().ports().zip((0..).map(PortId)) {
                for priority in Priority::all_of(port.flow.storm.get() as u8) {
                    let found = port.flow.priorities[priority.index()].storm_at.get();
                    self.saved.storms.push((id, priority, Nanos(found)));
                }
            }
        }
    }

    /// Kills the switch. Another begins after `away`, by the same file, with what was saved last.
    pub fn restart(&mut self, away: u64) {
        laws::always(self);
        // No change of the configuration finds a switch meanwhile.
        self.running = None;
        self.workers.clear();
        self.events
            .retain(|_, event| !matches!(event, Event::Worker(_) | Event::Control));
        self.run_to(self.now + away);
        for card in &self.cards {
            // What came before the start is not sent late.
            let mut card = card.borrow_mut();
            self.trace.lost += card.waiting() as u64;
            card.rx.iter_mut().for_each(VecDeque::clear);
        }
        let seed = self.chance(1 << 32);
        let made = Made::of(
            &loaded(&self.text),
            &Found {
                cards: &self.cards,
                pool: &self.pool,
                clock: self.control.clock.clone(),
                storms: &self.saved.storms,
                seed,
            },
        );
        (self.workers, self.control) = (made.workers, made.control);
        (self.commands, self.npcc) = (made.commands, made.npcc);
        (self.routes, self.down) = (Some(made.routes), made.down);
        self.links = made.links;
        self.decided = 0;
        self.begin();
        let now = self.saved.zero + Duration::from_nanos(self.now);
        let ring = Ring::new(self.saved.memory.clone(), PLACE);
        let (pairs, suggested) = Pairs::of(ring, now);
        self.saved.pairs = pairs;
        for pair in suggested {
            let answer = pair_command(&pair, true).and_then(|pair| self.npcc.give(pair));
            self.answered(answer).unwrap();
        }
        // From now on a change may come, or another restart.
        self.resume(made.running);
    }
}

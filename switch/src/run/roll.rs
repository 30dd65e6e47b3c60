//! Every thread that is watched, by its name: what grows while it moves, and whether the switch is of use without it.
//!
//! The management thread looks ([`super::vigil`]) and writes it down ([`super::pulse`]); itself it is watched by the service manager, which
//! hears from it alone. Threads of clients, of a reload and of a report are there for a bounded time and are not watched.

use std::sync::Arc;

use npcc_pipeline::counters::Counter;

use crate::manage::view::View;

/// A thread that is watched.
pub(super) struct Watched {
    /// Its name.
    pub(super) name: String,
    /// Without it frames go astray, or nothing is told in time: a restart is the lesser evil.
    pub(super) is_needed: bool,
    /// What grows while it moves.
    turns: Box<dyn Fn() -> u64 + Send>,
}

/// All of them; empty by default.
#[derive(Default)]
pub(super) struct Roll {
    all: Vec<Watched>,
}

impl Roll {
    /// The workers, the control thread, and those between the switch and Linux where that is integrated.
    pub(super) fn of(view: &View) -> Roll {
        let mut roll = Roll::default();
        for (core, stats) in view.cores.iter().zip(&view.workers) {
            let stats = Arc::clone(stats);
            roll.watch(&format!("worker on core {core}"), true, move || {
                stats.loops.get()
            });
        }
        let npcc = Arc::clone(&view.npcc);
        roll.watch("control thread", true, move || npcc.ticks.get());
        if let Some(linux) = &view.linux {
            let (stats, kernel) = (Arc::clone(&linux.stats), linux.kernel.clone());
            roll.watch("linux thread", true, move || stats.turns.get());
            roll.watch("netlink thread", true, move || kernel.turns());
        }
        roll
    }

    /// A thread that adds one to what this gives, each turn.
    pub(super) fn add(&mut self, name: &str, is_needed: bool) -> Arc<Counter> {
        let turns = Arc::new(Counter::default());
        let seen = Arc::clone(&turns);
        self.watch(name, is_needed, move || seen.get());
        turns
    }

    fn watch(&mut self, name: &str, is_needed: bool, turns: impl Fn() -> u64 + Send + 'static) {
        self.all.push(Watched {
            name: name.to_owned(),
            is_needed,
            turns: Box::new(turns),
        });
    }

    /// All of them, in one order for ever.
    pub(super) fn threads(&self) -> impl Iterator<Item = &Watched> {
        self.all.iter()
    }

    /// What grows while each of them moves, in that order.
    pub(super) fn progress(&self) -> impl Iterator<Item = u64> {
        self.all.iter().map(|one| (one.turns)())
    }
}

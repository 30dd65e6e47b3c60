//! Duration of each step of the start: their sum is the duration of a restart.

use std::fmt;
use std::time::{Duration, Instant};

use npcc_engine::log::note;
use npcc_engine::store::Store;

/// Stopwatch of the start, with one entry per step.
#[derive(Debug)]
pub(super) struct Steps {
    begin: Instant,
    last: Instant,
    taken: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// Starts the stopwatch.
    pub(super) fn new() -> Steps {
        let now = Instant::now();
        Steps {
            begin: now,
            last: now,
            taken: Vec::new(),
        }
    }

    /// Ends the step `what`, which began at the end of the one before.
    pub(super) fn done(&mut self, what: &'static str) {
        let now = Instant::now();
        self.taken.push((what, now.duration_since(self.last)));
        self.last = now;
    }

    /// Logs the steps, where a service manager restarts the switch and keeps its state.
    pub(super) fn tell(&self) {
        if Store::listens() {
            note(&self.to_string());
        }
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.last.duration_since(self.begin);
        write!(out, "forwarding {} ms after the start", all.as_millis())?;
        let mut before = ": ";
        for (what, took) in &self.taken {
            write!(out, "{before}{what} {}", took.as_millis())?;
            before = ", ";
        }
        Ok(())
    }
}

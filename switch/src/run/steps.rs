//! How long each step of the start took: a restart is as long as they are together.

use std::fmt;
use std::time::{Duration, Instant};

use crate::keep::store::Store;
use crate::log::note;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Steps {
    begin: Instant,
    last: Instant,
    taken: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// Nothing was done yet.
    pub(super) fn new() -> Steps {
        let now = Instant::now();
        Steps {
            begin: now,
            last: now,
            taken: Vec::new(),
        }
    }

    /// This was done since the step before.
    pub(super) fn done(&mut self, what: &'static str) {
        let now = Instant::now();
        self.taken.push((what, now.duration_since(self.last)));
        self.last = now;
    }

    /// Says so where somebody restarts the switch and keeps what it leaves.
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

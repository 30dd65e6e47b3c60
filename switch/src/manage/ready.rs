//! Readiness of routes and of pairs: a box that takes over forwards with the first, and signals exactly with the second.

use std::sync::{Mutex, MutexGuard, PoisonError};

use npcc_pipeline::units::Nanos;

/// Share of the flows, in percent, whose sender is known where pairs are ready.
const PAIRED: u64 = 95;

/// Times since when routes and pairs are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadySince {
    /// Time at which the routes were complete for the first time.
    pub routes: Option<Nanos>,
    /// Time since when the sender of nearly all flows is known.
    pub pairs: Option<Nanos>,
}

impl ReadySince {
    /// Takes in that routes are complete or not, and how many flows there are and have a known sender.
    pub(super) fn note(&mut self, routes: bool, (flows, paired): (u64, u64), now: Nanos) {
        self.routes = self.routes.or_else(|| routes.then_some(now));
        let pairs = flows > 0 && paired * 100 >= flows * PAIRED;
        self.pairs = pairs.then_some(self.pairs.unwrap_or(now));
    }
}

/// Readiness, as the management thread last saw it.
#[derive(Debug, Default)]
pub struct Readiness(Mutex<ReadySince>);

impl Readiness {
    /// Returns the times since when routes and pairs are ready.
    #[must_use]
    pub fn shown(&self) -> ReadySince {
        *self.locked()
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, ReadySince> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_stay_ready_and_pairs_are_while_nearly_all_are_known() {
        let mut ready = ReadySince::default();
        let mut after = |routes, flows, at| {
            ready.note(routes, flows, Nanos(at));
            (ready.routes, ready.pairs)
        };
        assert_eq!(after(false, (0, 0), 1), (None, None), "no flows");
        assert_eq!(after(true, (100, 94), 2), (Some(Nanos(2)), None));
        assert_eq!(after(false, (100, 95), 3), (Some(Nanos(2)), Some(Nanos(3))));
        assert_eq!(after(true, (100, 99), 4), (Some(Nanos(2)), Some(Nanos(3))));
        assert_eq!(after(true, (200, 99), 5), (Some(Nanos(2)), None));
    }
}

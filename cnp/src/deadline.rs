//! Deadline of a tick.
//!
//! Work is bounded in counts too; but the time that a count takes depends on the contents of the memory caches, and on what else runs on the core.

use npcc_pipeline::units::Nanos;

/// A deadline, and the clock it is checked against. With a clock that stands still it never passes.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'a> {
    clock: &'a dyn Fn() -> Nanos,
    began: Nanos,
    until: Nanos,
}

impl<'a> Deadline<'a> {
    /// Makes a deadline `allowed` after `now`.
    pub(crate) fn new(clock: &'a dyn Fn() -> Nanos, now: Nanos, allowed: Nanos) -> Deadline<'a> {
        Deadline {
            clock,
            began: now,
            until: now + allowed,
        }
    }

    /// Returns true if the deadline has passed. Reads the clock.
    pub(crate) fn is_over(&self) -> bool {
        (self.clock)() >= self.until
    }

    /// Deadline half-way between the beginning and this one.
    pub(crate) fn half(&self) -> Deadline<'a> {
        Deadline {
            until: Nanos(self.began.0.midpoint(self.until.0)),
            ..*self
        }
    }

    /// Deadline with twice the time.
    pub(crate) fn twice(&self) -> Deadline<'a> {
        Deadline {
            until: self.until + self.until.since(self.began),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_twice_count_from_the_beginning() {
        let at = |now| {
            let clock = move || Nanos(now);
            let whole = Deadline::new(&clock, Nanos(100), Nanos(60));
            [whole.half(), whole, whole.twice()].map(|deadline| deadline.is_over())
        };
        assert_eq!(at(129), [false; 3]);
        assert_eq!(at(130), [true, false, false]);
        assert_eq!(at(160), [true, true, false]);
        assert_eq!(at(220), [true; 3]);
    }
}

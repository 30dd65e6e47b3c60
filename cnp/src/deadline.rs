//! When a tick has to come to its end, whatever there is to do.
//!
//! Work is bounded in counts too; but how long a count takes depends on what lies in the memory caches, and on who else runs here.

use npcc_pipeline::units::Nanos;

/// A time, and a clock to ask. One that stands still never strikes.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'a> {
    clock: &'a dyn Fn() -> Nanos,
    began: Nanos,
    until: Nanos,
}

impl<'a> Deadline<'a> {
    /// So long after `now`.
    pub(crate) fn new(clock: &'a dyn Fn() -> Nanos, now: Nanos, allowed: Nanos) -> Deadline<'a> {
        Deadline {
            clock,
            began: now,
            until: now + allowed,
        }
    }

    /// Whether it has passed. Asks the clock.
    pub(crate) fn is_over(&self) -> bool {
        (self.clock)() >= self.until
    }

    /// The one in the middle between the beginning and this one.
    pub(crate) fn half(&self) -> Deadline<'a> {
        Deadline {
            until: Nanos(self.began.0.midpoint(self.until.0)),
            ..*self
        }
    }

    /// One with twice the time.
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

//! Share of its port's rate that a standing queue gets: less than the whole where others are served before it or beside it.
//!
//! A queue beside a weighted or a strict neighbour drains slower than its port. By the port's rate the depths that policies aim at would be too deep, by the ratio of
//! both rates, and the arrival rate would be overestimated. So departures are measured while the queue stands: over windows in
//! which it cannot have run empty, pauses left out, and by the better of two windows, as a neighbour's burst is no share. A queue that got
//! seven eighths of its rate is taken to have all of it; so is one that ran empty, until it has stood again.

use npcc_pipeline::units::{BitRate, Nanos};

use super::queue_state::QueueState;

/// Minimum duration of a window.
const WINDOW: Nanos = Nanos::from_micros(100);
/// Minimum number of bytes that the rate can carry in a window: departures are counted by the burst.
const CARRIES: u64 = 1 << 20;
/// Lower limit of a share: 1/64 of the rate.
const LEAST: u64 = 64;

/// Counters of the queue at one time.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    at: Nanos,
    depth: u64,
    departed: u64,
    paused: Nanos,
}

/// Meter of the queue's drain rate: see the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DrainRate {
    /// Counters at the previous evaluation.
    last: Mark,
    /// Counters at the start of the window; `None` if none is open.
    began: Option<Mark>,
    /// Rate measured in the previous window.
    before: Option<BitRate>,
    /// Rate that the queue gets, if that is less than its own.
    less: Option<BitRate>,
}

impl DrainRate {
    /// Takes the state of a queue whose rate is `line`; returns the rate at which it drains while it stands.
    pub(super) fn update(&mut self, state: &QueueState, line: BitRate, now: Nanos) -> BitRate {
        let Some(entered) = state.entered.filter(|_| state.depth > 0) else {
            *self = DrainRate::default();
            return line;
        };
        let mark = Mark {
            at: now,
            depth: state.depth,
            departed: entered.saturating_sub(state.depth),
            paused: state.paused,
        };
        let last = std::mem::replace(&mut self.last, mark);
        if last.depth < line.bytes_in(now.since(last.at)) {
            self.began = None;
        } else {
            let began = *self.began.get_or_insert(last);
            self.measure(began, mark, line);
        }
        self.less.unwrap_or(line)
    }

    /// Ends the window if it is long enough, and begins the next.
    fn measure(&mut self, began: Mark, mark: Mark, line: BitRate) {
        let paused = mark.paused.since(began.paused);
        let time = Nanos(mark.at.since(began.at).0.saturating_sub(paused.0));
        if time < WINDOW || line.bytes_in(time) < CARRIES {
            return;
        }
        self.began = Some(mark);
        let bytes = u128::from(mark.departed.saturating_sub(began.departed));
        let rate = bytes * 8_000_000_000 / u128::from(time.0);
        let rate = BitRate(u64::try_from(rate).unwrap_or(u64::MAX));
        let Some(before) = self.before.replace(rate) else {
            return;
        };
        let best = BitRate(rate.0.max(before.0));
        let whole = line.0 / 8 * 7;
        self.less = (best.0 < whole).then(|| BitRate(best.0.max(line.0 / LEAST)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: BitRate = BitRate(100_000_000_000);
    const LOOK: Nanos = Nanos::from_micros(20);
    /// Bytes that the line carries between two evaluations.
    const CARRIED: u64 = 250_000;

    /// A queue that is evaluated as it fills and drains.
    #[derive(Default)]
    struct Queue {
        share: DrainRate,
        state: QueueState,
        now: Nanos,
    }

    impl Queue {
        fn look(&mut self, came: u64, left: u64) -> BitRate {
            self.now += LOOK;
            self.state.entered = Some(self.state.entered.unwrap_or(0) + came);
            self.state.depth += came;
            self.state.depth = self.state.depth.saturating_sub(left);
            self.share.update(&self.state, LINE, self.now)
        }

        fn looks(&mut self, looks: usize, came: u64, left: u64) -> BitRate {
            (0..looks).map(|_| self.look(came, left)).last().unwrap()
        }
    }

    #[test]
    fn a_queue_beside_another_drains_by_its_share_once_it_has_stood_for_two_windows() {
        let mut queue = Queue::default();
        queue.look(4 * CARRIED, 0);
        assert_eq!(queue.looks(5, CARRIED, CARRIED / 2), LINE, "one window");
        let share = queue.looks(6, CARRIED, CARRIED / 2);
        assert_eq!(share.0, LINE.0 / 2);
        // The other ends.
        assert_eq!(queue.looks(11, CARRIED, CARRIED), LINE);
    }

    #[test]
    fn a_queue_that_may_have_run_empty_gives_no_rate_and_one_that_did_restarts_the_measurement() {
        let mut queue = Queue::default();
        queue.state.depth = CARRIED / 2;
        assert_eq!(queue.looks(100, CARRIED / 8, CARRIED / 8), LINE);
        queue.look(4 * CARRIED, 0);
        assert_ne!(queue.looks(12, CARRIED, CARRIED / 2), LINE);
        let depth = queue.state.depth;
        assert_eq!(queue.look(0, depth), LINE);
    }

    #[test]
    fn a_burst_of_a_neighbour_and_a_pause_are_no_share() {
        let mut queue = Queue::default();
        queue.look(20 * CARRIED, 0);
        for _ in 0..4 {
            assert_eq!(queue.looks(15, CARRIED, CARRIED), LINE);
            assert_eq!(queue.looks(4, 0, 0), LINE, "80 us of another's frames");
        }
        for _ in 0..40 {
            queue.state.paused += LOOK;
            assert_eq!(queue.looks(1, CARRIED, 0), LINE, "a pause");
        }
    }

    #[test]
    fn a_queue_that_gets_nothing_has_a_little() {
        let mut queue = Queue::default();
        queue.look(4 * CARRIED, 0);
        assert_eq!(queue.looks(20, CARRIED, 0).0, LINE.0 / 64);
    }

    proptest! {
        /// Law: whatever comes and goes, the share is never more than the line, never zero, and not below the least that was served in every window.
        #[test]
        fn it_lies_between_what_was_served_and_the_line(
            steps in prop::collection::vec((0u64..2 * CARRIED, 0u64..=CARRIED, 0u64..20_000), 1..200),
            least in 1u64..CARRIED,
        ) {
            let mut queue = Queue::default();
            for (came, left, paused) in steps {
                queue.state.paused += Nanos(paused);
                let served = left.max(least);
                let got = queue.look(came, served);
                prop_assert!(got.0 <= LINE.0 && got.0 >= LINE.0 / LEAST);
                let floor = least * 8_000_000_000 / LOOK.0;
                prop_assert!(got.0 + LINE.0 / 1_000 >= floor.min(LINE.0 / 8 * 7));
            }
        }
    }
}

//! Paced source: a schedule admits the frames of an endless source, and each frame is timed until a device accepts it.
//!
//! Frames are due in volleys: `frames` of them, `gap` apart, every `period`. A frame's latency runs from the moment it was due,
//! whether or not the worker had time for it then, to the moment after the device accepted it: a worker that is late is late for all
//! frames that waited. Frames come and go in order and none may be lost, so the n-th to leave is the n-th to come.
//!
//! Volleys of several frames are meant to fill a queue, not to be timed: a late worker does not make up for those it missed.

use std::str::FromStr;

use npcc_engine::worker::timings::TimingKind;
use npcc_pipeline::num::whole;
use npcc_pipeline::units::{BURST, Nanos, PortId};

/// Sampling interval: one frame in this many is timed, as a histogram wants thousands of frames, not all.
const EACH: u64 = 16;

/// Schedule of the moments at which frames are due, in picoseconds: at 15 million frames a second they are 66,666 ps apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Number of frames in a volley, at least 1.
    pub frames: u64,
    /// Time from one frame of a volley to the next, in ps.
    pub gap: u64,
    /// Time from one volley to the next, in ps, at least 1.
    pub period: u64,
}

impl FromStr for Schedule {
    type Err = String;

    /// Parses `FRAMES,GAP,PERIOD`, the fields of [`Schedule`].
    fn from_str(text: &str) -> Result<Schedule, String> {
        let wrong = || {
            format!(
                "`{text}` is not a schedule: write FRAMES,GAP,PERIOD (GAP and PERIOD in ps; FRAMES and PERIOD at least 1)"
            )
        };
        let numbers: Result<Vec<u64>, _> = text.split(',').map(str::parse).collect();
        match numbers.map_err(|_| wrong())?[..] {
            [frames, gap, period] if frames > 0 && period > 0 => Ok(Schedule {
                frames,
                gap,
                period,
            }),
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.frames, self.gap, self.period)
    }
}

impl Schedule {
    /// Returns an even schedule of `frames_per_second` frames a second.
    #[must_use]
    pub fn even(frames_per_second: f64) -> Schedule {
        Schedule {
            frames: 1,
            gap: 0,
            period: whole(1e12 / frames_per_second).max(1),
        }
    }

    /// Returns the number of frames due in the first `passed` of the schedule.
    fn due(&self, passed: Nanos) -> u64 {
        let passed = passed.0.saturating_mul(1_000);
        let (volleys, within) = (passed / self.period, passed % self.period);
        let begun = match within.checked_div(self.gap) {
            Some(gaps) => self.frames.min(gaps + 1),
            None => self.frames,
        };
        volleys * self.frames + begun
    }

    /// Returns the moment at which the n-th frame, counted from 0, is due.
    fn moment(&self, n: u64) -> Nanos {
        let (volley, within) = (n / self.frames, n % self.frames);
        Nanos((volley * self.period + within * self.gap) / 1_000)
    }
}

/// Paced source of a worker, with the number of its frames that have left by the sink.
#[derive(Debug)]
pub struct PacedSource {
    schedule: Schedule,
    /// Port with the source.
    source: PortId,
    /// Port whose frames are timed.
    sink: PortId,
    start: Option<Nanos>,
    taken: u64,
    sent: u64,
}

impl PacedSource {
    /// Creates a source whose schedule starts when `source` is first polled.
    #[must_use]
    pub const fn new(schedule: Schedule, source: PortId, sink: PortId) -> PacedSource {
        PacedSource {
            schedule,
            source,
            sink,
            start: None,
            taken: 0,
            sent: 0,
        }
    }

    /// Returns the number of frames that may be received from `port` now.
    pub fn due(&mut self, port: PortId, now: Nanos) -> usize {
        if port != self.source {
            return BURST;
        }
        let start = *self.start.get_or_insert(now);
        let due = self.schedule.due(now.since(start));
        let volley = self.schedule.frames;
        if volley > 1 {
            self.taken = self.taken.max((due - 1) / volley * volley);
        }
        usize::try_from(due.saturating_sub(self.taken)).unwrap_or(BURST)
    }

    /// Counts `frames` frames received by `port`.
    pub fn received(&mut self, port: PortId, frames: usize) {
        if port == self.source {
            self.taken += frames as u64;
        }
    }

    /// Counts `frames` frames that the device of `port` accepted just before `now`; `tell` receives the latency of each timed one.
    pub fn sent(
        &mut self,
        port: PortId,
        frames: usize,
        now: Nanos,
        mut tell: impl FnMut(TimingKind, Nanos),
    ) {
        let (Some(start), true) = (self.start, port == self.sink) else {
            return;
        };
        let (first, end) = (self.sent, self.sent + frames as u64);
        self.sent = end;
        let mut n = first.next_multiple_of(EACH);
        while n < end {
            let late = now.since(start).since(self.schedule.moment(n));
            tell(TimingKind::Latency, late);
            n += EACH;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_engine::worker::timings::{Timings, ring};
    use proptest::prelude::*;

    proptest! {
        /// Checks that the n-th frame is due from its moment on, to a nanosecond, and not before.
        #[test]
        fn moments_and_dues_agree(frames in 1u64..500, gap in 0u64..3_000_000, rest in 1u64..1 << 40, n in 0u64..10_000) {
            let schedule = Schedule { frames, gap, period: (frames * gap).saturating_add(rest) };
            let moment = schedule.moment(n);
            prop_assert!(schedule.due(Nanos(moment.0 + 1)) > n);
            prop_assert!(moment.0 == 0 || schedule.due(Nanos(moment.0 - 1)) <= n + u64::from(gap < 1_000) * 500);
        }
    }

    #[test]
    fn a_timetable_is_read_as_it_is_written() {
        let schedule = Schedule::even(15e6);
        assert_eq!(schedule.to_string(), "1,0,66666");
        assert_eq!(schedule.to_string().parse(), Ok(schedule));
        for wrong in ["", "1,2", "0,1,1", "1,1,0", "a,b,c", "1,2,3,4"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn missed_volleys_are_not_made_up_for() {
        let mut source = PacedSource::new("40,0,1000000000".parse().unwrap(), PortId(0), PortId(1));
        let start = Nanos(5_000);
        assert_eq!(source.due(PortId(0), start), 40);
        source.received(PortId(0), 32);
        assert_eq!(source.due(PortId(0), start), 8);
        assert_eq!(source.due(PortId(0), start + Nanos::from_millis(7)), 40);
        source.received(PortId(0), 40);
        assert_eq!(source.due(PortId(0), start + Nanos::from_millis(7)), 0);
        assert_eq!(source.due(PortId(0), start + Nanos::from_millis(8)), 40);
    }

    #[test]
    fn a_frame_is_late_from_the_moment_it_was_due() {
        let mut source = PacedSource::new("1,0,1000000".parse().unwrap(), PortId(0), PortId(1));
        let (mut times, consumer) = ring();
        let start = Nanos(5_000);
        assert_eq!(source.due(PortId(0), start), 1);
        source.received(PortId(0), 1);
        assert_eq!(source.due(PortId(0), start), 0);
        assert_eq!(source.due(PortId(1), start), BURST);
        let later = start + Nanos::from_micros(31);
        assert_eq!(source.due(PortId(0), later), 31);
        source.received(PortId(0), 31);
        source.sent(PortId(0), 7, later, |_, _| unreachable!());
        source.sent(PortId(1), 32, later + Nanos(500), |what, time| {
            times.tell(what, time);
        });
        let mut timings = Timings::new(vec![consumer]).unwrap();
        timings.take_in();
        let latency = timings.of(TimingKind::Latency);
        assert_eq!(latency.count, 2, "the 0th and the 16th");
        assert!((31_500..31_540).contains(&latency.max), "{latency:?}");
        assert!((15_500..15_520).contains(&latency.p50), "{latency:?}");
    }
}

//! A paced source: an endless source is let in by a schedule, and each frame is timed until a device takes it.
//!
//! Frames are due in volleys: `frames` of them, `gap` apart, every `period`. A frame's latency runs from the moment it was due,
//! whether or not the worker had time for it then, to the moment after the device took it: a worker that is late is late for all
//! that waited. Frames come and go in order and none may be lost, so the n-th to leave is the n-th to come.
//!
//! Volleys of several frames are to fill a queue, not to be timed: those a late worker missed are not made up for.

use std::str::FromStr;

use npcc_appliance::worker::timings::What;
use npcc_pipeline::num::whole;
use npcc_pipeline::units::{BURST, Nanos, PortId};

/// One frame in so many is timed: a histogram wants thousands, not all.
const EACH: u64 = 16;

/// A schedule says when frames are due, in picoseconds: 15 million frames a second are 66,667 of them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Frames of a volley, at least 1.
    pub frames: u64,
    /// From one frame of a volley to the next, in ps.
    pub gap: u64,
    /// From one volley to the next, in ps, at least 1.
    pub period: u64,
}

impl FromStr for Schedule {
    type Err = String;

    /// `FRAMES,GAP,PERIOD`, as [`Schedule`]'s fields.
    fn from_str(text: &str) -> Result<Schedule, String> {
        let wrong = || format!("`{text}` is no timetable: write FRAMES,GAP,PERIOD in ps");
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
    /// Evenly, so many frames a second.
    #[must_use]
    pub fn even(frames_per_second: f64) -> Schedule {
        Schedule {
            frames: 1,
            gap: 0,
            period: whole(1e12 / frames_per_second).max(1),
        }
    }

    /// Frames due in the first `passed` of a schedule.
    fn due(&self, passed: Nanos) -> u64 {
        let passed = passed.0.saturating_mul(1_000);
        let (volleys, within) = (passed / self.period, passed % self.period);
        let begun = match within.checked_div(self.gap) {
            Some(gaps) => self.frames.min(gaps + 1),
            None => self.frames,
        };
        volleys * self.frames + begun
    }

    /// When the n-th frame, from 0, is due.
    fn moment(&self, n: u64) -> Nanos {
        let (volley, within) = (n / self.frames, n % self.frames);
        Nanos((volley * self.period + within * self.gap) / 1_000)
    }
}

/// A worker's paced source, and what of it has left by the sink.
#[derive(Debug)]
pub struct PacedSource {
    schedule: Schedule,
    /// The port with the source.
    source: PortId,
    /// The port whose frames are timed.
    sink: PortId,
    start: Option<Nanos>,
    taken: u64,
    sent: u64,
}

impl PacedSource {
    /// From the first time `source` is polled.
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

    /// Frames that may be received from `port` now.
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

    /// So many frames came in by `port`.
    pub fn received(&mut self, port: PortId, frames: usize) {
        if port == self.source {
            self.taken += frames as u64;
        }
    }

    /// `port`'s device has just taken so many, at `now`; `tell` is told how late each timed one was.
    pub fn sent(
        &mut self,
        port: PortId,
        frames: usize,
        now: Nanos,
        mut tell: impl FnMut(What, Nanos),
    ) {
        let (Some(start), true) = (self.start, port == self.sink) else {
            return;
        };
        let (first, end) = (self.sent, self.sent + frames as u64);
        self.sent = end;
        let mut n = first.next_multiple_of(EACH);
        while n < end {
            let late = now.since(start).since(self.schedule.moment(n));
            tell(What::Latency, late);
            n += EACH;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_appliance::worker::timings::{Timings, ring};
    use proptest::prelude::*;

    proptest! {
        /// The n-th frame is due from its moment on, to a nanosecond, and not before.
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
        let latency = timings.of(What::Latency);
        assert_eq!(latency.count, 2, "the 0th and the 16th");
        assert!((31_500..31_540).contains(&latency.max), "{latency:?}");
        assert!((15_500..15_520).contains(&latency.p50), "{latency:?}");
    }
}

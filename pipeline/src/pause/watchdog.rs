//! PFC watchdog (as SONiC's pfcwd): a priority that the peer keeps paused without end must not hold up the fabric.
//!
//! A storm is detected at the first poll at which frames have waited behind an unbroken pause for `detect`, or for `share` of
//! two such times behind pauses that flap ([`super::duty`]); it is over at the first poll at which no pause has been seen for
//! `restore`. Below that, half of two such times is a warning, until it is less again. Pauses are received during a storm as
//! before, so its end is determined by the peer's pauses and not by counters that stand still: priorities that storm together
//! do not flap. A storm that the process before this one detected continues from the first poll, as if a pause had ended then.

use super::duty::Duty;
use super::receiver::PauseReceiver;
use crate::counters::FlowCounters;
use crate::units::{Nanos, PRIORITIES, Priority};

/// Percentage of two detection periods for which frames wait behind pauses that raises a warning.
const WARNED: u8 = 50;

// `Drop` drops the frames of a storm's priority that wait and that arrive, in both directions; no pause of ours is sent for it.
/// Action on the frames of a queue under a pause storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "config", schemars(rename = "WatchdogAction"))]
pub enum StormAction {
    /// Dropped.
    #[default]
    Drop,
    /// Sent in spite of the pause.
    Forward,
    /// Only reported.
    Alert,
}

/// Times and action of the watchdog.
#[derive(Debug, Clone)]
pub struct WatchdogConfig {
    /// Time for which a priority must be paused with frames waiting to count as a storm.
    pub detect: Nanos,
    /// Percentage of twice that time, paused with frames waiting, that counts as a storm too, however often the peer resumes
    /// it in between.
    pub share: u8,
    /// Time without a pause after which a storm is over.
    pub restore: Nanos,
    /// Interval between two polls.
    pub poll: Nanos,
    /// Action taken in a storm.
    pub action: StormAction,
}

/// Storms that began and ended at one poll, as masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Priorities whose storm began.
    pub began: u8,
    /// Priorities whose storm ended.
    pub ended: u8,
}

/// Watchdog of one port.
#[derive(Debug)]
pub struct Watchdog {
    config: WatchdogConfig,
    next: Nanos,
    storm: u8,
    warned: u8,
    /// Time of the last poll.
    looked: Nanos,
    /// Evaluation of each priority's pauses.
    totals: [Total; PRIORITIES],
    /// True if storms from before the first poll are to be continued.
    resumes: bool,
    /// Time of the first poll, if storms were continued.
    resumed: Nanos,
}

/// Evaluation of the pauses of a priority.
#[derive(Debug, Clone, Copy)]
struct Total {
    /// Total time for which frames had waited behind them, as of the last poll.
    stuck: Nanos,
    storm: Duty,
    warning: Duty,
}

impl Watchdog {
    /// Returns a watchdog without storms.
    #[must_use]
    pub const fn new(config: WatchdogConfig) -> Watchdog {
        let total = Total {
            stuck: Nanos::ZERO,
            storm: Duty::new(config.share),
            warning: Duty::new(WARNED),
        };
        Watchdog {
            config,
            next: Nanos::ZERO,
            storm: 0,
            warned: 0,
            looked: Nanos::ZERO,
            totals: [total; PRIORITIES],
            resumes: false,
            resumed: Nanos::ZERO,
        }
    }

    /// Continues a storm that the process before this one detected at `began`, and counted; called before the first poll.
    pub fn resume(&mut self, priority: Priority, began: Nanos, counters: &FlowCounters) {
        self.storm |= priority.bit();
        self.resumes = true;
        counters.storm.set(u64::from(self.storm));
        if let Some(pause) = counters.priorities.get(priority.index()) {
            pause.storm_at.set(began.0);
        }
    }

    /// Returns the priorities whose pauses are not obeyed.
    #[inline]
    #[must_use]
    pub const fn overrides(&self) -> u8 {
        match self.config.action {
            StormAction::Forward => self.storm,
            StormAction::Drop | StormAction::Alert => 0,
        }
    }

    /// Returns the priorities whose frames are dropped.
    #[inline]
    #[must_use]
    pub const fn drops(&self) -> u8 {
        match self.config.action {
            StormAction::Drop => self.storm,
            StormAction::Forward | StormAction::Alert => 0,
        }
    }

    /// Returns true if a poll is due.
    #[inline]
    #[must_use]
    pub fn is_due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// Ends all storms: the link went down.
    pub fn forget(&mut self, now: Nanos, counters: &FlowCounters) {
        for priority in Priority::all_of(self.storm) {
            if let Some(pause) = counters.priorities.get(priority.index()) {
                pause.storms_ended.add(1);
                pause.storm_ended_at.set(now.0);
            }
        }
        (self.storm, self.warned) = (0, 0);
        self.begin_anew(u8::MAX, now);
        counters.storm.set(0);
        counters.storm_warning.set(0);
    }

    /// Restarts the evaluation of these priorities: no pause before now counts.
    fn begin_anew(&mut self, priorities: u8, now: Nanos) {
        for (priority, total) in Priority::all().zip(&mut self.totals) {
            if priorities & priority.bit() != 0 {
                total.storm.reset(now);
                total.warning.reset(now);
            }
        }
    }

    /// Evaluates the pauses, and returns the storms that began and ended. `receiver` is up to date with `now`; `nonempty_since` returns
    /// the time since which a queue is not empty.
    #[cold]
    pub fn poll(
        &mut self,
        now: Nanos,
        heard: &PauseReceiver,
        nonempty_since: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) -> Option<Change> {
        // Missed polls are not made up for.
        self.next = (self.next + self.config.poll).max(now);
        if std::mem::take(&mut self.resumes) {
            self.resumed = now;
        }
        let elapsed = now.since(std::mem::replace(&mut self.looked, now));
        let window = Nanos(self.config.detect.0 * 2);
        let mut change = Change::default();
        let mut warned = 0;
        for (priority, total) in Priority::all().zip(&mut self.totals) {
            let bit = priority.bit();
            let (paused, nonempty_since) = (heard.is_paused(priority), nonempty_since(priority));
            let all = heard.time_behind_pauses(priority, now, nonempty_since);
            let times = (all.since(std::mem::replace(&mut total.stuck, all)), elapsed);
            if self.storm & bit != 0 {
                let quiet = now.since(heard.ended(priority).max(self.resumed));
                if !paused && quiet >= self.config.restore {
                    change.ended |= bit;
                }
                continue;
            }
            let unbroken = nonempty_since
                .filter(|_| paused)
                .is_some_and(|nonempty_since| {
                    now.since(heard.since(priority).max(nonempty_since)) >= self.config.detect
                });
            if total.storm.look(now, times, window) || unbroken {
                change.began |= bit;
            } else if total.warning.look(now, times, window) {
                warned |= bit;
            }
        }
        self.warn(warned, now, counters);
        if change == Change::default() {
            return None;
        }
        self.begin_anew(change.began | change.ended, now);
        self.storm = (self.storm | change.began) & !change.ended;
        for (priority, pause) in Priority::all().zip(&counters.priorities) {
            if change.began & priority.bit() != 0 {
                pause.storms.add(1);
                pause.storm_at.set(now.0);
            }
            if change.ended & priority.bit() != 0 {
                pause.storms_ended.add(1);
                pause.storm_ended_at.set(now.0);
            }
        }
        counters.storm.set(u64::from(self.storm));
        Some(change)
    }

    /// Sets the priorities that are near a storm now.
    fn warn(&mut self, warned: u8, now: Nanos, counters: &FlowCounters) {
        for priority in Priority::all_of(warned & !self.warned) {
            if let Some(pause) = counters.priorities.get(priority.index()) {
                pause.storm_warnings.add(1);
                pause.storm_warned_at.set(now.0);
            }
        }
        if warned != self.warned {
            counters.storm_warning.set(u64::from(warned));
        }
        self.warned = warned;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    /// Law: a watchdog that was called late is polled at its interval again, whatever it missed.
    #[test]
    fn missed_polls_are_not_made_up_for() {
        let mut watchdog = Watchdog::new(WatchdogConfig {
            detect: Nanos(1_000),
            share: 50,
            restore: Nanos(1_000),
            poll: Nanos(100),
            action: StormAction::Drop,
        });
        let heard = PauseReceiver::new(u8::MAX, BitRate(1_000_000_000));
        let counters = FlowCounters::default();
        let mut polls = Vec::new();
        for now in (0..300).chain(5_000..5_400).map(Nanos) {
            if watchdog.is_due(now) {
                polls.push(now.0);
                watchdog.poll(now, &heard, |_| None, &counters);
            }
        }
        let late = polls.iter().filter(|now| **now >= 5_000);
        assert!(late.count() <= 5, "one late, and one each 100: {polls:?}");
    }
}

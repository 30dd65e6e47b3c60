//! The PFC watchdog (SONiC's pfcwd): a priority the peer keeps paused without end must not hold up the fabric.
//!
//! A storm is found at the first poll at which frames have waited behind an unbroken pause for `detect`, or for `share` of two such
//! times behind pauses that flap ([`super::duty`]); it is over at the first poll at which no pause has been seen for `restore`. Below
//! that, half of two such times is a warning, until it is less again. Pauses are listened to during a storm as before, so the end is
//! judged by what the peer says and not by counters that stand still: priorities that storm together do not flap. A storm that was found
//! before the process began goes on from its first poll, as if a pause had ended then.

use super::duty::Duty;
use super::receiver::PauseReceiver;
use crate::counters::FlowCounters;
use crate::units::{Nanos, PRIORITIES, Priority};

/// Percent of two detection periods for which frames wait behind pauses: a warning.
const WARNED: u8 = 50;

// Of a storm's priority `Drop` drops what waits and what comes, in both directions, and no pause of ours is sent for it.
/// What becomes of the frames of a queue under a pause storm.
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

/// The watchdog's times.
#[derive(Debug, Clone)]
pub struct WatchdogConfig {
    /// Paused for so long with frames waiting is a storm.
    pub detect: Nanos,
    /// Paused with frames waiting for so many percent of twice that is one too, however often the peer lets go in between.
    pub share: u8,
    /// Without pause for so long is its end.
    pub restore: Nanos,
    /// How often it looks.
    pub poll: Nanos,
    /// What is done.
    pub action: StormAction,
}

/// Storms that began and ended at one poll, as masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Began.
    pub began: u8,
    /// Ended.
    pub ended: u8,
}

/// The watchdog of one port.
#[derive(Debug)]
pub struct Watchdog {
    config: WatchdogConfig,
    next: Nanos,
    storm: u8,
    warned: u8,
    /// When it looked last.
    looked: Nanos,
    /// What each priority's pauses come to.
    totals: [Total; PRIORITIES],
    /// Storms go on that were found before the first poll.
    resumes: bool,
    /// When that was.
    resumed: Nanos,
}

/// What the pauses of a priority come to.
#[derive(Debug, Clone, Copy)]
struct Total {
    /// For how long frames had waited behind them at the last look.
    stuck: Nanos,
    storm: Duty,
    warning: Duty,
}

impl Watchdog {
    /// No storm.
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

    /// A storm goes on that a process before this one found at `began`, and counted; before the first poll.
    pub fn resume(&mut self, priority: Priority, began: Nanos, counters: &FlowCounters) {
        self.storm |= priority.bit();
        self.resumes = true;
        counters.storm.set(u64::from(self.storm));
        if let Some(pause) = counters.priorities.get(priority.index()) {
            pause.storm_at.set(began.0);
        }
    }

    /// Priorities whose pauses are not obeyed.
    #[inline]
    #[must_use]
    pub const fn overrides(&self) -> u8 {
        match self.config.action {
            StormAction::Forward => self.storm,
            StormAction::Drop | StormAction::Alert => 0,
        }
    }

    /// Priorities whose frames are dropped.
    #[inline]
    #[must_use]
    pub const fn drops(&self) -> u8 {
        match self.config.action {
            StormAction::Drop => self.storm,
            StormAction::Forward | StormAction::Alert => 0,
        }
    }

    /// Whether it is time to look.
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

    /// Of these priorities no pause before now counts.
    fn begin_anew(&mut self, priorities: u8, now: Nanos) {
        for (priority, total) in Priority::all().zip(&mut self.totals) {
            if priorities & priority.bit() != 0 {
                total.storm.reset(now);
                total.warning.reset(now);
            }
        }
    }

    /// Looks. `heard` is up to date with `now`; `waiting` tells since when a queue is not empty.
    #[cold]
    pub fn poll(
        &mut self,
        now: Nanos,
        heard: &PauseReceiver,
        waiting: impl Fn(Priority) -> Option<Nanos>,
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
            let (paused, waiting) = (heard.is_paused(priority), waiting(priority));
            let all = heard.stuck(priority, now, waiting);
            let times = (all.since(std::mem::replace(&mut total.stuck, all)), elapsed);
            if self.storm & bit != 0 {
                let quiet = now.since(heard.ended(priority).max(self.resumed));
                if !paused && quiet >= self.config.restore {
                    change.ended |= bit;
                }
                continue;
            }
            let unbroken = waiting.filter(|_| paused).is_some_and(|waiting| {
                now.since(heard.since(priority).max(waiting)) >= self.config.detect
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

    /// These priorities are near a storm now.
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

//! The PFC watchdog (SONiC's pfcwd): a priority the peer keeps paused without end must not hold up the fabric.
//!
//! A storm is found at the first poll at which frames have waited behind an unbroken pause for `detect`; it is over at the
//! first poll at which no pause has been seen for `restore`. Pauses are listened to during a storm as before, so the end is
//! judged by what the peer says and not by counters that stand still: priorities that storm together do not flap. A storm that was found
//! before the process began goes on from its first poll, as if a pause had ended then.

use super::receiver::PauseReceiver;
use crate::counters::FlowCounters;
use crate::units::{Nanos, Priority};

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
    /// Storms go on that were found before the first poll.
    resumes: bool,
    /// When that was.
    resumed: Nanos,
}

impl Watchdog {
    /// No storm.
    #[must_use]
    pub const fn new(config: WatchdogConfig) -> Watchdog {
        Watchdog {
            config,
            next: Nanos::ZERO,
            storm: 0,
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
        self.storm = 0;
        counters.storm.set(0);
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
        let mut change = Change::default();
        for priority in Priority::all() {
            let bit = priority.bit();
            let paused = heard.is_paused(priority);
            if self.storm & bit != 0 {
                let quiet = now.since(heard.ended(priority).max(self.resumed));
                if !paused && quiet >= self.config.restore {
                    change.ended |= bit;
                }
            } else if paused && let Some(waiting) = waiting(priority) {
                let stuck = now.since(heard.since(priority).max(waiting));
                if stuck >= self.config.detect {
                    change.began |= bit;
                }
            }
        }
        if change == Change::default() {
            return None;
        }
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
}

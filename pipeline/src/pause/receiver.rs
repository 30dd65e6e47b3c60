//! Pauses that the peer requests of us: one timer per priority.

use crate::counters::FlowCounters;
use crate::units::{BitRate, Nanos, PRIORITIES, Priority};
use crate::wire::mac_control::time_of;

/// State of the peer's pauses.
#[derive(Debug)]
pub struct PauseReceiver {
    honour: u8,
    rate: BitRate,
    paused: u8,
    /// Time at which the pause of each priority expires.
    until: [Nanos; PRIORITIES],
    /// Time at which the pause of each priority began.
    since: [Nanos; PRIORITIES],
    /// Time at which the last pause of each priority ended.
    ended: [Nanos; PRIORITIES],
    /// Total time for which frames of each priority waited behind pauses that ended.
    behind_pauses: [Nanos; PRIORITIES],
}

impl PauseReceiver {
    /// Returns a receiver that obeys the priorities of `honour` on a link of `rate`.
    #[must_use]
    pub const fn new(honour: u8, rate: BitRate) -> PauseReceiver {
        PauseReceiver {
            honour,
            rate,
            paused: 0,
            until: [Nanos::ZERO; PRIORITIES],
            since: [Nanos::ZERO; PRIORITIES],
            ended: [Nanos::ZERO; PRIORITIES],
            behind_pauses: [Nanos::ZERO; PRIORITIES],
        }
    }

    /// Changes the link rate by which quanta of later frames are converted.
    pub const fn set_rate(&mut self, rate: BitRate) {
        self.rate = rate;
    }

    /// Ends all pauses.
    pub fn forget(&mut self, now: Nanos, counters: &FlowCounters) {
        for priority in Priority::all_of(self.paused) {
            self.end(priority, now, None, counters);
        }
    }

    /// Applies the classes of one PFC frame: a time above 0 restarts the timer, 0 ends the pause at once, and classes that are
    /// not named stay as they are. `nonempty_since` returns the time since which a queue is not empty.
    pub fn take(
        &mut self,
        (classes, quanta): (u8, &[u16; 8]),
        now: Nanos,
        nonempty_since: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) {
        self.paused(now, &nonempty_since, counters);
        for (priority, quanta) in Priority::all().zip(quanta) {
            if classes & self.honour & priority.bit() == 0 {
                continue;
            }
            if *quanta == 0 {
                if self.paused & priority.bit() != 0 {
                    self.end(priority, now, nonempty_since(priority), counters);
                }
                continue;
            }
            if let Some(until) = self.until.get_mut(priority.index()) {
                *until = now + time_of(*quanta, self.rate);
            }
            if self.paused & priority.bit() == 0 {
                self.paused |= priority.bit();
                if let Some(since) = self.since.get_mut(priority.index()) {
                    *since = now;
                }
                if let Some(counters) = counters.priorities.get(priority.index()) {
                    counters.rx_pauses.add(1);
                    counters.rx_began.set(now.0);
                }
            }
        }
        counters.paused.set(u64::from(self.paused));
    }

    /// Returns true if pauses of a priority are obeyed.
    #[must_use]
    pub const fn honours(&self, priority: Priority) -> bool {
        self.honour & priority.bit() != 0
    }

    /// Returns true if nothing is paused, so no timer can expire.
    #[inline]
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.paused == 0
    }

    /// Ends the pauses whose timers have expired, and returns the priorities paused at `now`. `nonempty_since` returns the time since
    /// which a queue is not empty: it must be called before a frame of the queue leaves.
    #[inline]
    pub fn paused(
        &mut self,
        now: Nanos,
        nonempty_since: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) -> u8 {
        if self.paused == 0 {
            return 0;
        }
        for priority in Priority::all() {
            let until = self.until.get(priority.index()).copied();
            let until = until.unwrap_or(Nanos::ZERO);
            if self.paused & priority.bit() != 0 && until <= now {
                self.end(priority, until, nonempty_since(priority), counters);
            }
        }
        self.paused
    }

    /// Ends a pause, behind which frames have waited since `nonempty_since`.
    fn end(
        &mut self,
        priority: Priority,
        at: Nanos,
        nonempty_since: Option<Nanos>,
        counters: &FlowCounters,
    ) {
        let behind = self.behind(priority, at, nonempty_since);
        if let Some(stuck) = self.behind_pauses.get_mut(priority.index()) {
            *stuck += behind;
        }
        self.paused &= !priority.bit();
        let lasted = at.since(self.since(priority));
        if let Some(ended) = self.ended.get_mut(priority.index()) {
            *ended = at;
        }
        if let Some(counters) = counters.priorities.get(priority.index()) {
            counters.rx_paused_ns.add(lasted.0);
            counters.rx_last_ns.set(lasted.0);
            counters.rx_longest_ns.raise(lasted.0);
        }
        counters.paused.set(u64::from(self.paused));
    }

    /// Returns the time for which frames have waited behind the current pause, during which nothing leaves.
    fn behind(&self, priority: Priority, now: Nanos, nonempty_since: Option<Nanos>) -> Nanos {
        match nonempty_since {
            Some(nonempty_since) if self.is_paused(priority) => {
                now.since(self.since(priority).max(nonempty_since))
            }
            _ => Nanos::ZERO,
        }
    }

    /// Returns the total time for which frames have waited behind pauses of a priority, behind the current one since `nonempty_since`.
    #[must_use]
    pub fn time_behind_pauses(
        &self,
        priority: Priority,
        now: Nanos,
        nonempty_since: Option<Nanos>,
    ) -> Nanos {
        let ended = self.behind_pauses.get(priority.index()).copied();
        ended.unwrap_or(Nanos::ZERO) + self.behind(priority, now, nonempty_since)
    }

    /// Returns true if a priority was paused at the last evaluation.
    #[must_use]
    pub const fn is_paused(&self, priority: Priority) -> bool {
        self.paused & priority.bit() != 0
    }

    /// Returns the time at which a priority's pause began.
    #[must_use]
    pub fn since(&self, priority: Priority) -> Nanos {
        let since = self.since.get(priority.index()).copied();
        since.unwrap_or(Nanos::ZERO)
    }

    /// Returns the time at which a priority's last pause ended.
    #[must_use]
    pub fn ended(&self, priority: Priority) -> Nanos {
        let ended = self.ended.get(priority.index()).copied();
        ended.unwrap_or(Nanos::ZERO)
    }
}

//! Pauses the peer asks of us: one timer a priority.

use crate::counters::FlowCounters;
use crate::units::{BitRate, Nanos, PRIORITIES, Priority};
use crate::wire::mac_control::time_of;

/// The peer's pauses.
#[derive(Debug)]
pub struct PauseReceiver {
    honour: u8,
    rate: BitRate,
    paused: u8,
    /// When the pause ends by itself.
    until: [Nanos; PRIORITIES],
    /// When the pause began.
    since: [Nanos; PRIORITIES],
    /// When the last pause ended.
    ended: [Nanos; PRIORITIES],
    /// For how long frames have waited behind pauses that ended.
    stuck: [Nanos; PRIORITIES],
}

impl PauseReceiver {
    /// Obeys the priorities of `honour` on a link of `rate`.
    #[must_use]
    pub const fn new(honour: u8, rate: BitRate) -> PauseReceiver {
        PauseReceiver {
            honour,
            rate,
            paused: 0,
            until: [Nanos::ZERO; PRIORITIES],
            since: [Nanos::ZERO; PRIORITIES],
            ended: [Nanos::ZERO; PRIORITIES],
            stuck: [Nanos::ZERO; PRIORITIES],
        }
    }

    /// Quanta of frames that come from now on are of a link of `rate`.
    pub const fn set_rate(&mut self, rate: BitRate) {
        self.rate = rate;
    }

    /// Ends all pauses.
    pub fn forget(&mut self, now: Nanos, counters: &FlowCounters) {
        for priority in Priority::all_of(self.paused) {
            self.end(priority, now, None, counters);
        }
    }

    /// Takes the classes of one PFC frame: a time above 0 restarts the timer, 0 ends the pause at once, and classes that are
    /// not named stay as they are. `waiting` tells since when a queue is not empty.
    pub fn take(
        &mut self,
        (classes, quanta): (u8, &[u16; 8]),
        now: Nanos,
        waiting: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) {
        self.paused(now, &waiting, counters);
        for (priority, quanta) in Priority::all().zip(quanta) {
            if classes & self.honour & priority.bit() == 0 {
                continue;
            }
            if *quanta == 0 {
                if self.paused & priority.bit() != 0 {
                    self.end(priority, now, waiting(priority), counters);
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

    /// Whether pauses of a priority are obeyed.
    #[must_use]
    pub const fn honours(&self, priority: Priority) -> bool {
        self.honour & priority.bit() != 0
    }

    /// Nothing is paused, so no timer can run out.
    #[inline]
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.paused == 0
    }

    /// The priorities paused at `now`; timers that have run out end. `waiting` tells since when a queue is not empty: it must be asked
    /// before a frame of it leaves.
    #[inline]
    pub fn paused(
        &mut self,
        now: Nanos,
        waiting: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) -> u8 {
        if self.paused == 0 {
            return 0;
        }
        for priority in Priority::all() {
            let until = self.until.get(priority.index()).copied();
            let until = until.unwrap_or(Nanos::ZERO);
            if self.paused & priority.bit() != 0 && until <= now {
                self.end(priority, until, waiting(priority), counters);
            }
        }
        self.paused
    }

    /// Ends a pause, behind which frames have waited since `waiting`.
    fn end(
        &mut self,
        priority: Priority,
        at: Nanos,
        waiting: Option<Nanos>,
        counters: &FlowCounters,
    ) {
        let behind = self.behind(priority, at, waiting);
        if let Some(stuck) = self.stuck.get_mut(priority.index()) {
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

    /// For how long frames have waited behind the pause there is, which nothing leaves meanwhile.
    fn behind(&self, priority: Priority, now: Nanos, waiting: Option<Nanos>) -> Nanos {
        match waiting {
            Some(waiting) if self.is_paused(priority) => {
                now.since(self.since(priority).max(waiting))
            }
            _ => Nanos::ZERO,
        }
    }

    /// For how long frames have waited behind pauses of a priority ever; of the pause there is since `waiting`.
    #[must_use]
    pub fn stuck(&self, priority: Priority, now: Nanos, waiting: Option<Nanos>) -> Nanos {
        let ended = self.stuck.get(priority.index()).copied();
        ended.unwrap_or(Nanos::ZERO) + self.behind(priority, now, waiting)
    }

    /// Whether a priority was paused when last looked.
    #[must_use]
    pub const fn is_paused(&self, priority: Priority) -> bool {
        self.paused & priority.bit() != 0
    }

    /// When a priority's pause began.
    #[must_use]
    pub fn since(&self, priority: Priority) -> Nanos {
        let since = self.since.get(priority.index()).copied();
        since.unwrap_or(Nanos::ZERO)
    }

    /// When a priority's last pause ended.
    #[must_use]
    pub fn ended(&self, priority: Priority) -> Nanos {
        let ended = self.ended.get(priority.index()).copied();
        ended.unwrap_or(Nanos::ZERO)
    }
}

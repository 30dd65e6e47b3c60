//! Scheduler of a port: strict queues first, highest priority first; then deficit weighted round robin (Shreedhar and Varghese
//! 1995; ETS in 802.1Qaz).
//!
//! It knows queues only as bits and lengths. A queue that is empty, paused or over its rate is not offered to it.

use crate::bits::low8;
use crate::moved_hosts::HostShare;
use crate::units::{PRIORITIES, Priority};

/// Bytes that one unit of weight earns in a round.
const QUANTUM: i64 = 256;

/// Divisor of the weight that moved hosts share with others: their queue has this part at least, weight 1 of the default 50.
pub const LEAST_PART: i64 = 50;

/// Scheduling discipline of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// Served before all DWRR queues and all strict queues of lower priority.
    Strict,
    /// Served with a share in proportion to the weight, 1..=100.
    Dwrr(u8),
}

/// Division of the weight of some queues between them and the queue of moved hosts, by the numbers of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightSplit {
    /// Queue of the moved hosts.
    pub moved: Priority,
    /// Queues of the others, as a mask.
    pub others: u8,
    /// Numbers of hosts.
    pub share: HostShare,
}

/// Scheduler state of one port.
#[derive(Debug, Clone)]
pub struct Scheduler {
    strict: u8,
    weights: [u8; PRIORITIES],
    split: Option<WeightSplit>,
    quantum: [i64; PRIORITIES],
    deficit: [i64; PRIORITIES],
    /// DWRR queue that is being served.
    current: Priority,
}

impl Scheduler {
    /// Returns a scheduler with these disciplines, priority 0 first.
    #[must_use]
    pub fn new(disciplines: &[Discipline; PRIORITIES]) -> Scheduler {
        let mut scheduler = Scheduler {
            strict: 0,
            weights: [1; PRIORITIES],
            split: None,
            quantum: [0; PRIORITIES],
            deficit: [0; PRIORITIES],
            current: Priority::new(0),
        };
        for (priority, discipline) in Priority::all().zip(disciplines) {
            scheduler.set(priority, *discipline);
        }
        scheduler
    }

    /// Changes the discipline of a queue. Its deficit is cleared.
    pub fn set(&mut self, queue: Priority, discipline: Discipline) {
        let (Some(own), Some(deficit)) = (
            self.weights.get_mut(queue.index()),
            self.deficit.get_mut(queue.index()),
        ) else {
            return;
        };
        *deficit = 0;
        match discipline {
            Discipline::Strict => self.strict |= queue.bit(),
            Discipline::Dwrr(weight) => {
                self.strict &= !queue.bit();
                *own = weight.max(1);
            }
        }
        self.set_quanta();
    }

    /// Divides weights anew, or gives each queue its own back. Deficits are kept.
    pub fn set_split(&mut self, split: Option<WeightSplit>) {
        self.split = split;
        self.set_quanta();
    }

    /// Computes the quanta from weights and split. The queues that share have the sum of the others' weights, so that all further queues keep
    /// their part; if none of the others is a DWRR queue, nothing is divided.
    fn set_quanta(&mut self) {
        let dwrr = |mask: u8| {
            each(mask & !self.strict).filter_map(|queue| self.weights.get(queue.index()))
        };
        let divided = self.split.and_then(|split| {
            let shared: i64 = dwrr(split.others).map(|weight| i64::from(*weight)).sum();
            (shared > 0).then(|| (split, QUANTUM * shared))
        });
        for (priority, (quantum, weight)) in
            Priority::all().zip(self.quantum.iter_mut().zip(&self.weights))
        {
            let own = QUANTUM * i64::from(*weight);
            *quantum = match divided {
                Some((split, shared)) if priority == split.moved => moved_part(split.share, shared),
                Some((split, shared)) if priority.bit() & split.others != 0 => {
                    own * (shared - moved_part(split.share, shared)) / shared
                }
                _ => own,
            }
            .max(1);
        }
    }

    /// Returns the queue that sends next among `offered`; `head` returns the wire length of a queue's first frame.
    #[inline]
    pub fn pick(&mut self, offered: u8, head: impl Fn(Priority) -> u16) -> Option<Priority> {
        let strict = offered & self.strict;
        if strict != 0 {
            return Some(highest(strict));
        }
        if offered == 0 {
            None
        } else {
            Some(self.pick_dwrr(offered, head))
        }
    }

    /// Returns the bytes that `queue`, just picked, may send before the next queue is due.
    #[inline]
    #[must_use]
    pub fn allowance(&self, queue: Priority) -> i64 {
        if self.strict & queue.bit() != 0 {
            return i64::MAX;
        }
        self.deficit.get(queue.index()).copied().unwrap_or(0)
    }

    /// Accounts for `bytes` sent from `queue`; `empty` is true if it is empty now.
    #[inline]
    pub fn sent(&mut self, queue: Priority, bytes: i64, empty: bool) {
        if self.strict & queue.bit() == 0
            && let Some(deficit) = self.deficit.get_mut(queue.index())
        {
            // An empty queue saves nothing up.
            *deficit = if empty { 0 } else { *deficit - bytes };
        }
    }

    /// Returns the queue among `offered` whose run leaves first, where all of them leave: strict queues before others, then by
    /// weight, the higher priority if those are equal.
    #[inline]
    #[must_use]
    pub fn first_to_leave(&self, offered: u8) -> Priority {
        let strict = offered & self.strict;
        if strict != 0 {
            return highest(strict);
        }
        let heaviest = each(offered).max_by_key(|queue| self.quantum.get(queue.index()));
        heaviest.unwrap_or_default()
    }

    /// Accounts for frames that bypassed a queue: it is the queue being served, and it saves nothing up, even if frames are
    /// left.
    #[inline]
    pub fn account_bypassed(&mut self, queue: Priority) {
        if self.strict & queue.bit() == 0 {
            self.current = queue;
            self.sent(queue, 0, true);
        }
    }

    fn pick_dwrr(&mut self, offered: u8, head: impl Fn(Priority) -> u16) -> Priority {
        if offered & self.current.bit() != 0 && self.affords(self.current, &head) {
            return self.current;
        }
        let mut next_queue = self.current;
        // One round of the offered queues, each earning its quantum in turn.
        for _ in 0..offered.count_ones() {
            next_queue = next(offered, next_queue);
            self.earn(next_queue, 1);
            if self.affords(next_queue, &head) {
                self.current = next_queue;
                return next_queue;
            }
        }
        // Frames larger than the quanta: skip the rounds in which no queue could send.
        let rounds = each(offered)
            .map(|queue| self.rounds_short(queue, &head))
            .min()
            .unwrap_or(0);
        for queue in each(offered) {
            self.earn(queue, rounds.saturating_sub(1));
        }
        for _ in 0..offered.count_ones() {
            next_queue = next(offered, next_queue);
            self.earn(next_queue, 1);
            if self.affords(next_queue, &head) {
                break;
            }
        }
        self.current = next_queue;
        next_queue
    }

    #[inline]
    fn affords(&self, queue: Priority, head: &impl Fn(Priority) -> u16) -> bool {
        self.deficit
            .get(queue.index())
            .is_some_and(|deficit| *deficit >= i64::from(head(queue)))
    }

    fn earn(&mut self, queue: Priority, rounds: i64) {
        let quantum = self.quantum.get(queue.index()).copied().unwrap_or(QUANTUM);
        if let Some(deficit) = self.deficit.get_mut(queue.index()) {
            *deficit += quantum * rounds;
        }
    }

    /// Returns the number of rounds until `queue` can afford its first frame.
    fn rounds_short(&self, queue: Priority, head: &impl Fn(Priority) -> u16) -> i64 {
        let deficit = self.deficit.get(queue.index()).copied().unwrap_or(0);
        let quantum = self
            .quantum
            .get(queue.index())
            .copied()
            .unwrap_or(QUANTUM)
            .max(1);
        let short = (i64::from(head(queue)) - deficit).max(0);
        (short + quantum - 1) / quantum
    }
}

/// Returns the part of `shared` that moved hosts have by their number, between the [least](LEAST_PART) and what leaves the others as much.
fn moved_part(HostShare { moved, all }: HostShare, shared: i64) -> i64 {
    let part = shared * i64::from(moved.min(all)) / i64::from(all.max(1));
    let least = shared / LEAST_PART;
    part.clamp(least, shared - least)
}

#[inline]
const fn highest(mask: u8) -> Priority {
    Priority::new(7 - low8(mask.leading_zeros() as usize))
}

/// Returns the next offered queue after `current`, cyclically.
#[inline]
const fn next(offered: u8, current: Priority) -> Priority {
    let rotated = offered.rotate_right(current.get() as u32 + 1);
    Priority::new(current.get() + 1 + low8(rotated.trailing_zeros() as usize))
}

#[inline]
fn each(mut mask: u8) -> impl Iterator<Item = Priority> {
    std::iter::from_fn(move || {
        let index = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (index < PRIORITIES).then_some(Priority::new(low8(index)))
    })
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;

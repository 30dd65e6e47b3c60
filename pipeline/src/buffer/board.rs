//! What the workers of one switch tell each other about the buffer they share.
//!
//! | in the usage of worker w | written by | read by |
//! |---|---|---|
//! | what it holds of the pool | w, once a burst | the other workers, once a burst |
//! | what it has given back of the frames that worker v took in | w, as frames leave | v, once a turn |
//! | what it holds of the groups of a port that several workers receive from | w, once a burst | those workers, once a turn |
//! | pressure, storms of such a port | w, once a turn | the port's owner; the other receivers |
//!
//! Law: every cache line has one writer and every count only grows, so no line is fought over and no lock is needed. What
//! a worker reads of the pool is at most one burst of each other worker old, and of groups a turn. Relaxed is enough: what worker v took in it has counted
//! before the frame crosses (a release store of the ring), so it never sees more given back than it took.

use crossbeam_utils::CachePadded;

use super::amount::Amount;
use crate::counters::{Gauge, Traffic};
use crate::units::{MAX_PORTS, PRIORITIES, WorkerId};

/// An [`Amount`] that others may read.
#[derive(Debug, Default)]
pub(super) struct Told {
    bytes: Gauge,
    frames: Gauge,
}

impl Told {
    #[inline]
    pub(super) fn set(&self, amount: Amount) {
        self.bytes.set(amount.bytes);
        self.frames.set(amount.frames);
    }

    #[inline]
    pub(super) fn get(&self) -> Amount {
        Amount {
            bytes: self.bytes.get(),
            frames: self.frames.get(),
        }
    }
}

/// What a worker holds of the pool.
#[derive(Debug, Default)]
pub(super) struct PoolShare {
    /// Taken less given back, modulo 2^64: the sum over all workers is what is held.
    pub(super) used: Told,
    /// Of the shared pool.
    pub(super) in_shared: Told,
    /// Of headroom.
    pub(super) in_headroom: Told,
}

/// What a worker holds of one group that it shares with others.
#[derive(Debug, Default)]
pub(super) struct GroupShare {
    pub(super) ordinary: Told,
    pub(super) headroom: Told,
}

/// What a worker tells of a port that several workers receive from.
#[derive(Debug, Default)]
pub(super) struct PortSignals {
    /// Not 0: it falls behind its receive queue.
    pub(super) pressure: Gauge,
    /// By the owner: priorities whose frames are dropped because of a storm.
    pub(super) dropping: Gauge,
}

/// One worker's part of the board.
#[derive(Debug)]
pub(super) struct WorkerUsage {
    pub(super) pool: CachePadded<PoolShare>,
    /// By [`GroupId::line`](super::GroupId::line), then by priority.
    pub(super) released: Box<[CachePadded<[Traffic; PRIORITIES]>]>,
    /// By port, then by priority.
    pub(super) groups: Box<[CachePadded<[GroupShare; PRIORITIES]>]>,
    /// By port.
    pub(super) ports: Box<[CachePadded<PortSignals>]>,
}

/// The usage of all workers.
#[derive(Debug)]
pub struct UsageBoard {
    workers: Box<[WorkerUsage]>,
}

fn lines<T: Default>(count: usize) -> Box<[CachePadded<T>]> {
    (0..count).map(|_| CachePadded::default()).collect()
}

impl UsageBoard {
    /// Empty usages of `workers` workers of a switch with `ports` ports.
    #[must_use]
    pub fn new(workers: usize, ports: usize) -> UsageBoard {
        let worker = |_| WorkerUsage {
            pool: CachePadded::default(),
            released: lines(if workers == 1 {
                ports
            } else {
                workers * MAX_PORTS
            }),
            groups: lines(ports),
            ports: lines(ports),
        };
        UsageBoard {
            workers: (0..workers.max(1)).map(worker).collect(),
        }
    }

    pub(super) fn usage_of(&self, worker: WorkerId) -> Option<&WorkerUsage> {
        self.workers.get(worker.index())
    }

    pub(super) fn usages(&self) -> impl Iterator<Item = &WorkerUsage> {
        self.workers.iter()
    }

    /// The usages of all workers but one.
    #[inline]
    pub(super) fn others(&self, me: WorkerId) -> impl Iterator<Item = &WorkerUsage> {
        let workers = self.workers.iter().enumerate();
        workers
            .filter(move |(index, _)| *index != me.index())
            .map(|(_, worker)| worker)
    }

    /// All that the switch holds. Exact once the workers stand still.
    #[must_use]
    pub fn used(&self) -> Amount {
        let parts = self.workers.iter().map(|worker| worker.pool.used.get());
        parts.fold(Amount::ZERO, Amount::wrapping_plus).or_nothing()
    }
}

/// What a worker keeps to reckon with the others.
#[derive(Debug)]
pub(super) struct Others {
    /// The pool without reserves and headroom, whoever holds it.
    pub(super) shared: Amount,
    /// Headroom of all groups together, whoever holds it.
    pub(super) headroom: Amount,
    /// What the others took less what they gave back, modulo 2^64.
    pub(super) used: Amount,
    /// Groups of each port of which this worker held something when last published.
    pub(super) holding: [u8; MAX_PORTS],
    /// Ports that several workers receive from.
    pub(super) spread: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with two writers would cost every packet a transfer between cores.
    #[test]
    fn every_line_has_one_writer() {
        let board = UsageBoard::new(2, 3);
        let mut lines = std::collections::HashMap::new();
        for (writer, worker) in board.usages().enumerate() {
            let mut claim = |start: usize, bytes: usize| {
                for line in start / 64..=(start + bytes - 1) / 64 {
                    assert_eq!(*lines.entry(line).or_insert(writer), writer, "line {line}");
                }
            };
            let at = |thing: *const u8| thing.addr();
            claim(
                at((&raw const worker.pool).cast()),
                size_of_val(&worker.pool),
            );
            claim(
                at(worker.released.as_ptr().cast()),
                size_of_val(&*worker.released),
            );
            claim(
                at(worker.groups.as_ptr().cast()),
                size_of_val(&*worker.groups),
            );
            claim(
                at(worker.ports.as_ptr().cast()),
                size_of_val(&*worker.ports),
            );
            assert_eq!(at((&raw const worker.pool).cast()) % 64, 0);
        }
    }

    /// What worker 1 gives back of worker 0's frames is on no line that it writes for anybody else.
    #[test]
    fn ledgers_for_different_readers_share_no_line() {
        assert_eq!(size_of::<[Traffic; PRIORITIES]>(), 128);
        assert_eq!(align_of::<CachePadded<[Traffic; PRIORITIES]>>(), 128);
    }
}

//! Shared-buffer ledger: cache lines in which each worker publishes to the others what it holds of the buffer.
//!
//! | entry in the usage of worker w | written by | read by |
//! |---|---|---|
//! | amount w holds of the pool | w, once a burst | the other workers, once a burst |
//! | amount w released of the frames that worker v received | w, as frames leave | v, once an iteration |
//! | amount w holds of the groups of a port that several workers receive from | w, once a burst | those workers, once an iteration |
//! | pressure and storms of such a port | w, once an iteration | the port's owner; the other receivers |
//!
//! Law: every cache line has one writer and every release count only grows, so no line is contended and no lock is needed. The
//! pool entries a worker reads are at most one burst of each other worker old, the group entries at most one iteration.
//! Relaxed ordering is enough: worker v counts what it received before the frame crosses to another worker (a release store of
//! the ring), so it never sees more released than it received.

use crossbeam_utils::CachePadded;

use super::amount::Amount;
use crate::counters::{Gauge, Traffic};
use crate::units::{MAX_PORTS, PRIORITIES, WorkerId};

/// An [`Amount`] that other workers may read.
#[derive(Debug, Default)]
pub(super) struct Published {
    bytes: Gauge,
    frames: Gauge,
}

impl Published {
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

/// Amounts that a worker holds of the pool.
#[derive(Debug, Default)]
pub(super) struct PoolShare {
    /// Amount charged less amount released, modulo 2^64: the sum over all workers is the amount held.
    pub(super) used: Published,
    /// Part held in the shared pool.
    pub(super) in_shared: Published,
    /// Part held in headroom.
    pub(super) in_headroom: Published,
}

/// Amounts that a worker holds of one group that several workers receive into.
#[derive(Debug, Default)]
pub(super) struct GroupShare {
    pub(super) ordinary: Published,
    pub(super) headroom: Published,
}

/// Signals of a worker about one port that several workers receive from.
#[derive(Debug, Default)]
pub(super) struct PortSignals {
    /// Nonzero while the worker falls behind its receive queue.
    pub(super) pressure: Gauge,
    /// Priorities (bit mask) whose frames are dropped because of a storm; written by the port's owner.
    pub(super) dropping: Gauge,
}

/// One worker's entries in the ledger.
#[derive(Debug)]
pub(super) struct WorkerUsage {
    pub(super) pool: CachePadded<PoolShare>,
    /// Released frames and bytes, by [`GroupId::line`](super::GroupId::line), then by priority.
    pub(super) released: Box<[CachePadded<[Traffic; PRIORITIES]>]>,
    /// Amounts held of each group, by port, then by priority.
    pub(super) groups: Box<[CachePadded<[GroupShare; PRIORITIES]>]>,
    /// Signals of each port, by port.
    pub(super) ports: Box<[CachePadded<PortSignals>]>,
}

/// Ledger with the usage of every worker.
#[derive(Debug)]
pub struct UsageLedger {
    workers: Box<[WorkerUsage]>,
}

fn lines<T: Default>(count: usize) -> Box<[CachePadded<T>]> {
    (0..count).map(|_| CachePadded::default()).collect()
}

impl UsageLedger {
    /// Returns an empty ledger for `workers` workers of a switch with `ports` ports.
    #[must_use]
    pub fn new(workers: usize, ports: usize) -> UsageLedger {
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
        UsageLedger {
            workers: (0..workers.max(1)).map(worker).collect(),
        }
    }

    pub(super) fn usage_of(&self, worker: WorkerId) -> Option<&WorkerUsage> {
        self.workers.get(worker.index())
    }

    pub(super) fn usages(&self) -> impl Iterator<Item = &WorkerUsage> {
        self.workers.iter()
    }

    /// Returns the usages of all workers except `me`.
    #[inline]
    pub(super) fn remote_usages(&self, me: WorkerId) -> impl Iterator<Item = &WorkerUsage> {
        let workers = self.workers.iter().enumerate();
        workers
            .filter(move |(index, _)| *index != me.index())
            .map(|(_, worker)| worker)
    }

    /// Returns the amount the whole switch holds. Exact only once the workers have stopped.
    #[must_use]
    pub fn used(&self) -> Amount {
        let parts = self.workers.iter().map(|worker| worker.pool.used.get());
        parts.fold(Amount::ZERO, Amount::wrapping_plus).or_nothing()
    }
}

/// Base values and sets from which a worker computes the other workers' part.
#[derive(Debug)]
pub(super) struct RemoteUsage {
    /// Size of the pool without reserves and headroom, whichever worker holds it.
    pub(super) pool_total: Amount,
    /// Headroom of all groups together, whichever worker holds it.
    pub(super) headroom_total: Amount,
    /// Amount the others charged less what they released, modulo 2^64.
    pub(super) used: Amount,
    /// Priorities, by port, of the groups in which this worker held something when it last published.
    pub(super) holding: [u8; MAX_PORTS],
    /// Ports that several workers receive from, one bit each.
    pub(super) spread: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with two writers would cost every packet a transfer between cores.
    #[test]
    fn every_line_has_one_writer() {
        let ledger = UsageLedger::new(2, 3);
        let mut lines = std::collections::HashMap::new();
        for (writer, worker) in ledger.usages().enumerate() {
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

    /// Releases by worker 1 of worker 0's frames are on no line that it writes for any other reader.
    #[test]
    fn ledgers_for_different_readers_share_no_line() {
        assert_eq!(size_of::<[Traffic; PRIORITIES]>(), 128);
        assert_eq!(align_of::<CachePadded<[Traffic; PRIORITIES]>>(), 128);
    }
}

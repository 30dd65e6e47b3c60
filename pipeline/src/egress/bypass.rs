//! The way past an idle queue: a run that is all its queue has need not go through its cells.
//!
//! Each port has a place for one run of every priority. When the port's turn comes, and all that waits in it waits here, the
//! runs leave as they are: strict queues first, then by weight. They join their queues when anything at all comes
//! between: more frames for the same queue, a rate that does not let all of them go, a depth at which frames are marked.
//! A paused run stays where it is.
//!
//! Law: frames, order, marks and accounts are as if every frame had been queued.

use super::marking::Marking;
use super::port::EgressPort;
use super::serve::{Lanes, Outlet};
use crate::burst::{Run, RunPool};
use crate::frame::FrameBuf;
use crate::per::PerPriority;
use crate::tap::FlowTap;
use crate::units::Priority;

/// The runs of one port that may not have to queue.
#[derive(Debug)]
pub struct Bypass<B> {
    runs: PerPriority<Option<Box<Run<B>>>>,
    /// The priorities that have one.
    taken: u8,
}

impl<B> Default for Bypass<B> {
    fn default() -> Bypass<B> {
        Bypass {
            runs: PerPriority::default(),
            taken: 0,
        }
    }
}

impl<B: FrameBuf> Bypass<B> {
    /// Whether no run waits here.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// Frames that wait here.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let runs = self.runs.0.iter().flatten();
        runs.map(|run| run.frames.len()).sum()
    }

    /// Takes a run that was admitted to `port` if nothing else waits in its queue; else the run comes back.
    #[inline]
    pub fn offer(&mut self, port: &EgressPort, run: Box<Run<B>>) -> Option<Box<Run<B>>> {
        let priority = run.head.priority;
        if port.queues[priority].waiting != run.head.amount {
            return Some(run);
        }
        self.taken |= priority.bit();
        self.runs[priority].replace(run)
    }

    /// Takes the run of a queue out again, if there is one.
    #[inline]
    pub fn take(&mut self, priority: Priority) -> Option<Box<Run<B>>> {
        self.taken &= !priority.bit();
        self.runs[priority].take()
    }

    /// Hands over the runs if all that waits in `port` waits here and may leave unchanged; as many as `out` has room for.
    /// `false`: nothing was done, and they have to queue.
    #[inline]
    pub fn depart(
        &mut self,
        port: &mut EgressPort,
        out: &mut impl Outlet<B>,
        lanes: &mut Lanes<'_>,
        marking: &Marking<'_, impl FlowTap>,
        pool: &mut RunPool<B>,
    ) -> bool {
        if port.backlog != self.taken {
            return false;
        }
        let mut ready = self.taken & !port.paused;
        if ready != 0 && !port.lets_all_go(ready, marking) {
            return false;
        }
        while ready != 0 {
            let priority = port.scheduler.first(ready);
            ready &= !priority.bit();
            let Some(run) = self.runs[priority].as_deref() else {
                continue;
            };
            if run.frames.len() > out.room() {
                break;
            }
            if let Some(mut run) = self.take(priority) {
                port.pass(priority);
                lanes.add(out.lane(priority), run.head.group, run.head.amount);
                out.put_run(&mut run);
                pool.give(run);
            }
        }
        true
    }
}

impl EgressPort {
    /// Whether all that waits in these queues may leave now by the rates, and none of it is changed on its way out.
    #[inline]
    fn lets_all_go(&mut self, ready: u8, marking: &Marking<'_, impl FlowTap>) -> bool {
        self.shaper.refill(marking.now);
        let limited = (self.limited | self.floored) & ready != 0;
        let mut all = 0;
        for priority in Priority::all_of(ready) {
            let queue = &mut self.queues[priority];
            let bytes = i64::try_from(queue.waiting.bytes).unwrap_or(i64::MAX);
            if marking.scope(queue.config.ecn.as_ref()).concerns_any(bytes) {
                return false;
            }
            if limited {
                queue.shaper.refill(marking.now);
                queue.floor.refill(marking.now);
                if queue.shaper.allowance() < bytes {
                    return false;
                }
            }
            all += bytes;
        }
        self.shaper.allowance() >= all
    }

    /// Accounts for all that waits in a queue as sent.
    #[inline]
    fn pass(&mut self, priority: Priority) {
        let queue = &mut self.queues[priority];
        let all = queue.waiting;
        let bytes = i64::try_from(all.bytes).unwrap_or(i64::MAX);
        if self.floored & priority.bit() != 0 && queue.floor.ready() {
            queue.floor.charge(bytes);
        }
        queue.shaper.charge(bytes);
        self.shaper.charge(bytes);
        self.scheduler.alone(priority);
        self.leave(priority, all);
    }
}

//! Bypass of an empty queue: a run that is all its queue holds waits beside the queue's slots, and is sent without being put
//! into them.
//!
//! Each port has a slot for one run of every priority. If everything that waits at the port waits here when the port is
//! served, the runs leave as they are: strict queues first, then by weight. They join their queues if anything intervenes:
//! more frames for the same queue, a rate that does not let all of several runs go, a depth at which frames are marked. A
//! paused run stays where it is.
//!
//! Law: with one queue in use, frames, order, marks and accounts are as if every frame had been queued. With several, each
//! queue keeps its order and its accounts, but runs leave whole where queues would take turns, so depths differ, and with
//! them the frames that are refused.

use super::marking::Marking;
use super::port::EgressPort;
use super::serve::{InFlightAccounts, TxSink};
use crate::buffer::Amount;
use crate::burst::{Run, RunPool};
use crate::frame::{FrameBuf, Queued, wire_len};
use crate::per::PerPriority;
use crate::tap::FlowTap;
use crate::units::Priority;

/// Runs of one port that may bypass their queues.
#[derive(Debug)]
pub struct Bypass<B> {
    runs: PerPriority<Option<Box<Run<B>>>>,
    /// Priorities whose slot is taken.
    occupied: u8,
}

impl<B> Default for Bypass<B> {
    fn default() -> Bypass<B> {
        Bypass {
            runs: PerPriority::default(),
            occupied: 0,
        }
    }
}

impl<B: FrameBuf> Bypass<B> {
    /// Returns true if no run waits here.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Returns the number of frames that wait here.
    #[must_use]
    pub fn frames(&self) -> usize {
        let runs = self.runs.0.iter().flatten();
        runs.map(|run| run.frames.len()).sum()
    }

    /// Takes a run that was admitted to `port` if it is all that its queue holds; otherwise returns it: it must be queued.
    #[inline]
    pub fn try_bypass(&mut self, port: &EgressPort, run: Box<Run<B>>) -> Option<Box<Run<B>>> {
        let priority = run.head.priority;
        if port.queues[priority].amount != run.head.amount {
            return Some(run);
        }
        self.occupied |= priority.bit();
        self.runs[priority].replace(run)
    }

    /// Takes the run of a queue out, if there is one.
    #[inline]
    pub fn take(&mut self, priority: Priority) -> Option<Box<Run<B>>> {
        self.occupied &= !priority.bit();
        self.runs[priority].take()
    }

    /// Hands over the runs if everything that waits at `port` waits here and may leave unchanged: as many as `out` has room
    /// for, and of a single run as much as there is budget for. Returns false if the runs must be queued; nothing was
    /// done then. Returns true otherwise, even if no frame left because all runs are paused or `out` is full.
    #[inline]
    pub fn send_runs(
        &mut self,
        port: &mut EgressPort,
        out: &mut impl TxSink<B>,
        accounts: &mut InFlightAccounts<'_>,
        marking: &Marking<'_, impl FlowTap>,
        pool: &mut RunPool<B>,
    ) -> bool {
        if port.backlog != self.occupied {
            return false;
        }
        let mut ready = self.occupied & !port.blocked;
        if ready == 0 {
            return true;
        }
        let Some(all) = port.all_ready(ready, marking, &self.runs) else {
            return false;
        };
        let budget = port.shaper.allowance().min(out.byte_budget());
        if all > budget && port.backlog & (port.backlog - 1) != 0 {
            return false;
        }
        let mut exit = Exit {
            port,
            out,
            accounts,
        };
        while ready != 0 && exit.out.free_slots() > 0 {
            let priority = exit.port.scheduler.first_to_leave(ready);
            ready &= !priority.bit();
            let Some(run) = self.runs[priority].as_deref_mut() else {
                continue;
            };
            let whole = all <= budget && run.frames.len() <= exit.out.free_slots();
            if !whole {
                exit.send_part(run, budget);
            }
            if (whole || run.frames.is_empty())
                && let Some(mut run) = self.take(priority)
            {
                exit.send(&mut run);
                pool.give(run);
            }
        }
        true
    }
}

/// Exit of the runs: port, sink and accounts.
struct Exit<'a, 'b, O> {
    port: &'a mut EgressPort,
    out: &'a mut O,
    accounts: &'a mut InFlightAccounts<'b>,
}

impl<O> Exit<'_, '_, O> {
    /// Hands over all frames of a run.
    #[inline]
    fn send<B>(&mut self, run: &mut Run<B>)
    where
        O: TxSink<B>,
    {
        let head = run.head;
        if head.amount.is_zero() {
            return;
        }
        self.port.account_bypassed(head.priority, head.amount);
        self.accounts
            .add(self.out.tx_queue(head.priority), head.group, head.amount);
        self.out.put_run(run);
    }

    /// Hands over the first frames of a run, as many as there is room and budget for.
    #[inline(never)]
    fn send_part<B>(&mut self, run: &mut Run<B>, budget: i64)
    where
        O: TxSink<B>,
    {
        let (mut frames, mut left) = (0, budget);
        for record in run.known().iter().take(self.out.free_slots()) {
            if left <= 0 {
                break;
            }
            left -= i64::from(wire_len(record.len.into()));
            frames += 1;
        }
        let part = run.head_of(frames);
        if frames == 0 {
            return;
        }
        self.port.account_bypassed(part.priority, part.amount);
        self.accounts
            .add(self.out.tx_queue(part.priority), part.group, part.amount);
        let metas = run.records.iter().map(|record| part.meta(record));
        for (buf, meta) in run.frames.drain(..frames).zip(metas) {
            self.out.put(Queued { buf, meta });
        }
        run.forget_front(frames, &part);
    }
}

impl EgressPort {
    /// Returns the bytes that wait in these queues; `None` if a queue's rate does not let all of them leave now, or a frame
    /// may be changed on its way out.
    #[inline]
    fn all_ready<B: FrameBuf>(
        &mut self,
        ready: u8,
        marking: &Marking<'_, impl FlowTap>,
        runs: &PerPriority<Option<Box<Run<B>>>>,
    ) -> Option<i64> {
        self.shaper.refill(marking.now);
        let limited = (self.has_max_rate | self.has_min_rate) & ready != 0;
        let mut all = 0;
        for priority in Priority::all_of(ready) {
            let queue = &mut self.queues[priority];
            let bytes = i64::try_from(queue.amount.bytes).unwrap_or(i64::MAX);
            let records = runs[priority].as_deref().map_or(&[][..], Run::known);
            let scope = marking.scope(queue.config.ecn.as_ref());
            if scope.concerns_run(bytes, records) {
                return None;
            }
            if limited {
                queue.shaper.refill(marking.now);
                queue.min_rate.refill(marking.now);
                if queue.shaper.allowance() < bytes {
                    return None;
                }
            }
            all += bytes;
        }
        Some(all)
    }

    /// Accounts for frames that bypassed a queue: in the rates of queue and port, in the scheduler, and in the queue's
    /// depth.
    #[inline]
    fn account_bypassed(&mut self, priority: Priority, sent: Amount) {
        let queue = &mut self.queues[priority];
        let bytes = i64::try_from(sent.bytes).unwrap_or(i64::MAX);
        if self.has_min_rate & priority.bit() != 0 && queue.min_rate.ready() {
            queue.min_rate.charge(bytes);
        }
        queue.shaper.charge(bytes);
        self.shaper.charge(bytes);
        self.scheduler.account_bypassed(priority);
        self.account_out(priority, sent);
    }
}

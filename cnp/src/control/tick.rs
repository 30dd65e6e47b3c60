//! One tick, or a look between two: selects the queues that are due, runs their policies, and plans the next call.

use npcc_pipeline::units::{Nanos, PortId, Priority};

use super::ControlCore;
use super::level::QueueLevel;
use super::queue::{Intervals, READS_PER_LOOK};
use super::round::REFUSALS;
use crate::action::Action;
use crate::deadline::Deadline;
use crate::detector::Zone;
use crate::plan::{CnpOrder, Outlet, Suppressed};
use crate::policy::npcc::CLOSEST;
use crate::policy::{Amount, Decision, QueueContext, Reason, Round};

impl ControlCore {
    /// Makes every queue due at the next call, however early that comes. To be called when a worker saw a queue rise to `hard`.
    pub fn wake_early(&mut self) {
        self.regular = Nanos::ZERO;
        for queue in &mut self.queues {
            (queue.next_tick, queue.next_look) = (Nanos::ZERO, Nanos::ZERO);
        }
    }

    /// Returns true if this call evaluates the queues that are due, and not only those whose policy is urgent.
    fn is_regular(&mut self, now: Nanos) -> bool {
        // A call that comes an eighth of a period early is still the regular one.
        let regular =
            self.hurry.is_none() || now.since(self.regular).0 >= self.period.0 - self.period.0 / 8;
        if regular {
            let late = now.since(self.regular).0 > self.period.0 + self.tick.0 / 2;
            // Not by `wake_early`, and not the first call.
            self.tracker.adapt_reads(late && self.regular > Nanos::ZERO);
            self.regular = now;
        }
        regular
    }

    /// Plans the time of the next call.
    fn plan_next(&mut self, now: Nanos) {
        let urgent = self.owing || self.queues.iter().any(|queue| queue.policy.urgent());
        let left = Nanos(self.period.0.saturating_sub(now.since(self.regular).0));
        let next = if urgent { left.min(CLOSEST) } else { left };
        self.hurry = (next > Nanos::ZERO && next < self.period).then_some(next);
    }

    /// Runs one tick, or a look between two. `level` returns the level of a queue, its depth at least; `out` sends a CNP or returns why not.
    pub fn tick<L: Into<QueueLevel>>(
        &mut self,
        now: Nanos,
        level: impl Fn(PortId, Priority) -> L,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) {
        self.tick_within(now, &|| now, level, out);
    }

    /// Runs [`ControlCore::tick`] with a `clock` that is read now and then to see if the tick takes too long; `out` also says which
    /// port's cap a CNP is charged to.
    ///
    /// Once the deadline is over, the remaining work waits for the next call: records in their rings, queues in turn. Queues at `hard` come first, and
    /// have twice the time.
    pub fn tick_within<L: Into<QueueLevel>>(
        &mut self,
        now: Nanos,
        clock: &dyn Fn() -> Nanos,
        level: impl Fn(PortId, Priority) -> L,
        out: &mut impl Outlet,
    ) {
        self.status.ticks.add(1);
        self.refusals = REFUSALS;
        let deadline = Deadline::new(clock, now, self.deadline);
        self.tracker.drain(now, &deadline.half());
        let regular = self.is_regular(now);
        let (first, queues) = (self.first, self.queues.len());
        let (call, mut quiet) = (self.status.ticks.get(), 0);
        for hard in [true, false] {
            for index in (0..queues).map(|next| (first + next) % queues) {
                let Some(queue) = self.queues.get_mut(index) else {
                    continue;
                };
                let due = regular && now >= queue.next_look;
                if !due && !queue.policy.urgent() {
                    continue;
                }
                let level = level(queue.port, queue.priority).into();
                if queue.looked_in == call || hard && level.depth < queue.detector.config().hard {
                    continue;
                }
                // At least one of the other queues has its turn in every call.
                if !hard && quiet > 0 && deadline.is_over() {
                    self.status.queues_deferred.add(1);
                    self.first = index;
                    break;
                }
                queue.looked_in = call;
                quiet += usize::from(!hard);
                let until = if hard { deadline.twice() } else { deadline };
                self.look(index, due, &level, (now, &until), out);
            }
        }
        self.pay_debts(now, &deadline.twice(), out);
        self.plan_next(now);
        self.tracker.tidy(now);
    }

    /// Evaluates a queue at this level, and carries out its policy's decision.
    fn look(
        &mut self,
        index: usize,
        due: bool,
        level: &QueueLevel,
        (now, deadline): (Nanos, &Deadline<'_>),
        out: &mut impl Outlet,
    ) {
        let every = Intervals {
            tick: self.tick,
            period: self.period,
            stale: self.tracker.measure.stale,
        };
        let active = self.tracker.active(index);
        let Some(queue) = self.queues.get_mut(index) else {
            return;
        };
        self.tracker.stop(level.stopped, queue.priority, now);
        let looks = queue.policy.look();
        let context = if due {
            queue.look(level, active, &every, now)
        } else if let Some(context) = queue.glance(level.depth) {
            context
        } else {
            return;
        };
        let decision = match self.tracker.settings.action_of_queue(index) {
            Action::Off => Decision::none(Amount::None, Reason::Off),
            Action::Observe | Action::Send => queue.policy.decide(&context, now),
        };
        let busy = match looks {
            Some(_) if level.depth > 0 => Some(self.reads_per_tick.min(READS_PER_LOOK)),
            _ => (context.reading.zone > Zone::Idle).then_some(self.reads_per_tick),
        };
        // The limit on a quiet queue's reads is per tick, however often a policy looks.
        if due && (context.fresh || busy.is_some()) {
            self.tracker.read_queue(index, busy, now, deadline);
        }
        let round = if decision.amount == Amount::None {
            Round::default()
        } else {
            self.round(index, &decision, &context, (now, deadline), out)
        };
        self.finish(index, &context, &decision, &round, now);
    }

    fn finish(
        &mut self,
        index: usize,
        context: &QueueContext,
        decision: &Decision,
        round: &Round,
        now: Nanos,
    ) {
        let (Some(queue), Some(status)) =
            (self.queues.get_mut(index), self.status.queues().get(index))
        else {
            return;
        };
        queue.policy.sent(context, decision, round, now);
        if context.fresh {
            status.observed(&context.reading);
        }
        status.noted(decision);
        status.answered(queue.policy.fell_back());
    }
}

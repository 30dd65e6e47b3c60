//! One call of the control core: selects the queues that are due, runs their policies, and plans the next call.

use npcc_pipeline::units::{Nanos, PortId, Priority};

use super::ControlCore;
use super::queue::{Intervals, READS_PER_EVALUATION, WatchedQueue};
use super::queue_state::QueueState;
use super::round::REFUSALS;
use crate::action::Action;
use crate::admission::{CnpRequest, CnpSink, Suppressed};
use crate::dcqcn::NIC_MIN_CNP_INTERVAL;
use crate::deadline::Deadline;
use crate::detector::Zone;
use crate::policy::{Amount, Decision, QueueContext, Reason, RoundOutcome};

/// One call of the control core.
struct Call<'a> {
    number: u64,
    now: Nanos,
    deadline: Deadline<'a>,
    /// True if every queue that is due is evaluated, and not only those whose policy is urgent.
    is_full_pass: bool,
}

impl ControlCore {
    /// Makes every queue due at the next call, however early that comes. To be called when a worker saw a queue rise to `hard`.
    pub fn wake_early(&mut self) {
        self.last_full_pass = Nanos::ZERO;
        for queue in &mut self.queues {
            (queue.next_tick, queue.next_evaluation) = (Nanos::ZERO, Nanos::ZERO);
        }
    }

    /// Returns true if this call is a full pass, and records that it is.
    fn begin_full_pass(&mut self, now: Nanos) -> bool {
        let since = now.since(self.last_full_pass).0;
        // A call that comes an eighth of a period early is a full pass too.
        let full = self.next_in.is_none() || since >= self.period.0 - self.period.0 / 8;
        if full {
            let late = since > self.period.0 + self.tick.0 / 2;
            // The first call, and one after `wake_early`, have no previous pass and are never late.
            let late = late && self.last_full_pass > Nanos::ZERO;
            self.tracker.adapt_reads(late);
            self.last_full_pass = now;
        }
        full
    }

    /// Plans the time of the next call.
    fn plan_next(&mut self, now: Nanos) {
        let urgent = self.strikes_owed || self.queues.iter().any(|queue| queue.policy.urgent());
        let passed = now.since(self.last_full_pass);
        let left = Nanos(self.period.0.saturating_sub(passed.0));
        let next = if urgent {
            left.min(NIC_MIN_CNP_INTERVAL)
        } else {
            left
        };
        self.next_in = (next > Nanos::ZERO && next < self.period).then_some(next);
    }

    /// Runs one call. `state` returns the state of a queue, its depth at least; `out` sends a CNP or returns why not.
    pub fn run_call<S: Into<QueueState>>(
        &mut self,
        now: Nanos,
        state: impl Fn(PortId, Priority) -> S,
        out: &mut impl FnMut(CnpRequest) -> Result<(), Suppressed>,
    ) {
        self.run_call_within(now, &|| now, state, out);
    }

    /// Runs [`ControlCore::run_call`] with a `clock` that is read now and then to see if the call takes too long; `out` also says which
    /// port's cap a CNP is charged to.
    ///
    /// Once the deadline is over, the remaining work waits for the next call: records in their rings from half of the time on, queues in turn. Queues
    /// at `hard` come first and have twice the time, as strikes have, which come last. One other queue has its turn in any case.
    pub fn run_call_within<S: Into<QueueState>>(
        &mut self,
        now: Nanos,
        clock: &dyn Fn() -> Nanos,
        state: impl Fn(PortId, Priority) -> S,
        out: &mut impl CnpSink,
    ) {
        self.status.ticks.add(1);
        self.refusals = REFUSALS;
        let deadline = Deadline::new(clock, now, self.deadline);
        self.tracker.drain(now, &deadline.half());
        let call = Call {
            number: self.status.ticks.get(),
            now,
            deadline,
            is_full_pass: self.begin_full_pass(now),
        };
        self.evaluate_hard_queues(&call, &state, out);
        self.evaluate_other_queues(&call, &state, out);
        self.pay_strikes(now, &deadline.twice(), out);
        self.run_trial(now, out);
        self.plan_next(now);
        self.tracker.tidy(now);
    }

    /// Evaluates the queues at `hard`.
    fn evaluate_hard_queues<S: Into<QueueState>>(
        &mut self,
        call: &Call<'_>,
        state: &impl Fn(PortId, Priority) -> S,
        out: &mut impl CnpSink,
    ) {
        for index in self.in_turn() {
            if let Some((queue, state)) = self.pending(index, call, state)
                && state.depth >= queue.detector.config().hard
            {
                self.evaluate(index, &state, call, &call.deadline.twice(), out);
            }
        }
    }

    /// Evaluates the other queues until the deadline; the next of them comes first in the next call.
    fn evaluate_other_queues<S: Into<QueueState>>(
        &mut self,
        call: &Call<'_>,
        state: &impl Fn(PortId, Priority) -> S,
        out: &mut impl CnpSink,
    ) {
        let mut evaluated = 0;
        for index in self.in_turn() {
            let Some((_, state)) = self.pending(index, call, state) else {
                continue;
            };
            // At least one of these queues has its turn in every call.
            if evaluated > 0 && call.deadline.is_over() {
                self.status.queues_deferred.add(1);
                self.first_queue = index;
                return;
            }
            evaluated += 1;
            self.evaluate(index, &state, call, &call.deadline, out);
        }
    }

    /// Indices of all queues, from the one whose turn it is.
    fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, queues) = (self.first_queue, self.queues.len());
        (0..queues).map(move |next| (first + next) % queues)
    }

    /// A queue that this call evaluates and has not yet, and its state: the queue is due, or its policy is urgent.
    fn pending<S: Into<QueueState>>(
        &self,
        index: usize,
        call: &Call<'_>,
        state: &impl Fn(PortId, Priority) -> S,
    ) -> Option<(&WatchedQueue, QueueState)> {
        let queue = self.queues.get(index)?;
        let is_wanted = call.makes_due(queue) || queue.policy.urgent();
        (is_wanted && queue.evaluated_in != call.number)
            .then(|| (queue, state(queue.port, queue.priority).into()))
    }

    /// Evaluates a queue in this state, and carries out its policy's decision.
    fn evaluate(
        &mut self,
        index: usize,
        state: &QueueState,
        call: &Call<'_>,
        deadline: &Deadline<'_>,
        out: &mut impl CnpSink,
    ) {
        let now = call.now;
        let every = Intervals {
            tick: self.tick,
            period: self.period,
            stale: self.tracker.measure.stale,
        };
        let active = self.tracker.active(index);
        let Some(queue) = self.queues.get_mut(index) else {
            return;
        };
        queue.evaluated_in = call.number;
        self.tracker
            .record_xoff(state.xoff_asserted, queue.priority, now);
        let interval = queue.policy.interval();
        let due = call.makes_due(queue);
        let context = if due {
            queue.evaluate(state, active, &every, now)
        } else if let Some(context) = queue.update_depth(state.depth) {
            context
        } else {
            return;
        };
        let decision = match self.tracker.settings.action_of_queue(index) {
            Action::Off => Decision::none(Amount::None, Reason::Off),
            Action::Observe | Action::Send => queue.policy.decide(&context, now),
        };
        let busy = match interval {
            Some(_) if state.depth > 0 => Some(self.reads_per_tick.min(READS_PER_EVALUATION)),
            _ => (context.reading.zone > Zone::Idle).then_some(self.reads_per_tick),
        };
        // The limit on a quiet queue's reads is per tick, however often its policy is evaluated.
        if due && (context.fresh || busy.is_some()) {
            self.tracker.read_queue(index, busy, now, deadline);
        }
        let round = if decision.amount == Amount::None {
            RoundOutcome::default()
        } else {
            self.signal_round(index, &decision, &context, (now, deadline), out)
        };
        self.record_evaluation(index, &context, &decision, &round, now);
    }

    fn record_evaluation(
        &mut self,
        index: usize,
        context: &QueueContext,
        decision: &Decision,
        round: &RoundOutcome,
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
        status.record_fallback(queue.policy.fell_back());
    }
}

impl Call<'_> {
    /// Returns true if the queue is due: this is a full pass, and the time of its next evaluation has come.
    fn makes_due(&self, queue: &WatchedQueue) -> bool {
        self.is_full_pass && self.now >= queue.next_evaluation
    }
}

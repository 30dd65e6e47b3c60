//! The guard: a strike of the ECN curve that a worker owes to a sender is paid with a near CNP.
//!
//! ```text
//!   worker:        RED strikes -> CE on the frame, or an owed strike in the ring
//!   control core:  owed -> paid (a CNP) | merged (the sender had a CNP less than an interval before) | returned (CE after all)
//! ```
//! The sender gets the CNPs that a receiver at the switch would send it: at most one in the interval of the receiver's network card, from here or
//! from the receiver. No policy has a part in it, but not every sender can be paid: its queue pair must be known, its port trusted, the flow not
//! gated, enough bytes sent since its last CNP, and its host admitted and not too unresponsive to be owed any. While the backlog of a pause waits,
//! the interval is `min_cnp_interval` at least: the queue is deep because the peer stopped it, and cuts at the pace of a congested queue leave the
//! link idle when it goes on.
//!
//! Law, per watched queue: `diverted = paid + merged + returned + forgotten + owed`, where `owed` waits in the ring.

use std::sync::Arc;

use npcc_pipeline::units::{BitRate, Nanos};

use super::ControlCore;
use super::queue::WatchedQueue;
use super::signal::Cause;
use crate::action::Action;
use crate::admission::{CnpSink, Suppressed};
use crate::deadline::Deadline;
use crate::detector::Zone;
use crate::policy::{Decision, QueueContext, Reason, RoundOutcome};
use npcc_roce::fixed_map::TOGETHER;

impl ControlCore {
    /// Pays the strikes that workers owe, oldest first in each worker's ring, until the deadline.
    pub(super) fn pay_strikes(
        &mut self,
        now: Nanos,
        deadline: &Deadline<'_>,
        out: &mut impl CnpSink,
    ) {
        let all = Arc::clone(&self.status);
        let mut popped: usize = 0;
        while let Some(owed) = self.tracker.pop_strike() {
            popped += 1;
            let Some(status) = all.queues().get(owed.queue) else {
                continue;
            };
            let Some(flow) = owed.flow else {
                status.marks_forgotten.add(1);
                continue;
            };
            match self.pay_strike(flow, owed.queue, now, out) {
                Ok(()) => {
                    status.marks_paid.add(1);
                    status.cnps.add(1);
                    status.reason(Reason::Mark).add(1);
                }
                Err(Suppressed::Spacing | Suppressed::AlreadyNotified) => {
                    status.marks_merged.add(1);
                }
                Err(reason) => {
                    status.marks_returned.add(1);
                    status.suppress(reason);
                    self.tracker.return_strike(flow, now);
                }
            }
            if popped.is_multiple_of(TOGETHER) && deadline.is_over() {
                break;
            }
        }
        self.strikes_owed = popped > 0;
    }

    /// Pays one strike on a flow of this queue.
    fn pay_strike(
        &mut self,
        flow: u32,
        queue: usize,
        now: Nanos,
        out: &mut impl CnpSink,
    ) -> Result<(), Suppressed> {
        let key = self.tracker.flows.flow_key(flow).ok_or(Suppressed::Cold)?;
        if self.tracker.action(flow) < Action::Send {
            return Err(Suppressed::HostDenied);
        }
        let settings = &self.tracker.settings;
        let mut spacing = settings.cnp_interval_of(&key);
        let queue_state = self.queues.get(queue);
        if queue_state.is_some_and(WatchedQueue::holds_backlog) {
            spacing = spacing.max(settings.min_cnp_interval);
        }
        let context = queue_state.and_then(|queue| queue.context);
        let context = context.unwrap_or_else(QueueContext::unseen);
        if context.reading.zone > Zone::Idle {
            // The strikes until the effect of a CNP is due are of the excess that it answered.
            spacing = spacing.max(self.tracker.feedback(flow));
            let holds = queue_state.map_or(Nanos::ZERO, |queue| queue.policy.holds());
            if context.depth < context.drain.bytes_in(holds) {
                return Err(Suppressed::Spacing);
            }
        }
        let cause = Cause {
            decision: Decision::of_one(Reason::Mark, spacing),
            context: &context,
            now,
        };
        self.may_signal(flow, false, now, spacing)?;
        if self.tracker.is_left_to_ecn(flow) {
            return Err(Suppressed::Gated);
        }
        if !self.tracker.has_earned(flow) {
            return Err(Suppressed::Unearned);
        }
        self.signal_once(flow, queue, &cause, out)
    }

    /// Sends one CNP that no round of the policy of its queue sends, and gives the policy the expected cut.
    pub(super) fn signal_once(
        &mut self,
        flow: u32,
        queue: usize,
        cause: &Cause<'_>,
        out: &mut impl CnpSink,
    ) -> Result<(), Suppressed> {
        let now = cause.now;
        let known = self.tracker.flows.get(flow).ok_or(Suppressed::Cold)?;
        let rate = known.dcqcn.predicted();
        self.signal_sender(flow, false, cause, out)?;
        let cut = self.cut(flow, rate, now);
        let feedback = self.record_cnp_sent(flow, rate, now);
        // A cut of a moved host's flow takes nothing off the watched queue.
        if !self.tracker.is_moved(flow)
            && let Some(queue) = self.queues.get_mut(queue)
        {
            let round = RoundOutcome {
                sent: 1,
                cut,
                fastest: BitRate(rate),
                feedback,
            };
            queue.policy.guard_sent(&round, now);
        }
        Ok(())
    }
}

//! Runs the trials of hosts' responsiveness ([`crate::responsiveness`]), one at a time.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use super::signal::Cause;
use crate::action::Action;
use crate::admission::{CnpSink, Suppressed};
use crate::host_rules::Unresponsive;
use crate::policy::{Decision, QueueContext, Reason};
use crate::responsiveness::trial::{LONGEST_SPACING, SPACING, Step, Trial};
use crate::responsiveness::{Outcome, Unmeasured};
use npcc_roce::key::QueueFlow;

impl ControlCore {
    /// Puts every host that is signalled to a trial at once, and again and again, for simulations of trials.
    pub const fn try_hosts_at_once(&mut self) {
        self.tracker.verdicts.try_at_once();
    }

    /// Takes a step of the trial that runs, or begins the one that is due. To be called at every call.
    pub(super) fn run_trial(&mut self, now: Nanos, out: &mut impl CnpSink) {
        let view = &self.status.verdicts;
        self.tracker.verdicts.move_back(&self.moved, now, view);
        let Some((key, mut trial)) = self.trial.take() else {
            self.trial = self.due_trial(now);
            return;
        };
        let index = trial.flow;
        let step = if self.tracker.flows.key(index) == Some(key) {
            let flow = self.tracker.flows.get(index);
            let paused = flow.map_or(Nanos::ZERO, |flow| {
                self.tracker.paused(flow.ingress, key.priority)
            });
            let (bytes, feedback) = (self.tracker.bytes_now(index), self.tracker.feedback(index));
            trial.step(now, bytes, feedback, paused)
        } else {
            Step::End(Outcome::Unmeasured(Unmeasured::TooSlow))
        };
        let ended = match step {
            Step::Wait => None,
            Step::End(outcome) => Some(outcome),
            Step::Signal => match self.signal_in_trial(&key, index, now, out) {
                Ok(()) => {
                    trial.cnps += 1;
                    None
                }
                Err(Suppressed::Spacing | Suppressed::AlreadyNotified) => None,
                Err(_) => Some(Outcome::Unmeasured(Unmeasured::Refused)),
            },
        };
        match ended {
            None => self.trial = Some((key, trial)),
            Some(outcome) => {
                let flow = (index, &key.key);
                self.tracker.end_trial(flow, outcome, trial.cnps, now);
                if self.tracker.settings.hosts.unresponsive != Unresponsive::Mark {
                    let verdicts = &mut self.tracker.verdicts;
                    verdicts.move_certain(&key.key, &self.moved, now, &self.status.verdicts);
                }
            }
        }
    }

    /// Begins the trial that is due, if the flow may be signalled, by its own queue pair and as often as a trial does.
    fn due_trial(&mut self, now: Nanos) -> Option<(QueueFlow, Trial)> {
        let index = self.tracker.due_trial.take()?;
        let key = self.tracker.flows.key(index)?;
        let settings = &self.tracker.settings;
        let evidence = self.tracker.flows.get(index)?.evidence;
        let is_possible =
            settings.believes(evidence) && settings.cnp_interval_of(&key.key) <= LONGEST_SPACING;
        if !is_possible {
            let outcome = Outcome::Unmeasured(Unmeasured::Refused);
            self.tracker.end_trial((index, &key.key), outcome, 0, now);
            return None;
        }
        let may_be_sent = self.tracker.action(index) == Action::Send;
        may_be_sent.then(|| (key, Trial::new(index, now, self.tracker.bytes_now(index))))
    }

    /// Sends the flow a CNP of its trial, unless it had one within [`SPACING`].
    fn signal_in_trial(
        &mut self,
        key: &QueueFlow,
        index: u32,
        now: Nanos,
        out: &mut impl CnpSink,
    ) -> Result<(), Suppressed> {
        let queue = self.tracker.queue_index(key).ok_or(Suppressed::Cold)?;
        let context = self.queues.get(queue).and_then(|queue| queue.context);
        let cause = Cause {
            decision: Decision::of_one(
                Reason::Trial,
                SPACING.max(self.tracker.settings.cnp_interval_of(&key.key)),
            ),
            context: &context.unwrap_or_else(QueueContext::unseen),
            now,
        };
        self.may_signal(index, false, now, cause.decision.spacing)?;
        self.signal_once(index, queue, &cause, out)?;
        if let Some(status) = self.status.queues().get(queue) {
            status.cnps.add(1);
            status.reason(Reason::Trial).add(1);
        }
        Ok(())
    }
}

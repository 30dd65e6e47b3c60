//! Refusals of contributors, and the log of CNPs and refusals.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use super::round::{Progress, REFUSALS, RoundRequest, is_signalled};
use super::signal::Cause;
use crate::admission::Suppressed;
use crate::log::{Entry, Outcome};
use crate::table::RECENT;
use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;

/// Maximum number of ineligible contributors per round that are checked for a refusal worth logging.
const LOOKED_AT: usize = 64;

impl ControlCore {
    /// Counts a refusal that took a closer look. The flow backs off if this call has had many.
    pub(super) fn refuse(&mut self, flow: u32, reason: Suppressed, now: Nanos) {
        self.refusals = self.refusals.saturating_sub(1);
        if self.refusals < REFUSALS / 4 * 3 && !is_signalled(reason) {
            self.back_off(flow, reason, now);
        }
    }

    /// Makes a flow back off: it is not tried for eight ticks. At `REFUSALS / 2` refusals a tick, that is the time to try `RECENT` contributors, the
    /// most that a queue can have.
    pub(super) fn back_off(&mut self, flow: u32, reason: Suppressed, now: Nanos) {
        if let Some(flow) = self.tracker.flows.get_mut(flow) {
            let rounds = (RECENT / (REFUSALS / 2)) as u64;
            flow.backoff_until = now + Nanos(self.tick.0.saturating_mul(rounds));
            flow.backoff_reason = reason;
        }
    }

    /// Logs why contributors are ineligible, a few in each round, in turn.
    pub(super) fn log_ineligible(
        &mut self,
        others: &[(u64, u32)],
        request: &RoundRequest<'_>,
        progress: &mut Progress,
    ) {
        let turn = usize::try_from(self.status.ticks.get()).unwrap_or(0);
        let first = turn.wrapping_mul(LOOKED_AT) % others.len().max(1);
        let (before, after) = others.split_at(first);
        for (_, index) in after.iter().chain(before).take(LOOKED_AT) {
            if let Some(reason) = self.refused(*index, request.now) {
                self.log_suppressed(*index, reason, request, progress);
            }
        }
    }

    /// Logs a refusal, if it is new and the round may still log one.
    pub(super) fn log_suppressed(
        &mut self,
        index: u32,
        reason: Suppressed,
        request: &RoundRequest<'_>,
        progress: &mut Progress,
    ) {
        if progress.logged == 0 || !self.tracker.is_news(index, reason, request.now) {
            return;
        }
        progress.logged -= 1;
        if let Some(flow) = self.tracker.flows.get(index) {
            let known = (flow.sender, flow.evidence);
            self.log(index, known, request, Outcome::Refused(reason));
        }
    }

    /// Logs the outcome for a queue pair: a CNP and its cause, or a refusal and its reason.
    pub(super) fn log(
        &self,
        index: u32,
        (sender_qpn, evidence): (Qpn, Evidence),
        cause: &Cause<'_>,
        outcome: Outcome,
    ) {
        let (Some(key), Some(flow)) =
            (self.tracker.flows.key(index), self.tracker.flows.get(index))
        else {
            return;
        };
        let context = cause.context;
        let (log, cnps) = match outcome {
            Outcome::Sent => (&self.status.log, flow.cnps + 1),
            Outcome::WouldSend => (&self.status.log, flow.dry_run.cnps + 1),
            Outcome::Refused(_) => (&self.status.refusals, flow.cnps),
        };
        log.record(&Entry {
            time: cause.now,
            flow: key,
            sender_qpn,
            evidence,
            reason: cause.decision.reason,
            depth: context.depth,
            zone: context.reading.zone,
            trend: context.reading.trend,
            cnps,
            outcome,
        });
    }
}

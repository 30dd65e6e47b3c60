//! One round of a decision: selects the contributors to signal, and records the expected cut and the time until it shows.
//!
//! Law: no flow is signalled more often than the decision's spacing says, and no round sends more than `cnps_per_tick` CNPs. A
//! flow that cannot be signalled takes no other's place among these.

use std::sync::Arc;

use npcc_pipeline::units::{BitRate, Nanos};

use super::ControlCore;
use super::eligible::Eligible;
use super::heaviest::Heaviest;
use super::signal::Cause;
use crate::action::Action;
use crate::admission::{CnpCaps, CnpSink, Suppressed};
use crate::deadline::Deadline;
use crate::policy::{Choice, Decision, QueueContext, RoundOutcome};
use crate::status::QueueStatus;
use npcc_roce::fixed_map::TOGETHER;

/// Maximum number of contributors that a call refuses after a closer look, over all queues. Those that need no closer look are not counted.
pub(super) const REFUSALS: usize = 1_024;
/// Maximum number of refusals logged in a round.
const LOGGED: usize = 16;

/// Context of one round: its cause, its limits, and the fair rate.
#[derive(derive_more::Deref)]
pub(super) struct RoundRequest<'a> {
    #[deref]
    pub(super) cause: Cause<'a>,
    /// True for a dry run: nothing is sent.
    dry: bool,
    deadline: &'a Deadline<'a>,
    /// Bytes of all contributors.
    pub(super) total: u64,
    /// Max-min fair rate in bit/s: contributors that send no more than this are spared.
    fair_rate: BitRate,
}

/// Progress of a round.
#[derive(Debug)]
pub(super) struct Progress {
    round: RoundOutcome,
    /// Number of contributors that the decision may still reach.
    left: usize,
    /// Number of contributors tried.
    tried: usize,
    /// Number of refusals that may still be logged.
    pub(super) logged: usize,
}

/// Verdict on one contributor of a round.
enum Verdict {
    /// It is spared: the decision does not select it.
    Spared,
    /// It was signalled within the decision's spacing.
    TooSoon,
    /// A dry run signalled it, in a round that sends CNPs to others.
    Observed,
    /// It was signalled (or would have been, in a dry run of the whole round). The cut shows after this time.
    Signalled { cut: BitRate, effect_after: Nanos },
    /// It was refused for this reason.
    Refused(Suppressed),
}

impl ControlCore {
    /// Signals the contributors that a decision reaches.
    pub(super) fn signal_round(
        &mut self,
        index: usize,
        decision: &Decision,
        context: &QueueContext,
        (now, deadline): (Nanos, &Deadline<'_>),
        out: &mut impl CnpSink,
    ) -> RoundOutcome {
        let status = Arc::clone(&self.status);
        let Some(status) = status.queues().get(index) else {
            return RoundOutcome::default();
        };
        let mut contributors = std::mem::take(&mut self.contributors);
        self.tracker.contributors(index, now, &mut contributors);
        status.contributors.set(contributors.len() as u64);
        let total = contributors.iter().map(|(bytes, _)| *bytes).sum();
        let reach = CnpCaps::flows_reached(decision, contributors.len());
        let Eligible {
            maybe_paired: known,
            ineligible,
        } = self.eligible(index, &mut contributors, status, now);
        let reach = reach.min(known.len());
        let mut request = RoundRequest {
            cause: Cause {
                decision: self.spread(decision, reach),
                context,
                now,
            },
            deadline,
            dry: self.tracker.settings.action_of_queue(index) < Action::Send,
            total,
            fair_rate: BitRate(0),
        };
        let mut progress = Progress {
            round: RoundOutcome::default(),
            left: reach,
            tried: 0,
            logged: LOGGED,
        };
        self.log_ineligible(ineligible, &request, &mut progress);
        let mut known = Heaviest::of(known);
        request.fair_rate = self.fair_rate(&mut known, &request);
        self.signal_contributors(&mut known, &request, &mut progress, status, out);
        self.contributors = contributors;
        progress.round
    }

    /// Signals these contributors, heaviest first, as far as the decision and the budgets of round and call allow.
    fn signal_contributors(
        &mut self,
        contributors: &mut Heaviest<'_>,
        request: &RoundRequest<'_>,
        progress: &mut Progress,
        status: &QueueStatus,
        out: &mut impl CnpSink,
    ) {
        let mut places = 0..;
        while progress.left > 0 && !is_reached(request.decision.choice, progress.round.cut) {
            let one = places.next().and_then(|place| contributors.at(place));
            let Some((bytes, flow)) = one else {
                return;
            };
            if self.is_spent(request, progress) {
                progress.stop(Suppressed::CapTick, status);
                return;
            }
            progress.tried += 1;
            let dry = self.tracker.action(flow) < Action::Send;
            match self.try_contributor((bytes, flow), dry, request, progress, out) {
                Verdict::Spared => progress.left -= 1,
                Verdict::TooSoon => {
                    progress.left -= usize::from(!dry || request.dry);
                    status.suppress(Suppressed::Spacing);
                }
                // In a round that sends CNPs, one for an observed host is not sent: it takes no place in the round and adds no expected cut.
                Verdict::Observed => {
                    status.would_send.add(1);
                    self.refusals = self.refusals.saturating_sub(1);
                }
                Verdict::Signalled { cut, effect_after } => {
                    let counter = if dry {
                        &status.would_send
                    } else {
                        &status.cnps
                    };
                    counter.add(1);
                    progress.record_signalled(cut, effect_after);
                }
                Verdict::Refused(Suppressed::CapSecond) => {
                    progress.stop(Suppressed::CapSecond, status);
                }
                Verdict::Refused(reason) => {
                    status.suppress(reason);
                    progress.left -= usize::from(is_signalled(reason));
                    self.refuse(flow, reason, request.now);
                    self.log_suppressed(flow, reason, request, progress);
                }
            }
        }
    }

    /// Returns true if a budget is used up: the round's CNPs, the call's refusals, or its time (checked after every 32 contributors).
    fn is_spent(&self, request: &RoundRequest<'_>, progress: &Progress) -> bool {
        let reads_clock = progress.tried > 0 && progress.tried.is_multiple_of(TOGETHER);
        progress.round.sent as usize >= self.cnps_per_tick
            || self.refusals == 0
            || reads_clock && request.deadline.is_over()
    }

    /// Signals one contributor, if the decision selects it and nothing speaks against it.
    fn try_contributor(
        &mut self,
        (bytes, flow): (u64, u32),
        dry: bool,
        request: &RoundRequest<'_>,
        progress: &mut Progress,
        out: &mut impl CnpSink,
    ) -> Verdict {
        let rate = self.rate(flow, bytes, request);
        progress.round.fastest.0 = progress.round.fastest.0.max(rate);
        let cut = self.cut(flow, rate, request.now);
        if !is_chosen(request, rate, cut, progress.round.cut) {
            return Verdict::Spared;
        }
        let spacing = request.decision.spacing;
        if self.may_signal(flow, dry, request.now, spacing) == Err(Suppressed::Spacing) {
            return Verdict::TooSoon;
        }
        match self.signal_sender(flow, dry, request, out) {
            Ok(()) if dry && !request.dry => Verdict::Observed,
            Ok(()) => {
                let effect_after = if dry {
                    self.tracker.feedback(flow)
                } else {
                    self.record_cnp_sent(flow, rate, request.now)
                };
                Verdict::Signalled { cut, effect_after }
            }
            Err(reason) => Verdict::Refused(reason),
        }
    }

    /// Lengthens the spacing of a decision that reaches more flows than one round may signal, to as many ticks as it takes rounds: every flow is
    /// signalled once before any is twice.
    fn spread(&self, decision: &Decision, reach: usize) -> Decision {
        let ticks = u64::try_from(reach.div_ceil(self.cnps_per_tick)).unwrap_or(u64::MAX);
        let spread = if ticks > 1 {
            Nanos(self.tick.0.saturating_mul(ticks))
        } else {
            Nanos::ZERO
        };
        Decision {
            spacing: decision.spacing.max(spread),
            ..*decision
        }
    }
}

impl Progress {
    /// Ends the round: no contributor that is left gets a CNP, for this reason.
    fn stop(&mut self, reason: Suppressed, status: &QueueStatus) {
        status.suppressed(reason).add(self.left as u64);
        self.left = 0;
    }

    fn record_signalled(&mut self, cut: BitRate, effect_after: Nanos) {
        self.left -= 1;
        self.round.sent += 1;
        self.round.cut.0 = self.round.cut.0.saturating_add(cut.0);
        self.round.feedback = self.round.feedback.max(effect_after);
    }
}

/// Returns true if a contributor refused for this reason was signalled already, by us or by its receiver: it takes a place among those a
/// decision reaches.
pub(super) const fn is_signalled(reason: Suppressed) -> bool {
    matches!(reason, Suppressed::Spacing | Suppressed::AlreadyNotified)
}

/// Returns true if the flows signalled so far give up the sum that the decision wants.
fn is_reached(choice: Choice, counted: BitRate) -> bool {
    matches!(choice, Choice::Cut(sum) if counted >= sum)
}

/// Returns true if the decision selects a contributor of this rate, which would give up `cut`, when others give up `before`. Where a sum is to be
/// reached, no contributor is signalled that would give up more than twice the remainder, so that the sum is approached from either side.
const fn is_chosen(request: &RoundRequest<'_>, rate: u64, cut: BitRate, before: BitRate) -> bool {
    match request.cause.decision.choice {
        Choice::All => true,
        Choice::Cut(sum) => {
            let left = sum.0.saturating_sub(before.0);
            rate > request.fair_rate.0 && cut.0 > 0 && cut.0 / 2 <= left && left > 0
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "round_tests.rs"]
mod tests;

//! One round of a decision: selects the contributors to signal, and records the expected cut and the time until it shows.
//!
//! Law: no flow is signalled more often than the decision's spacing says, and no round sends more than `orders_per_tick` CNPs. A
//! flow that cannot be signalled takes no other's place: only CNPs that leave are counted against that.

use std::sync::Arc;

use npcc_pipeline::units::{BitRate, Nanos};

use super::ControlCore;
use super::eligible::Eligible;
use super::heaviest::Heaviest;
use super::order::Cause;
use crate::action::Action;
use crate::dcqcn::cut_of;
use crate::deadline::Deadline;
use crate::fixed_map::TOGETHER;
use crate::log::Outcome;
use crate::plan::{Outlet, Planner, Suppressed};
use crate::policy::{Choice, Decision, QueueContext, Round};
use crate::status::QueueStatus;
use crate::table::{Flow, RECENT};
use crate::window::share;

/// Number of heaviest contributors among which those above the water level are looked for. With more, the level comes out lower than it is, and
/// the sum of the cuts still ends the round.
const LEVELLED: usize = 256;
/// Maximum number of contributors that a call refuses after a closer look, over all queues. Those that need no closer look are not counted.
pub(super) const REFUSALS: usize = 1_024;
/// Maximum number of refusals logged in a round.
const LOGGED: usize = 16;
/// Maximum number of ineligible contributors per round that are checked for a refusal worth logging.
const LOOKED_AT: usize = 64;
/// Longest spacing of CNPs to one queue pair while all queue pairs of a sender are signalled, as it is not known which of them sends the flow.
const AMONG: Nanos = Nanos::from_millis(10);
/// Share of a queue's bytes (1/4) that hosts below even odds of responding may send: if they send more, no flow of the queue is signalled but by the
/// CNPs of marks. Otherwise the hosts that respond would be cut further, and leave the link to those that do not.
const LEAVES_TO_MARKS: u64 = 4;
/// Sending time below which a flow has no rate: sooner, the order of packets is all there is.
const BEGUN: Nanos = Nanos::from_micros(10);
/// Time since its last CNP after which a flow has no effect of a CNP pending.
const SETTLED: Nanos = Nanos::from_millis(1);
/// Context of one round: its cause, its limits, and the water level.
#[derive(derive_more::Deref)]
pub(super) struct RoundRequest<'a> {
    #[deref]
    cause: Cause<'a>,
    /// True for a dry run: nothing is sent.
    dry: bool,
    deadline: &'a Deadline<'a>,
    /// Bytes of all contributors.
    total: u64,
    /// Water level in bit/s: contributors that send no more than this are spared.
    level: BitRate,
}

/// Progress of a round.
#[derive(Debug)]
struct Done {
    round: Round,
    /// Number of contributors that the decision may still reach.
    left: usize,
    /// Number of CNPs that may still be given to workers.
    orders: usize,
    /// Number of CNPs given to workers.
    sent: usize,
    /// Number of CNPs that would have left, where nothing is sent.
    would: usize,
    /// Number of refusals that may still be logged.
    logged: usize,
    /// Number of contributors looked at.
    looked: usize,
}

impl ControlCore {
    /// Signals the contributors that a decision reaches.
    pub(super) fn round(
        &mut self,
        index: usize,
        decision: &Decision,
        context: &QueueContext,
        (now, deadline): (Nanos, &Deadline<'_>),
        out: &mut impl Outlet,
    ) -> Round {
        let status = Arc::clone(&self.status);
        let Some(status) = status.queues().get(index) else {
            return Round::default();
        };
        let mut contributors = std::mem::take(&mut self.contributors);
        self.tracker.contributors(index, now, &mut contributors);
        let all = contributors.len();
        status.contributors.set(all as u64);
        let total = contributors.iter().map(|(bytes, _)| *bytes).sum();
        let Eligible {
            known,
            all: able,
            doubted,
        } = self.eligible(&mut contributors, status, now);
        let mut reach = Planner::reach(decision, all).min(able);
        if doubted > total / LEAVES_TO_MARKS {
            status
                .suppressed(Suppressed::Unresponsive)
                .add(reach as u64);
            reach = 0;
        }
        let mut request = RoundRequest {
            cause: Cause {
                decision: self.spread(decision, reach),
                context,
                now,
            },
            deadline,
            dry: self.tracker.settings.action_of_queue(index) < Action::Send,
            total,
            level: BitRate(0),
        };
        let mut done = Done {
            left: reach,
            orders: self.orders_per_tick,
            sent: 0,
            would: 0,
            logged: LOGGED,
            looked: 0,
            round: Round::default(),
        };
        self.log_untellable(
            contributors.get(able..).unwrap_or_default(),
            &request,
            &mut done,
        );
        self.all_signalled.clear();
        let (known, others) = contributors.split_at_mut(known);
        let others = others.get_mut(..able - known.len()).unwrap_or_default();
        let mut known = Heaviest::of(known);
        request.level = self.level(&mut known, &request);
        self.tell(&mut known, &request, &mut done, status, out);
        self.tell(&mut Heaviest::of(others), &request, &mut done, status, out);
        self.pace_among(done.orders == 0);
        status.cnps.add(done.sent as u64);
        status.would_send.add(done.would as u64);
        self.contributors = contributors;
        done.round
    }

    /// Signals these contributors, heaviest first, as far as the decision and the budgets of the tick allow.
    fn tell(
        &mut self,
        contributors: &mut Heaviest<'_>,
        request: &RoundRequest<'_>,
        done: &mut Done,
        status: &QueueStatus,
        out: &mut impl Outlet,
    ) {
        let mut places = 0..;
        while done.left > 0 && !is_reached(request.decision.choice, done.round.cut) {
            let one = places.next().and_then(|place| contributors.at(place));
            let Some((bytes, flow)) = one else {
                return;
            };
            let pause = done.looked.is_multiple_of(TOGETHER);
            done.looked += 1;
            let spent = done.orders == 0 || self.refusals == 0;
            if spent || pause && done.looked > 1 && request.deadline.is_over() {
                status.suppressed(Suppressed::CapTick).add(done.left as u64);
                done.left = 0;
                return;
            }
            let rate = self.rate(flow, bytes, request);
            done.round.fastest.0 = done.round.fastest.0.max(rate);
            let cut = self.cut(flow, rate, request.now);
            if !chosen(request, rate, cut, done.round.cut) {
                done.left -= 1;
                continue;
            }
            let dry = self.tracker.action(flow) < Action::Send;
            if self.too_soon(flow, dry, request) {
                done.left -= usize::from(!dry || request.dry);
                status.suppress(Suppressed::Spacing);
                continue;
            }
            match self.order((bytes, flow), dry, request, done.orders, out) {
                // A CNP that one host would have got takes nothing off a queue whose other senders are signalled.
                Ok(signalled) if dry && !request.dry => {
                    done.would += signalled;
                    self.refusals = self.refusals.saturating_sub(1);
                }
                Ok(signalled) => {
                    done.left -= 1;
                    done.orders -= signalled.min(done.orders);
                    done.round.sent += u32::try_from(signalled).unwrap_or(u32::MAX);
                    done.round.cut.0 = done.round.cut.0.saturating_add(cut.0);
                    let shows = if dry {
                        done.would += signalled;
                        self.tracker.feedback(flow)
                    } else {
                        done.sent += signalled;
                        self.record_cnp_sent(flow, rate, request.now)
                    };
                    done.round.feedback = done.round.feedback.max(shows);
                }
                Err(Suppressed::CapSecond) => {
                    status
                        .suppressed(Suppressed::CapSecond)
                        .add(done.left as u64);
                    done.left = 0;
                }
                Err(reason) => {
                    status.suppress(reason);
                    done.left -= usize::from(is_signalled(reason));
                    self.refuse(flow, reason, request.now);
                    self.log_suppressed(flow, reason, request, done);
                }
            }
        }
    }

    /// Adapts `among`, the spacing of CNPs to unknown queue pairs: doubled if a round's CNPs were not enough for all queue pairs of all
    /// senders, so that the lightest are signalled before the heaviest are signalled again; else shortened by an eighth.
    fn pace_among(&mut self, too_many: bool) {
        let next = if too_many {
            self.among.0.saturating_mul(2)
        } else {
            self.among.0 / 8 * 7
        };
        self.among = Nanos(next)
            .min(AMONG)
            .max(self.tracker.settings.min_cnp_interval);
    }

    /// Counts a refusal that took a closer look. Parks the flow if this call has had many.
    fn refuse(&mut self, flow: u32, reason: Suppressed, now: Nanos) {
        self.refusals = self.refusals.saturating_sub(1);
        if self.refusals < REFUSALS / 4 * 3 && !is_signalled(reason) {
            self.park(flow, reason, now);
        }
    }

    /// Parks a flow: it is not tried for as many ticks as it takes to try the most contributors that a queue can have.
    pub(super) fn park(&mut self, flow: u32, reason: Suppressed, now: Nanos) {
        if let Some(flow) = self.tracker.flows.get_mut(flow) {
            let rounds = (RECENT / (REFUSALS / 2)) as u64;
            flow.backoff_until = now + Nanos(self.tick.0.saturating_mul(rounds));
            flow.parked_for = reason;
        }
    }

    /// Logs why contributors are ineligible, a few in each round, each one in its turn.
    fn log_untellable(
        &mut self,
        others: &[(u64, u32)],
        request: &RoundRequest<'_>,
        done: &mut Done,
    ) {
        let turn = usize::try_from(self.status.ticks.get()).unwrap_or(0);
        let first = turn.wrapping_mul(LOOKED_AT) % others.len().max(1);
        let (before, after) = others.split_at(first);
        for (_, index) in after.iter().chain(before).take(LOOKED_AT) {
            let standing = self.tracker.standing(*index);
            if let Some(reason) = self.refused(*index, standing, request.now) {
                self.log_suppressed(*index, reason, request, done);
            }
        }
    }

    /// Logs a refusal, if it is new and the round may still log one.
    fn log_suppressed(
        &mut self,
        index: u32,
        reason: Suppressed,
        request: &RoundRequest<'_>,
        done: &mut Done,
    ) {
        if done.logged == 0 || !self.tracker.is_news(index, reason, request.now) {
            return;
        }
        done.logged -= 1;
        if let Some(flow) = self.tracker.flows.get(index) {
            let known = (flow.sender, flow.evidence);
            self.log(index, known, request, Outcome::Refused(reason));
        }
    }

    /// The rate a flow will have once the CNPs on their way have taken effect, as measured. For a flow not signalled for long, the measured rate
    /// may still include the silence before a start, so the result is not below the flow's share of the arrival rate.
    fn rate(&self, index: u32, bytes: u64, request: &RoundRequest<'_>) -> u64 {
        let flow = self.tracker.flows.get(index);
        let now = request.now;
        let known = flow.map_or(0, |flow| flow.dcqcn.predicted());
        let settled = flow.is_none_or(|flow| flow.cnps == 0 || now.since(flow.last_cnp) > SETTLED);
        if !settled && known > 0 {
            return known;
        }
        let share = u128::from(request.context.arrival.0) * u128::from(bytes)
            / u128::from(request.total.max(1));
        u64::try_from(share).unwrap_or(u64::MAX).max(known)
    }

    /// Water level of the contributors that a decision of this round may signal; 0 if the decision names no cut.
    fn level(&self, contributors: &mut Heaviest<'_>, request: &RoundRequest<'_>) -> BitRate {
        let Choice::Cut(excess) = request.decision.choice else {
            return BitRate(0);
        };
        let heaviest = (0..LEVELLED).map_while(|place| contributors.at(place));
        let rates = heaviest.map(|(bytes, flow)| self.rate(flow, bytes, request));
        BitRate(water_level(rates, excess.0))
    }

    /// Bytes that a flow puts into its queue in a window, at its present rate; 0 if it has just begun and that is not known.
    fn before(&self, index: u32, bytes: u64, now: Nanos) -> u64 {
        let window = self.tracker.window();
        let Some(flow) = self.tracker.flows.get(index) else {
            return 0;
        };
        let (since, before) = flow.resumed;
        let sent_for = now.since(since);
        if flow.lately > 0 {
            flow.lately
        } else if sent_for >= window {
            bytes
        } else if sent_for < BEGUN {
            0
        } else {
            share(flow.bytes.saturating_sub(before), window.0, sent_for.0)
        }
    }

    pub(super) fn cut(&self, index: u32, rate: u64, now: Nanos) -> BitRate {
        cut_of(rate, self.tracker.cut_share(index, now))
    }

    /// Records a CNP to a sender in its model; returns the time until its effect shows.
    pub(super) fn record_cnp_sent(&mut self, index: u32, rate: u64, now: Nanos) -> Nanos {
        let share = self.tracker.cut_share(index, now);
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.dcqcn.record_cnp_sent(rate, share, now);
        }
        self.tracker.feedback(index)
    }

    /// Lengthens the spacing of a round of more flows than a tick may signal: it takes several ticks, and signals every flow once before any twice.
    fn spread(&self, decision: &Decision, reach: usize) -> Decision {
        let ticks = u64::try_from(reach.div_ceil(self.orders_per_tick)).unwrap_or(u64::MAX);
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

    /// Returns true if the flow was signalled within the decision's spacing. In a dry run, CNPs that would have been sent count too.
    fn too_soon(&self, index: u32, dry: bool, request: &RoundRequest<'_>) -> bool {
        let spacing = request.decision.spacing;
        let lately = |cnps: u64, last: Nanos| cnps > 0 && request.now.since(last) < spacing;
        let flow = self.tracker.flows.get(index);
        flow.is_some_and(|flow: &Flow| {
            let would = flow.would;
            lately(flow.cnps, flow.last_cnp) || dry && lately(would.cnps, would.last)
        })
    }

    /// Opens a measurement of a signalled flow's response, and starts counting the bytes that earn its next CNP.
    pub(super) fn open_episode(&mut self, index: u32, bytes: u64, now: Nanos) {
        let before = self.before(index, bytes, now);
        let headroom = self.tracker.headroom(index, bytes, now);
        self.tracker.remember_host(index);
        let config = self.tracker.response_config(index);
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.cnps += 1;
            flow.last_cnp = now;
            flow.refused = None;
            let cards = &flow.dcqcn.cards;
            flow.response
                .record_cnp_sent(now, before, cards, headroom, &config);
        }
        self.tracker.spend_earned(index);
        self.tracker.flows.publish(index);
    }
}

/// Returns true if a contributor refused for this reason was signalled already, by us or by its receiver: it takes a place among those a
/// decision reaches.
const fn is_signalled(reason: Suppressed) -> bool {
    matches!(reason, Suppressed::Spacing | Suppressed::AlreadyNotified)
}

/// Returns true if the flows signalled so far give up the sum that the decision wants.
fn is_reached(choice: Choice, counted: BitRate) -> bool {
    matches!(choice, Choice::Cut(sum) if counted >= sum)
}

/// Water level: the rate that is left to each sender above it when those together give up `excess`. With the `k` fastest above it, it is (their sum -
/// excess) / k. Rates come about fastest first; one out of its order counts if it is above the level of those before it.
fn water_level(rates: impl Iterator<Item = u64>, excess: u64) -> u64 {
    let (mut sum, mut above, mut level) = (0u64, 0, 0);
    for rate in rates.filter(|rate| *rate > 0) {
        if rate > level {
            above += 1;
            sum = sum.saturating_add(rate);
            level = sum.saturating_sub(excess) / above;
        }
    }
    level
}

/// Returns true if the decision selects a contributor of this rate, which would give up `cut`, when others give up `before`. Where a sum is to be
/// reached, no contributor is signalled that would give up more than twice the remainder, so that the sum is approached from either side.
const fn chosen(request: &RoundRequest<'_>, rate: u64, cut: BitRate, before: BitRate) -> bool {
    match request.cause.decision.choice {
        Choice::All => true,
        Choice::Cut(sum) => {
            let left = sum.0.saturating_sub(before.0);
            rate > request.level.0 && cut.0 > 0 && cut.0 / 2 <= left && left > 0
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "round_tests.rs"]
mod tests;

//! One round of a decision: which contributors are signalled, what that should cost them, and what is remembered of it.
//!
//! Law: no flow is signalled more often than the decision's spacing says, and no round sends more than `orders_per_tick` CNPs. A
//! flow that cannot be signalled takes no other's place: only CNPs that leave are counted against that.

use std::sync::Arc;

use npcc_pipeline::units::{BitRate, Nanos};

use super::ControlCore;
use super::heaviest::Heaviest;
use super::order::Cause;
use super::tellable::{Apart, BEGUN};
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

/// A CNP that should cost less than this share of the rate costs little. When it is decided how many are signalled, it is counted with
/// so much all the same: alpha may have faded less than is believed, as that of DCQCN as published does.
const LITTLE: u64 = 8;
/// Contributors that a call refuses after a closer look, at most, over all queues. Those that need no closer look are not counted.
pub(super) const REFUSALS: usize = 1_024;
/// Refusals logged in a round, at most.
const LOGGED: usize = 16;
/// Contributors that cannot be told of which a round looks whether that is news, at most.
const LOOKED_AT: usize = 64;
/// Longest time between two CNPs to a queue pair that is told because its sender's flows are not known.
const AMONG: Nanos = Nanos::from_millis(10);
/// A flow not signalled for this long has no effect of a CNP on its way.
const SETTLED: Nanos = Nanos::from_millis(1);
/// What a round goes by.
#[derive(derive_more::Deref)]
pub(super) struct Asked<'a> {
    #[deref]
    cause: Cause<'a>,
    /// Nothing is sent.
    dry: bool,
    /// Telling did not help those that fill the queue when it was last looked at.
    given_up: bool,
    deadline: &'a Deadline<'a>,
    /// Bytes of all contributors.
    total: u64,
    /// Bytes of one, on average.
    mean: u64,
}

/// What a round has done so far.
#[derive(Debug)]
struct Done {
    round: Round,
    /// What is counted of what those signalled are expected to give up.
    counted: BitRate,
    /// How many more contributors the decision reaches.
    left: usize,
    /// How many more CNPs may leave.
    orders: usize,
    /// CNPs that left.
    sent: usize,
    /// CNPs that would have, where nothing is sent.
    would: usize,
    /// How many more refusals are logged.
    logged: usize,
    /// Contributors looked at.
    looked: usize,
}

impl ControlCore {
    /// Tells the contributors a decision reaches.
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
        let given_up = self.queues.get(index).is_some_and(|queue| queue.given_up);
        let Apart {
            known,
            all: able,
            vain,
        } = self.set_apart(&mut contributors, status, given_up, now);
        if let Some(queue) = self.queues.get_mut(index) {
            queue.given_up = vain > total / 4;
        }
        let reach = Planner::reach(decision, all).min(able);
        let asked = Asked {
            cause: Cause {
                decision: self.spread(decision, reach),
                context,
                now,
            },
            deadline,
            dry: self.tracker.settings.action_of_queue(index) < Action::Send,
            given_up,
            total,
            mean: total / u64::try_from(all.max(1)).unwrap_or(u64::MAX),
        };
        let mut done = Done {
            left: reach,
            orders: self.orders_per_tick,
            sent: 0,
            would: 0,
            logged: LOGGED,
            looked: 0,
            round: Round::default(),
            counted: BitRate(0),
        };
        self.log_untellable(
            contributors.get(able..).unwrap_or_default(),
            &asked,
            &mut done,
        );
        self.all_told.clear();
        let (known, others) = contributors.split_at_mut(known);
        self.tell(&mut Heaviest::of(known), &asked, &mut done, status, out);
        let others = others.get_mut(..able - known.len()).unwrap_or_default();
        let mut others = Heaviest::of(others);
        self.tell(&mut others, &asked, &mut done, status, out);
        self.pace_among(done.orders == 0);
        status.cnps.add(done.sent as u64);
        status.would_send.add(done.would as u64);
        self.contributors = contributors;
        done.round
    }

    /// Tells these contributors, heaviest first, as far as the decision reaches and the budgets of the tick go.
    fn tell(
        &mut self,
        contributors: &mut Heaviest<'_>,
        asked: &Asked<'_>,
        done: &mut Done,
        status: &QueueStatus,
        out: &mut impl Outlet,
    ) {
        let mut places = 0..;
        while done.left > 0 && !is_reached(asked.decision.choice, done.counted) {
            let one = places.next().and_then(|place| contributors.at(place));
            let Some((bytes, flow)) = one else {
                return;
            };
            let pause = done.looked.is_multiple_of(TOGETHER);
            done.looked += 1;
            let spent = done.orders == 0 || self.refusals == 0;
            if spent || pause && done.looked > 1 && asked.deadline.is_over() {
                status.suppressed(Suppressed::CapTick).add(done.left as u64);
                done.left = 0;
                return;
            }
            let rate = self.rate(flow, bytes, asked);
            done.round.fastest.0 = done.round.fastest.0.max(rate);
            let cut = self.cut(flow, rate, asked.now);
            let weight = Weight::of(bytes, asked.mean, rate, cut);
            if !chosen(asked.decision.choice, rate, cut, done.counted, weight) {
                done.left -= 1;
                continue;
            }
            let dry = self.tracker.action(flow) < Action::Send;
            if self.too_soon(flow, dry, asked) {
                done.left -= usize::from(!dry || asked.dry);
                status.suppress(Suppressed::Spacing);
                continue;
            }
            match self.order((bytes, flow), dry, asked, done.orders, out) {
                // What one host would be told takes nothing off a queue whose other senders are told.
                Ok(told) if dry && !asked.dry => {
                    done.would += told;
                    self.refusals = self.refusals.saturating_sub(1);
                }
                Ok(told) => {
                    done.left -= 1;
                    done.orders -= told.min(done.orders);
                    done.round.sent += u32::try_from(told).unwrap_or(u32::MAX);
                    let counted = cut.0.max(rate / LITTLE);
                    done.counted.0 = done.counted.0.saturating_add(counted);
                    done.round.cut.0 = done.round.cut.0.saturating_add(cut.0);
                    let shows = if dry {
                        done.would += told;
                        self.tracker.feedback(flow)
                    } else {
                        done.sent += told;
                        self.record_cnp_sent(flow, rate, asked.now)
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
                    done.left -= usize::from(is_told(reason));
                    self.refuse(flow, reason, asked.now);
                    self.log_refusal(flow, reason, asked, done);
                }
            }
        }
    }

    /// Where the CNPs of a round were not enough for all queue pairs of all senders, the next ones wait longer: the lightest are told
    /// before the heaviest are told again.
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

    /// Counts a refusal that took a closer look. Where there are many, those refused now are not asked again before all others
    /// have been.
    fn refuse(&mut self, flow: u32, reason: Suppressed, now: Nanos) {
        self.refusals = self.refusals.saturating_sub(1);
        if self.refusals < REFUSALS / 4 * 3 && !is_told(reason) {
            self.park(flow, reason, now);
        }
    }

    /// A flow is not asked again before as many others as there can be have been.
    pub(super) fn park(&mut self, flow: u32, reason: Suppressed, now: Nanos) {
        if let Some(flow) = self.tracker.flows.get_mut(flow) {
            let rounds = (RECENT / (REFUSALS / 2)) as u64;
            flow.parked = now + Nanos(self.tick.0.saturating_mul(rounds));
            flow.parked_for = reason;
        }
    }

    /// Logs why contributors cannot be told, a few in each round, every one in its turn.
    fn log_untellable(&mut self, others: &[(u64, u32)], asked: &Asked<'_>, done: &mut Done) {
        let turn = usize::try_from(self.status.ticks.get()).unwrap_or(0);
        let first = turn.wrapping_mul(LOOKED_AT) % others.len().max(1);
        let (before, after) = others.split_at(first);
        for (_, index) in after.iter().chain(before).take(LOOKED_AT) {
            let flow = self.tracker.flows.get(*index);
            let standing = (self.tracker.standing(*index), asked.given_up);
            if let Some(reason) = flow.and_then(|flow| self.refused(flow, standing, asked.now)) {
                self.log_refusal(*index, reason, asked, done);
            }
        }
    }

    /// Logs a refusal, if it is news and there is room for it in this round.
    fn log_refusal(&mut self, index: u32, reason: Suppressed, asked: &Asked<'_>, done: &mut Done) {
        if done.logged == 0 || !self.tracker.is_news(index, reason, asked.now) {
            return;
        }
        done.logged -= 1;
        if let Some(flow) = self.tracker.flows.get(index) {
            let known = (flow.sender, flow.evidence);
            self.log(index, known, asked, Outcome::Refused(reason));
        }
    }

    /// The rate a flow will have once the CNPs on their way have had effect: as measured. Of one not signalled for long, that
    /// may still hold the silence before a start, so it is not below its share of what comes in.
    fn rate(&self, index: u32, bytes: u64, asked: &Asked<'_>) -> u64 {
        let flow = self.tracker.flows.get(index);
        let now = asked.now;
        let known = flow.map_or(0, |flow| flow.dcqcn.predicted());
        let settled = flow.is_none_or(|flow| flow.cnps == 0 || now.since(flow.last_cnp) > SETTLED);
        if !settled && known > 0 {
            return known;
        }
        let share = u128::from(asked.context.arrival.0) * u128::from(bytes)
            / u128::from(asked.total.max(1));
        u64::try_from(share).unwrap_or(u64::MAX).max(known)
    }

    /// What a flow puts into its queue in a window, as it sends now; 0 where it has just begun and that is not known.
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

    /// Notes that a sender was signalled; says when that will show.
    pub(super) fn record_cnp_sent(&mut self, index: u32, rate: u64, now: Nanos) -> Nanos {
        let share = self.tracker.cut_share(index, now);
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.dcqcn.record_cnp_sent(rate, share, now);
        }
        self.tracker.feedback(index)
    }

    /// A round of more flows than a tick may order takes several ticks, and tells everyone once before anyone twice.
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

    /// Where nothing is sent, the pace is what it would be.
    fn too_soon(&self, index: u32, dry: bool, asked: &Asked<'_>) -> bool {
        let spacing = asked.decision.spacing;
        let lately = |cnps: u64, last: Nanos| cnps > 0 && asked.now.since(last) < spacing;
        let flow = self.tracker.flows.get(index);
        flow.is_some_and(|flow: &Flow| {
            let would = flow.would;
            lately(flow.cnps, flow.last_cnp) || dry && lately(would.cnps, would.last)
        })
    }

    /// A flow was signalled: what it does now is measured, and what it sends now earns its next CNP.
    pub(super) fn open_episode(&mut self, index: u32, bytes: u64, now: Nanos) {
        let before = self.before(index, bytes, now);
        let headroom = self.tracker.headroom(index, bytes, now);
        self.tracker.remember_host(index);
        let share = self.tracker.cut_share(index, now);
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.cnps += 1;
            flow.last_cnp = now;
            flow.refused = None;
            flow.response.record_cnp_sent(now, before, share, headroom);
        }
        self.tracker.spend_earned(index);
        self.tracker.flows.publish(index);
    }
}

/// Whether a contributor refused for this reason has been told, by whomever: it takes a place among those a decision reaches.
const fn is_told(reason: Suppressed) -> bool {
    matches!(reason, Suppressed::Spacing | Suppressed::AlreadyNotified)
}

/// Whether those signalled already give up what was asked for.
fn is_reached(choice: Choice, counted: BitRate) -> bool {
    matches!(choice, Choice::Cut { sum, .. } if counted >= sum)
}

/// What a contributor is among the others, where a sum is to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// It is signalled.
    Full,
    /// Sends less than the mean and would give up little.
    Light,
    /// Sends less than a quarter of the mean: what it can give up does not matter, what it loses it may not win back for long.
    Feather,
}

impl Weight {
    /// Of a contributor of these bytes, which would give up `cut` of its rate.
    const fn of(bytes: u64, mean: u64, rate: u64, cut: BitRate) -> Weight {
        if bytes < mean / 4 {
            Weight::Feather
        } else if bytes < mean && cut.0 < rate / LITTLE {
            Weight::Light
        } else {
            Weight::Full
        }
    }
}

/// Whether a decision means a contributor of this rate, which would give up `cut`, when others are counted with `before`.
/// Who sends less than others and would give up little is spared, if the decision says so: they meet in the middle.
fn chosen(choice: Choice, rate: u64, cut: BitRate, before: BitRate, weight: Weight) -> bool {
    match choice {
        Choice::All => true,
        Choice::Above(fair) => rate > fair.0,
        Choice::Cut { sum, spare } => {
            let left = sum.0.saturating_sub(before.0);
            let spared = match weight {
                Weight::Full => false,
                Weight::Light => spare,
                Weight::Feather => true,
            };
            !spared && cut.0 > 0 && cut.0 / 2 <= left && left > 0
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "round_tests.rs"]
mod tests;

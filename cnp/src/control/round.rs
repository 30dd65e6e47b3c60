//! One round of a decision: which contributors are signalled, what that should cost them, and what is remembered of it.
//!
//! Law: no flow is signalled more often than the decision's spacing says, and no round orders more than `orders_per_tick`.

use std::sync::Arc;

use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

use super::ControlCore;
use super::queue::WatchedQueue;
use crate::dcqcn::cut_of;
use crate::host_response::Standing;
use crate::plan::{CnpOrder, Planner, Suppressed};
use crate::policy::{Choice, Decision, QueueContext, Round};

/// A CNP that should cost less than this share of the rate costs little. When it is decided how many are signalled, it is counted with
/// so much all the same: alpha may have faded less than is believed, as that of DCQCN as published does.
const LITTLE: u64 = 8;
/// A flow not signalled for this long has no effect of a CNP on its way.
const SETTLED: Nanos = Nanos::from_millis(1);
/// What a CNP should cost at least to be felt, in 65,536ths of the rate.
const FELT: u32 = 1 << 13;
/// A signalled flow of a host that is not known yet stays unmarked for so long.
const TRIAL: Nanos = Nanos::from_micros(300);
/// A signalled flow of a host that answers stays unmarked for so long, unless signalled again: in this time every one of some 1,000 contributors has its turn.
const HOLD: Nanos = Nanos::from_millis(20);

/// So many of the heaviest contributors say whether telling helps.
const JUDGES: usize = 64;

/// A queue of a port.
type PortQueue = (PortId, Priority);

impl ControlCore {
    /// Tells the contributors a decision reaches.
    pub(super) fn round(
        &mut self,
        index: usize,
        decision: &Decision,
        context: &QueueContext,
        now: Nanos,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) -> Round {
        let mut contributors = std::mem::take(&mut self.contributors);
        self.tracker.contributors(index, now, &mut contributors);
        let status = Arc::clone(&self.status);
        let mut round = Round::default();
        if let Some(status) = status.queues().get(index) {
            status.contributors.set(contributors.len() as u64);
            let reach = Planner::reach(decision, contributors.len());
            let decision = self.spread(decision, reach);
            let total = contributors.iter().map(|(bytes, _)| *bytes).sum();
            let mean = total / u64::try_from(contributors.len().max(1)).unwrap_or(u64::MAX);
            let given_up = self.is_given_up(&contributors, now);
            if let Some(queue) = self.queues.get_mut(index) {
                queue.given_up = given_up;
            }
            let mut looked_at = 0;
            let mut counted = BitRate(0);
            for (bytes, flow) in contributors.iter().take(reach) {
                let rate = self.rate(*flow, *bytes, total, context, now);
                let cut = self.cut(*flow, rate, now);
                let weight = if *bytes < mean / 4 {
                    Weight::Feather
                } else if *bytes < mean && cut.0 < rate / LITTLE {
                    Weight::Light
                } else {
                    Weight::Full
                };
                if !chosen(decision.choice, rate, cut, counted, weight) {
                    continue;
                }
                let told = if self.too_soon(*flow, &decision, now) {
                    Err(Suppressed::Spacing)
                } else if looked_at >= self.orders_per_tick {
                    Err(Suppressed::CapTick)
                } else {
                    looked_at += 1;
                    let before = self.before(*flow, *bytes);
                    self.order(*flow, before, &decision, now, out)
                        .inspect(|()| {
                            self.log(*flow, context, &decision, now);
                        })
                };
                match told {
                    Ok(()) => {
                        round.sent += 1;
                        counted.0 = counted.0.saturating_add(cut.0.max(rate / LITTLE));
                        round.cut.0 = round.cut.0.saturating_add(cut.0);
                        round.feedback = round.feedback.max(self.record_cnp_sent(*flow, rate, now));
                    }
                    Err(reason) => status.suppress(reason),
                }
            }
            status.cnps.add(u64::from(round.sent));
        }
        self.contributors = contributors;
        round
    }

    /// The rate a flow will have once the CNPs on their way have had effect: as measured. Of one not signalled for long, that
    /// may still hold the silence before a start, so it is not below its share of what comes in.
    fn rate(&self, index: u32, bytes: u64, total: u64, context: &QueueContext, now: Nanos) -> u64 {
        let flow = self.tracker.flows.get(index);
        let known = flow.map_or(0, |flow| flow.dcqcn.predicted());
        let settled = flow.is_none_or(|flow| flow.cnps == 0 || now.since(flow.last_cnp) > SETTLED);
        if !settled && known > 0 {
            return known;
        }
        let share = u128::from(context.arrival.0) * u128::from(bytes) / u128::from(total.max(1));
        u64::try_from(share).unwrap_or(u64::MAX).max(known)
    }

    /// Whether so much of what comes in is of senders that telling does not help that the others would be told for them. As without
    /// NPCC everybody is marked then.
    fn is_given_up(&mut self, contributors: &[(u64, u32)], now: Nanos) -> bool {
        let (mut vain, mut all) = (0u64, 0u64);
        for (bytes, flow) in contributors.iter().take(JUDGES) {
            all += bytes;
            if self.tracker.is_vain(*flow) {
                vain += bytes;
            }
        }
        let given_up = vain > all / 4;
        if given_up {
            for (_, flow) in contributors.iter().take(JUDGES) {
                self.tracker.mark_again(*flow, now);
            }
        }
        given_up
    }

    /// What a flow puts into its queue in a window, as it sends now: one that has just begun was silent for part of it. 0 while that is not
    /// measured; its share of what comes in would be more than it sends where others fill the queue too.
    fn before(&self, index: u32, bytes: u64) -> u64 {
        let flow = self.tracker.flows.get(index);
        match flow.map_or(0, |flow| flow.dcqcn.measured()) {
            0 => 0,
            rate => bytes.max(BitRate(rate).bytes_in(self.tracker.window())),
        }
    }

    fn cut(&self, index: u32, rate: u64, now: Nanos) -> BitRate {
        cut_of(rate, self.tracker.cut_share(index, now))
    }

    /// Notes that a sender was signalled; says when that will show.
    fn record_cnp_sent(&mut self, index: u32, rate: u64, now: Nanos) -> Nanos {
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

    fn too_soon(&self, index: u32, decision: &Decision, now: Nanos) -> bool {
        let flow = self.tracker.flows.get(index);
        flow.is_some_and(|flow| flow.cnps > 0 && now.since(flow.last_cnp) < decision.spacing)
    }

    /// A flow was signalled: it is not marked for as long as that is earned.
    pub(super) fn open_episode(&mut self, queue: PortQueue, index: u32, bytes: u64, now: Nanos) {
        self.tracker.remember_host(index);
        let share = self.tracker.cut_share(index, now);
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.cnps += 1;
            flow.last_cnp = now;
            flow.response.record_cnp_sent(now, bytes, share);
        }
        let hold = self.earned(queue, index, share);
        self.tracker.set_notified(index, now + hold, now);
        self.tracker.flows.publish(index);
    }

    /// Whether telling a flow does not help, or those with whom it fills its queue.
    pub(super) fn is_vain(&self, queue: PortQueue, index: u32) -> bool {
        let same = |watched: &&WatchedQueue| (watched.port, watched.priority) == queue;
        let queue = self.queues.iter().find(same);
        queue.is_some_and(|queue| queue.given_up) || self.tracker.is_vain(index)
    }

    /// How long a flow of this queue that is signalled now, by a CNP that should cost this share, need not be marked. Where its host is
    /// known to answer the CNPs of here are enough, and its mark would come back from a far end as a CNP for a queue that has drained.
    /// A host of which nothing is known gets a trial, where the CNP should be felt; the others keep their marks. From `hard` on the worker
    /// marks whoever was told.
    fn earned(&self, port_queue: PortQueue, index: u32, share: u32) -> Nanos {
        let (port, priority) = port_queue;
        let same = |queue: &&WatchedQueue| queue.port == port && queue.priority == priority;
        let queue = self.queues.iter().find(same);
        let is_hard =
            queue.is_some_and(|queue| queue.reading.depth >= queue.detector.config().hard);
        let longest = match self.tracker.standing(index) {
            _ if self.is_vain(port_queue, index) => return Nanos::ZERO,
            Standing::Answers => HOLD,
            Standing::Unknown if share >= FELT => TRIAL,
            Standing::Unknown | Standing::Doubted | Standing::FallenBack => return Nanos::ZERO,
        };
        if self.holds_marks && !is_hard {
            longest.max(self.notified)
        } else {
            self.notified
        }
    }
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

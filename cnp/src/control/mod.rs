//! The control core of one switch: every tick, from records and depths to CNPs.
//!
//! ```text
//!   records -> tracker (flows, ends)            depth -> detector -> policy -> decision
//!                      \                                                        |
//!                       contributors of the queue, heaviest first -> planner -> orders
//! ```
//! One thread calls [`ControlCore::tick`]; it allocates nothing and its work is bounded by the configuration. Others read
//! [`NpccStatus`] and [`FlowView`].

pub mod command;
pub mod config;
mod round;

use std::sync::Arc;

use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

use crate::detector::{Detector, Reading, Zone};
use crate::flow_cache::CacheReader;
use crate::key::{Qpn, QueueFlow};
use crate::log::Entry;
use crate::pair::Evidence;
use crate::pair::connections::EndpointId;
use crate::plan::{Candidate, CnpOrder, Planner, Suppressed, Unpaired};
use crate::policy::npcc::CLOSEST;
use crate::policy::{Amount, Decision, Policy, PolicyKind, QueueContext, Round};
use crate::source_check::Routes;
use crate::status::NpccStatus;
use crate::table::{FlowView, RECENT};
use crate::tracker::FlowTracker;
use config::{ControlConfig, EcnMode, QueueConfig};

/// Flows read at a look between two ticks, at most: each read costs a line of the worker's cache.
const READS_PER_LOOK: usize = 64;

/// How often what is done.
#[derive(Debug, Clone, Copy)]
struct Intervals {
    tick: Nanos,
    period: Nanos,
    stale: Nanos,
}

/// One watched queue.
#[derive(Debug)]
struct WatchedQueue {
    port: PortId,
    priority: Priority,
    detector: Detector,
    policy: Box<dyn Policy>,
    reading: Reading,
    next_tick: Nanos,
    next_look: Nanos,
    /// The look before: when, and the depth.
    looked: (Nanos, u64),
    /// What it found.
    context: Option<QueueContext>,
}

impl WatchedQueue {
    fn new(config: &QueueConfig) -> WatchedQueue {
        WatchedQueue {
            port: config.port,
            priority: config.priority,
            detector: Detector::new(config.detector),
            policy: config.policy.slot(),
            reading: Reading::default(),
            next_tick: Nanos::ZERO,
            next_look: Nanos::ZERO,
            looked: (Nanos::ZERO, 0),
            context: None,
        }
    }

    /// Looks at the depth, and at its zone when a tick has passed.
    fn look(&mut self, depth: u64, listed: usize, every: &Intervals, now: Nanos) -> QueueContext {
        // What is due before half of a period has passed is due now.
        let due = |time: Nanos| {
            if time > every.period {
                now + Nanos(time.0 - every.period.0 / 2)
            } else {
                now
            }
        };
        let look = self.policy.look().unwrap_or(every.tick).min(every.tick);
        self.next_look = due(look);
        let fresh = now >= self.next_tick;
        if fresh {
            self.next_tick = due(every.tick);
            self.reading = self.detector.observe(depth);
        }
        let reads = u64::try_from(listed.div_ceil(READS_PER_LOOK)).unwrap_or(u64::MAX);
        let config = self.detector.config();
        let (at, before) = std::mem::replace(&mut self.looked, (now, depth));
        let arrival = arrival(config.drain, depth, before, now.since(at));
        let context = QueueContext {
            reading: self.reading,
            fresh,
            depth,
            deep: config.deep,
            drain: config.drain,
            arrival,
            mtu: config.mtu,
            rates_known: reads.saturating_mul(look.0) <= every.stale.0,
        };
        self.context = Some(context);
        context
    }

    /// Between two looks, for a policy that asked for it: the depth now, the rest as the last look found it.
    fn glance(&self, depth: u64) -> Option<QueueContext> {
        self.context.map(|last| QueueContext {
            fresh: false,
            depth,
            ..last
        })
    }
}

/// The control core: queues, policies and what is known of flows.
#[derive(Debug)]
pub struct ControlCore {
    tracker: FlowTracker,
    queues: Box<[WatchedQueue]>,
    planner: Planner,
    status: Arc<NpccStatus>,
    contributors: Vec<(u64, u32)>,
    notified: Nanos,
    /// Whether a signalled flow is not marked while its queue is below `hard`.
    holds_marks: bool,
    tick: Nanos,
    period: Nanos,
    /// The last call that was not between two looks only.
    regular: Nanos,
    /// Time to the next call, when that is not a period.
    hurry: Option<Nanos>,
    reads_per_tick: usize,
    orders_per_tick: usize,
    unpaired: Unpaired,
    offers: Vec<(PortId, Priority, PolicyKind)>,
    /// What the caps are shares of.
    rates: Box<[BitRate]>,
    cap_per_second: u64,
}

impl ControlCore {
    /// A control core that has seen nothing. All memory is reserved here.
    #[must_use]
    pub fn new(config: &ControlConfig) -> ControlCore {
        let queues: Box<[WatchedQueue]> = config.queues.iter().map(WatchedQueue::new).collect();
        let looks = queues.iter().filter_map(|queue| queue.policy.look());
        let period = looks.fold(config.tick, Nanos::min);
        let named = config
            .queues
            .iter()
            .map(|queue| (queue.port, queue.priority, queue.policy.which()));
        let status = Arc::new(NpccStatus::new(named));
        for (queue, shown) in queues.iter().zip(status.queues()) {
            shown.show_parameters(&queue.policy.parameters());
        }
        ControlCore {
            tracker: FlowTracker::new(config, period, Arc::clone(&status)),
            queues,
            planner: Planner::new(
                config.evidence,
                &config.port_rates,
                config.cap,
                config.cap_per_second,
            ),
            status,
            contributors: Vec::with_capacity(config.flows.min(RECENT)),
            notified: config.notified,
            holds_marks: config.ecn == EcnMode::MarkUnlessNotified,
            reads_per_tick: config.reads_per_tick,
            tick: config.tick,
            period,
            regular: Nanos::ZERO,
            hurry: None,
            orders_per_tick: config.orders_per_tick.max(1),
            unpaired: config.unpaired,
            offers: Vec::new(),
            rates: config.port_rates.iter().copied().collect(),
            cap_per_second: config.cap_per_second,
        }
    }

    /// Touches all memory there will ever be, so that no tick waits for the system to find a page. Before the first tick.
    pub fn touch_memory(&mut self) {
        self.tracker.touch_memory();
    }

    /// Takes the control side of a worker's flow cache; `false` when there are 32 already.
    pub fn attach(&mut self, reader: CacheReader) -> bool {
        self.tracker.attach(reader)
    }

    /// Asks these routes where sources lie, from the next tick on.
    pub fn know_routes(&mut self, routes: Box<dyn Routes>) {
        self.tracker.know_routes(routes);
    }

    /// Counters and gauges for readers on other threads.
    #[must_use]
    pub fn status(&self) -> Arc<NpccStatus> {
        Arc::clone(&self.status)
    }

    /// The flow table for readers on other threads.
    #[must_use]
    pub fn flows(&self) -> Arc<FlowView> {
        self.tracker.flows.view()
    }

    /// Flows that contributed to a watched queue lately.
    #[cfg(test)]
    pub(crate) fn listed(&self, queue: usize) -> usize {
        self.tracker.listed(queue)
    }

    /// Bytes a flow is taken to have sent in the window that ends now.
    #[cfg(test)]
    pub(crate) fn in_window(&self, flow: u32, window: Nanos, now: Nanos) -> u64 {
        let flow = self.tracker.flows.get(flow);
        flow.map_or(0, |flow| flow.window.bytes(now, window))
    }

    /// Time from the last call of [`ControlCore::tick`] to the next: that of the policy that looks most often, at most a
    /// tick; less while a policy is urgent.
    #[must_use]
    pub fn period(&self) -> Nanos {
        self.hurry.unwrap_or(self.period)
    }

    /// Time between two ticks.
    #[must_use]
    pub const fn tick_time(&self) -> Nanos {
        self.tick
    }

    /// The next call is a tick of every queue, whenever it comes: somebody saw one rise to `hard`.
    pub fn hasten(&mut self) {
        self.regular = Nanos::ZERO;
        for queue in &mut self.queues {
            (queue.next_tick, queue.next_look) = (Nanos::ZERO, Nanos::ZERO);
        }
    }

    /// Whether the queues that are due are looked at in this call, and not only those whose policy is urgent.
    fn is_regular(&mut self, now: Nanos) -> bool {
        // A call that comes an eighth early is still that of its time.
        let regular =
            self.hurry.is_none() || now.since(self.regular).0 >= self.period.0 - self.period.0 / 8;
        if regular {
            let late = now.since(self.regular).0 > self.period.0 + self.tick.0 / 2;
            // Nobody asked for it (`hasten`), and it is not the first.
            self.tracker.adapt_reads(late && self.regular > Nanos::ZERO);
            self.regular = now;
        }
        regular
    }

    /// When to be called next.
    fn plan_next(&mut self, now: Nanos) {
        let urgent = self.queues.iter().any(|queue| queue.policy.urgent());
        let left = Nanos(self.period.0.saturating_sub(now.since(self.regular).0));
        let next = if urgent { left.min(CLOSEST) } else { left };
        self.hurry = (next > Nanos::ZERO && next < self.period).then_some(next);
    }

    /// One tick, or a look between two. `depth` gives a queue's wire bytes, those still in the device included; `out` sends
    /// a CNP or says why not.
    pub fn tick(
        &mut self,
        now: Nanos,
        depth: impl Fn(PortId, Priority) -> u64,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) {
        self.status.ticks.add(1);
        self.tracker.drain(now);
        let every = Intervals {
            tick: self.tick,
            period: self.period,
            stale: self.tracker.measure.stale,
        };
        let regular = self.is_regular(now);
        for index in 0..self.queues.len() {
            let listed = self.tracker.listed(index);
            let Some(queue) = self.queues.get_mut(index) else {
                break;
            };
            let due = regular && now >= queue.next_look;
            if !due && !queue.policy.urgent() {
                continue;
            }
            let looks = queue.policy.look();
            let depth = depth(queue.port, queue.priority);
            let context = if due {
                queue.look(depth, listed, &every, now)
            } else if let Some(context) = queue.glance(depth) {
                context
            } else {
                continue;
            };
            let decision = queue.policy.decide(&context, now);
            let busy = match looks {
                Some(_) if depth > 0 => Some(self.reads_per_tick.min(READS_PER_LOOK)),
                _ => (context.reading.zone > Zone::Idle).then_some(self.reads_per_tick),
            };
            // What a quiet queue's readings may take is said for a tick, however often a policy looks.
            if due && (context.fresh || busy.is_some()) {
                self.tracker.read_queue(index, busy, now);
            }
            let round = if decision.amount == Amount::None {
                Round::default()
            } else {
                self.round(index, &decision, &context, now, out)
            };
            self.finish(index, &context, &decision, &round, now);
        }
        self.plan_next(now);
        self.tracker.tidy(now);
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

    fn order(
        &mut self,
        index: u32,
        bytes: u64,
        decision: &Decision,
        now: Nanos,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) -> Result<(), Suppressed> {
        // The pairing of this very moment: whatever demoted it has been taken in above.
        let pairing = self.tracker.refresh_pairing(index, now);
        let (Some(key), Some(flow)) =
            (self.tracker.flows.key(index), self.tracker.flows.get(index))
        else {
            return Err(Suppressed::Cold);
        };
        let end = flow
            .end
            .filter(|end| self.tracker.connections.key(*end) == Some(key.key));
        let partner = end.and_then(|end| self.tracker.connections.partner(end, now));
        let candidate = Candidate {
            ipv6: key.key.is_ipv6(),
            pairing,
            signalled: end.and_then(|end| self.tracker.connections.end(end)?.signalled),
            passed: partner
                .and_then(|(partner, _)| self.tracker.connections.end(partner)?.cnp_passed),
            unresponsive: flow.response.is_unresponsive(),
            trusted: flow.trusted,
            ingress: flow.ingress,
        };
        let admitted = self.planner.admit(&candidate, decision, now);
        match (admitted, self.unpaired) {
            (Err(Suppressed::Unpaired), Unpaired::None) => {
                self.tracker
                    .extend_notified(index, now + self.notified, now);
            }
            (Err(Suppressed::Unpaired), Unpaired::AllQps) => {
                let told = self.order_all(&key, end, &candidate, decision, now, out);
                if told.is_ok() {
                    self.open_episode((key.egress, key.priority), index, bytes, now);
                }
                return told;
            }
            _ => {}
        }
        self.send(&key, admitted?, &candidate, out)?;
        if let Some(state) = end.and_then(|end| self.tracker.connections.end_mut(end)) {
            state.signalled = Some(now);
        }
        self.open_episode((key.egress, key.priority), index, bytes, now);
        Ok(())
    }

    /// Sends a CNP that the planner admitted, or gives its share of the caps back.
    fn send(
        &mut self,
        key: &QueueFlow,
        (sender_qpn, evidence): (Qpn, Evidence),
        candidate: &Candidate,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) -> Result<(), Suppressed> {
        let order = CnpOrder {
            flow: key.key,
            sender_qpn,
            evidence,
            ingress: candidate.ingress,
            egress: key.egress,
            priority: key.priority,
        };
        out(order).inspect_err(|_| self.planner.give_back(candidate))?;
        let hosts = &mut self.tracker.hosts;
        hosts.record_cnp_sent(&key.key, &self.status.hosts);
        Ok(())
    }

    /// Tells every queue pair that may be the sender's, each no sooner than the decision's spacing allows.
    fn order_all(
        &mut self,
        key: &QueueFlow,
        end: Option<EndpointId>,
        candidate: &Candidate,
        decision: &Decision,
        now: Nanos,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) -> Result<(), Suppressed> {
        let all = end.map(|end| self.tracker.connections.candidates(end));
        let mut told = Err(Suppressed::Unpaired);
        for other in all.unwrap_or_default() {
            let since = |time: Option<Nanos>| time.map_or(u64::MAX, |at| now.since(at).0);
            let (Some(named), Some(state)) = (
                self.tracker.connections.key(other),
                self.tracker.connections.end(other),
            ) else {
                continue;
            };
            if since(state.signalled_among) < decision.spacing.0 {
                told = told.or(Err(Suppressed::Spacing));
                continue;
            }
            self.planner.spend(candidate, now)?;
            let unnamed = (named.dest_qp(), Evidence::None);
            self.send(key, unnamed, candidate, out)?;
            told = Ok(());
            if let Some(state) = self.tracker.connections.end_mut(other) {
                state.signalled_among = Some(now);
            }
        }
        told
    }

    /// Notes why a flow was just signalled.
    fn log(&self, index: u32, context: &QueueContext, decision: &Decision, now: Nanos) {
        let (Some(key), Some(flow)) =
            (self.tracker.flows.key(index), self.tracker.flows.get(index))
        else {
            return;
        };
        self.status.log.record(&Entry {
            time: now,
            flow: key,
            sender_qpn: flow.sender,
            evidence: flow.evidence,
            reason: decision.reason,
            depth: context.depth,
            zone: context.reading.zone,
            trend: context.reading.trend,
            cnps: flow.cnps,
        });
    }
}

/// What came into a queue that went from one depth to another while it drained.
fn arrival(drain: BitRate, depth: u64, before: u64, time: Nanos) -> BitRate {
    let grown = (i128::from(depth) - i128::from(before)) * 8_000_000_000;
    let rate = i128::from(drain.0) + grown / i128::from(time.0.max(1));
    BitRate(u64::try_from(rate.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

#[cfg(test)]
#[cfg(not(loom))]
mod near_tests;

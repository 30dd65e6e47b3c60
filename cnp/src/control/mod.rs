//! The control core of one switch: every tick, from records and depths to CNPs.
//!
//! ```text
//!   records -> ledger (flows, ends)            depth -> detector -> policy -> decision
//!                      \                                                        |
//!                       contributors of the queue, heaviest first -> planner -> orders
//! ```
//! One thread calls [`ControlCore::tick`]; it allocates nothing and its work is bounded by the configuration. Others read
//! [`NpccStatus`] and [`FlowView`].

pub mod config;

use std::sync::Arc;

use npcc_pipeline::units::{Nanos, PortId, Priority};

use crate::detector::{Detector, Reading, Zone};
use crate::flow_cache::CacheReader;
use crate::ledger::Ledger;
use crate::plan::{Candidate, CnpOrder, Planner, Suppressed, Unpaired};
use crate::policy::{Amount, Decision, Policy};
use crate::status::{NpccStatus, QueueStatus};
use crate::table::FlowView;
use config::{ControlConfig, QueueConfig};

/// Most contributors looked at for one decision.
const CONTRIBUTORS: usize = 16_384;

/// One watched queue.
#[derive(Debug)]
struct Queue {
    port: PortId,
    priority: Priority,
    detector: Detector,
    policy: Box<dyn Policy>,
    /// First tick above idle of this excursion, until the first CNP of it.
    shallow_since: Option<Nanos>,
    /// The same for the hard zone.
    hard_since: Option<Nanos>,
    last_zone: Zone,
}

impl Queue {
    fn new(config: &QueueConfig) -> Queue {
        Queue {
            port: config.port,
            priority: config.priority,
            detector: Detector::new(config.detector),
            policy: config.policy.slot(),
            shallow_since: None,
            hard_since: None,
            last_zone: Zone::Idle,
        }
    }

    /// Notes when an excursion began.
    fn clock(&mut self, zone: Zone, now: Nanos) {
        let begun =
            |from: Zone, last: Zone, since: Option<Nanos>| match (zone >= from, last >= from) {
                (true, false) => Some(now),
                (true, true) => since,
                (false, _) => None,
            };
        self.shallow_since = begun(Zone::Shallow, self.last_zone, self.shallow_since);
        self.hard_since = begun(Zone::Hard, self.last_zone, self.hard_since);
        self.last_zone = zone;
    }

    /// A CNP left at `now`.
    fn reacted(&mut self, status: &QueueStatus, now: Nanos) {
        if let Some(since) = self.shallow_since.take() {
            status.reaction.record(now.since(since));
        }
        if let Some(since) = self.hard_since.take() {
            status.reaction_hard.record(now.since(since));
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct ControlCore {
    ledger: Ledger,
    queues: Box<[Queue]>,
    planner: Planner,
    status: Arc<NpccStatus>,
    contributors: Vec<(u64, u32)>,
    notified: Nanos,
    tick: Nanos,
    reads_per_tick: usize,
    orders_per_tick: usize,
    unpaired: Unpaired,
}

impl ControlCore {
    /// A control core that has seen nothing. All memory is reserved here.
    #[must_use]
    pub fn new(config: &ControlConfig) -> ControlCore {
        let queues: Box<[Queue]> = config.queues.iter().map(Queue::new).collect();
        let named = queues
            .iter()
            .map(|queue| (queue.port, queue.priority, queue.policy.name()));
        let status = Arc::new(NpccStatus::new(named));
        ControlCore {
            ledger: Ledger::new(config, Arc::clone(&status)),
            queues,
            planner: Planner::new(
                config.evidence,
                &config.port_rates,
                config.cap,
                config.cap_per_second,
            ),
            status,
            contributors: Vec::with_capacity(config.flows.min(CONTRIBUTORS)),
            notified: config.notified,
            reads_per_tick: config.reads_per_tick,
            tick: config.tick,
            orders_per_tick: config.orders_per_tick.max(1),
            unpaired: config.unpaired,
        }
    }

    /// Takes the control side of a worker's flow cache; `false` when there are 32 already.
    pub fn attach(&mut self, reader: CacheReader) -> bool {
        self.ledger.attach(reader)
    }

    /// Counters and gauges for readers on other threads.
    #[must_use]
    pub fn status(&self) -> Arc<NpccStatus> {
        Arc::clone(&self.status)
    }

    /// The flow table for readers on other threads.
    #[must_use]
    pub fn flows(&self) -> Arc<FlowView> {
        self.ledger.flows.view()
    }

    /// One tick. `depth` gives a queue's wire bytes, those still in the device included; `out` sends a CNP or says why not.
    pub fn tick(
        &mut self,
        now: Nanos,
        depth: impl Fn(PortId, Priority) -> u64,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) {
        self.status.ticks.add(1);
        self.ledger.drain(now);
        for index in 0..self.queues.len() {
            let Some(queue) = self.queues.get_mut(index) else {
                break;
            };
            let reading = queue.detector.observe(depth(queue.port, queue.priority));
            queue.clock(reading.zone, now);
            let decision = queue.policy.decide(&reading, now);
            let busy = (reading.zone > Zone::Idle).then_some(self.reads_per_tick);
            self.ledger.read_queue(index, busy, now);
            let sent = if decision.amount == Amount::None {
                0
            } else {
                self.round(index, &decision, now, out)
            };
            self.finish(index, &reading, &decision, sent, now);
        }
        self.ledger.tidy(now);
    }

    fn finish(
        &mut self,
        index: usize,
        reading: &Reading,
        decision: &Decision,
        sent: u32,
        now: Nanos,
    ) {
        let (Some(queue), Some(status)) =
            (self.queues.get_mut(index), self.status.queues().get(index))
        else {
            return;
        };
        queue.policy.sent(reading, decision, sent, now);
        if sent > 0 {
            queue.reacted(status, now);
        }
        status.observed(reading, decision);
    }

    /// Tells the contributors a decision reaches. Returns how many CNPs left.
    fn round(
        &mut self,
        index: usize,
        decision: &Decision,
        now: Nanos,
        out: &mut impl FnMut(CnpOrder) -> Result<(), Suppressed>,
    ) -> u32 {
        let mut contributors = std::mem::take(&mut self.contributors);
        self.ledger.contributors(index, now, &mut contributors);
        let status = Arc::clone(&self.status);
        let mut sent = 0;
        if let Some(status) = status.queues().get(index) {
            status.contributors.set(contributors.len() as u64);
            let reach = Planner::reach(decision, contributors.len());
            let decision = self.spread(decision, reach);
            let mut looked_at = 0;
            for (bytes, flow) in contributors.iter().take(reach) {
                let told = if self.too_soon(*flow, &decision, now) {
                    Err(Suppressed::Spacing)
                } else if looked_at >= self.orders_per_tick {
                    Err(Suppressed::CapTick)
                } else {
                    looked_at += 1;
                    self.order(*flow, *bytes, &decision, now, out)
                };
                match told {
                    Ok(()) => sent += 1,
                    Err(reason) => status.suppress(reason),
                }
            }
            status.cnps.add(u64::from(sent));
        }
        self.contributors = contributors;
        sent
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
        let flow = self.ledger.flows.get(index);
        flow.is_some_and(|flow| flow.cnps > 0 && now.since(flow.last_cnp) < decision.spacing)
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
        let pairing = self.ledger.settle(index, now);
        let (Some(key), Some(flow)) = (self.ledger.flows.key(index), self.ledger.flows.get(index))
        else {
            return Err(Suppressed::Cold);
        };
        let end = flow
            .end
            .filter(|end| self.ledger.book.key(*end) == Some(key.key));
        let partner = end.and_then(|end| self.ledger.book.partner(end, now));
        let candidate = Candidate {
            ipv6: key.key.is_ipv6(),
            pairing,
            told: end.and_then(|end| self.ledger.book.end(end)?.told),
            passed: partner.and_then(|(partner, _)| self.ledger.book.end(partner)?.cnp_passed),
            unresponsive: flow.response.is_unresponsive(),
            trusted: flow.trusted,
            ingress: flow.ingress,
        };
        let admitted = self.planner.admit(&candidate, decision, now);
        if admitted == Err(Suppressed::Unpaired) && self.unpaired == Unpaired::None {
            self.ledger.tell(index, now + self.notified, now);
        }
        let (sender_qpn, evidence) = admitted?;
        let order = CnpOrder {
            flow: key.key,
            sender_qpn,
            evidence,
            ingress: candidate.ingress,
            egress: key.egress,
            priority: key.priority,
        };
        if let Err(reason) = out(order) {
            self.planner.give_back(&candidate);
            return Err(reason);
        }
        if let Some(state) = end.and_then(|end| self.ledger.book.end_mut(end)) {
            state.told = Some(now);
        }
        if let Some(flow) = self.ledger.flows.get_mut(index) {
            flow.cnps += 1;
            flow.last_cnp = now;
            flow.response.told(now, bytes);
        }
        self.ledger.tell(index, now + self.notified, now);
        self.ledger.flows.publish(index);
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

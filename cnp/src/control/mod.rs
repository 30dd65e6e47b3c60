//! The control core of one switch: in every call, from records and depths to CNPs.
//!
//! ```text
//!   records -> tracker (flows, ends)       depth (-> detector) -> policy -> decision
//!                      \                                                      |
//!                       contributors of the queue -> eligible ones -> round, heaviest first -> CNPs
//! ```
//! The policy `npcc` decides by what the detector reads. The default, `model`, decides by the depth, the drain rate, and the expected cuts of CNPs on
//! their way, without the detector; while it does not know the senders' rates, it falls back to `npcc`.
//!
//! One thread calls [`ControlCore::run_call_within`], at every tick and also between ticks; it allocates nothing and its work is bounded by the
//! configuration. Others read [`NpccStatus`] and [`FlowView`].

mod call;
pub mod command;
pub mod config;
mod drain_rate;
mod eligible;
mod guard;
mod heaviest;
mod log;
mod queue;
pub mod queue_state;
mod rate;
mod round;
pub mod settings;
mod signal;
mod trial;

use std::sync::Arc;

use npcc_pipeline::moved_hosts::MovedHosts;
use npcc_pipeline::units::Nanos;

use crate::admission::CnpCaps;
use crate::flow_cache::CacheReader;
use crate::log::DecisionLog;
use crate::responsiveness::trial::Trial;
use crate::status::NpccStatus;
use crate::table::{FlowView, RECENT};
use crate::tracker::FlowTracker;
use config::{ControlConfig, Settings};
use npcc_roce::key::QueueFlow;
use npcc_roce::source_check::Routes;
use queue::WatchedQueue;

/// The control core: queues, policies and the state of flows.
#[derive(Debug)]
pub struct ControlCore {
    tracker: FlowTracker,
    queues: Box<[WatchedQueue]>,
    caps: CnpCaps,
    /// Caps for CNPs that would be sent. They take nothing from those of CNPs that are.
    dry_run_caps: CnpCaps,
    status: Arc<NpccStatus>,
    contributors: Vec<(u64, u32)>,
    /// Number of contributors that this call may still refuse after a closer look.
    refusals: usize,
    tick: Nanos,
    period: Nanos,
    /// Time of the last full pass: a call that evaluated every queue that was due, and not only those of urgent policies.
    last_full_pass: Nanos,
    deadline: Nanos,
    /// Index of the queue that is evaluated first.
    first_queue: usize,
    /// Time to the next call, if that is less than a period.
    next_in: Option<Nanos>,
    /// True if strikes were owed in the last call: the next comes soon.
    strikes_owed: bool,
    /// Trial of a host that runs, and its flow.
    trial: Option<(QueueFlow, Trial)>,
    reads_per_tick: usize,
    cnps_per_tick: usize,
    moved: Arc<MovedHosts>,
}

impl ControlCore {
    /// Makes a control core without state. All memory is reserved here.
    #[must_use]
    pub fn new(config: &ControlConfig) -> ControlCore {
        ControlCore::logging(config, Default::default())
    }

    /// Makes a control core like [`ControlCore::new`], which writes CNPs and refusals into these logs.
    #[must_use]
    pub fn logging(config: &ControlConfig, logs: [DecisionLog; 2]) -> ControlCore {
        let settings = &config.settings;
        let queues: Box<[WatchedQueue]> = settings.queues.iter().map(WatchedQueue::new).collect();
        let intervals = queues.iter().filter_map(|queue| queue.policy.interval());
        let period = intervals.fold(config.tick, Nanos::min);
        let named = settings
            .queues
            .iter()
            .map(|queue| (queue.port, queue.priority, queue.policy.which()));
        let status = Arc::new(NpccStatus::new(named, logs));
        for (queue, shown) in queues.iter().zip(status.queues()) {
            shown.show_parameters(&queue.policy.parameters());
            shown.show_thresholds(queue.detector.config());
        }
        let core = ControlCore {
            tracker: FlowTracker::new(config, period, Arc::clone(&status)),
            queues,
            caps: CnpCaps::new(settings),
            dry_run_caps: CnpCaps::new(settings),
            status,
            contributors: Vec::with_capacity(config.flows.min(RECENT)),
            refusals: 0,
            reads_per_tick: config.reads_per_tick,
            tick: config.tick,
            period,
            last_full_pass: Nanos::ZERO,
            deadline: config.deadline.max(config.tick + config.tick),
            first_queue: 0,
            next_in: None,
            strikes_owed: false,
            trial: None,
            cnps_per_tick: config.cnps_per_tick.max(1),
            moved: Arc::new(MovedHosts::new(
                settings.hosts.unresponsive.priority().unwrap_or_default(),
            )),
        };
        core.show_actions();
        core
    }

    /// Touches all memory there will ever be, so that no tick takes a page fault. To be called before the first tick.
    pub fn touch_memory(&mut self) {
        self.tracker.touch_memory();
    }

    /// Attaches the control side of a worker's flow cache; returns `false` when there are 32 already.
    pub fn attach(&mut self, reader: CacheReader) -> bool {
        self.tracker.attach(reader)
    }

    /// Sets the routes that say behind which port sources lie, from the next tick on.
    pub fn know_routes(&mut self, routes: Box<dyn Routes>) {
        self.tracker.know_routes(routes);
    }

    /// Settings in force.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.tracker.settings
    }

    /// Table of moved hosts, which the workers read. Only the thread of this core may change it, and only while
    /// [`HostRules::unresponsive`](crate::host_rules::HostRules::unresponsive) names their queue.
    #[must_use]
    pub const fn moved_hosts(&self) -> &Arc<MovedHosts> {
        &self.moved
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

    /// Number of flows that contributed to a watched queue lately.
    #[cfg(test)]
    pub(crate) fn listed(&self, queue: usize) -> usize {
        self.tracker.listed(queue)
    }

    /// Number of flows of a watched queue that send.
    #[cfg(test)]
    pub(crate) fn active(&self, queue: usize) -> usize {
        self.tracker.active(queue)
    }

    /// Bytes a flow is estimated to have sent in the window that ends now.
    #[cfg(test)]
    pub(crate) fn in_window(&self, flow: u32, window: Nanos, now: Nanos) -> u64 {
        let flow = self.tracker.flows.get(flow);
        flow.map_or(0, |flow| flow.window.bytes(now, window))
    }

    /// Time from the last call of [`ControlCore::run_call`] to the next: that of the policy with the shortest interval, at most a
    /// tick; less while a policy is urgent.
    #[must_use]
    pub fn period(&self) -> Nanos {
        self.next_in.unwrap_or(self.period)
    }

    /// Time between two ticks.
    #[must_use]
    pub const fn tick_time(&self) -> Nanos {
        self.tick
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

#[cfg(test)]
#[cfg(not(loom))]
mod guard_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod moved_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod price_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod near_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod action_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod starve_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod deadline_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod pause_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod trial_tests;

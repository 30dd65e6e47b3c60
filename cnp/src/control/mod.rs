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
mod eligible;
mod guard;
mod heaviest;
pub mod level;
mod order;
mod queue;
mod round;
pub mod settings;
mod share;
mod tick;

use std::net::IpAddr;
use std::sync::Arc;

use arrayvec::ArrayVec;
use npcc_pipeline::units::{Nanos, PortId};

use crate::flow_cache::CacheReader;
use crate::log::DecisionLog;
use crate::plan::Planner;
use crate::source_check::Routes;
use crate::status::NpccStatus;
use crate::table::{FlowView, RECENT};
use crate::tracker::FlowTracker;
use config::{ControlConfig, Settings};
use queue::WatchedQueue;

/// Pairs of hosts remembered within a round.
const ALL_TOLD: usize = 16;

/// The control core: queues, policies and what is known of flows.
#[derive(Debug)]
pub struct ControlCore {
    tracker: FlowTracker,
    queues: Box<[WatchedQueue]>,
    planner: Planner,
    /// The caps of CNPs that would leave, where nothing does: they take nothing from those that do.
    would: Planner,
    status: Arc<NpccStatus>,
    contributors: Vec<(u64, u32)>,
    /// How many more contributors this call may refuse after a closer look.
    refusals: usize,
    /// Shortest time between two CNPs to a queue pair that is one of those that may be meant.
    among: Nanos,
    /// Senders and receivers of whom this round told every queue pair.
    all_told: ArrayVec<(IpAddr, IpAddr), ALL_TOLD>,
    tick: Nanos,
    period: Nanos,
    /// The last call that was not between two looks only.
    regular: Nanos,
    deadline: Nanos,
    /// The queue that is looked at first.
    first: usize,
    /// Time to the next call, when that is not a period.
    hurry: Option<Nanos>,
    /// Strikes were owed in the last call: the next comes soon.
    owing: bool,
    reads_per_tick: usize,
    orders_per_tick: usize,
}

impl ControlCore {
    /// A control core that has seen nothing. All memory is reserved here.
    #[must_use]
    pub fn new(config: &ControlConfig) -> ControlCore {
        ControlCore::logging(config, Default::default())
    }

    /// The same; CNPs and refusals are written into these logs.
    #[must_use]
    pub fn logging(config: &ControlConfig, logs: [DecisionLog; 2]) -> ControlCore {
        let settings = &config.settings;
        let queues: Box<[WatchedQueue]> = settings.queues.iter().map(WatchedQueue::new).collect();
        let looks = queues.iter().filter_map(|queue| queue.policy.look());
        let period = looks.fold(config.tick, Nanos::min);
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
            planner: Planner::new(settings),
            would: Planner::new(settings),
            status,
            contributors: Vec::with_capacity(config.flows.min(RECENT)),
            refusals: 0,
            among: settings.min_cnp_interval,
            all_told: ArrayVec::new(),
            reads_per_tick: config.reads_per_tick,
            tick: config.tick,
            period,
            regular: Nanos::ZERO,
            deadline: config.deadline.max(config.tick + config.tick),
            first: 0,
            hurry: None,
            owing: false,
            orders_per_tick: config.orders_per_tick.max(1),
        };
        core.show_actions();
        core
    }

    /// Before a tick: takes the bytes that have come by each port in all, of whatever class. A sender is judged by what it does after its
    /// CNPs, and what shares a full link with others may do it unseen.
    pub fn count_arrivals(&mut self, now: Nanos, total: impl Fn(PortId) -> u64) {
        self.tracker.arrivals.count(now, total);
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

    /// Settings in force.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.tracker.settings
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

    /// Flows of a watched queue that send.
    #[cfg(test)]
    pub(crate) fn active(&self, queue: usize) -> usize {
        self.tracker.active(queue)
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
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

#[cfg(test)]
#[cfg(not(loom))]
mod guard_tests;

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

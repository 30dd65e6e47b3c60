//! Status of NPCC for its viewers: counters and gauges written by the control core alone, read by any thread.

mod queue;

use npcc_pipeline::counters;
use npcc_pipeline::counters::{ByName, Counter, Gauge};
use npcc_pipeline::units::{MAX_PORTS, PortId, Priority};

use crate::admission::Suppressed;
use crate::hosts::HostView;
use crate::log::DecisionLog;
use crate::policy::PolicyName;
use crate::responsiveness::HostVerdictView;
use crate::uncounted::{Uncounted, UncountedCounters};
use npcc_roce::pair::Evidence;
use npcc_roce::pair::foreign::view::PeerView;
use queue::BY_REASON;
pub use queue::{ActionGauge, QueueStatus, Row, WatchedCount, WatchedCounters, ZoneRow};

counters! {
    /// Counters of the connection manager's messages.
    pub struct CmCounters => CmCount {
        /// QP1 packets seen.
        heard: Counter => metric("npcc_cm_packets").tag("kind", "heard")
            .help("Packets of the connection manager: heard; of these damaged, of a foreign class, or lost for want of room (dropped)."),
        /// QP1 packets with a wrong ICRC: nothing was learned from them.
        damaged: Counter => metric("npcc_cm_packets").tag("kind", "damaged"),
        /// QP1 packets of another class than connection management.
        foreign: Counter => metric("npcc_cm_packets").tag("kind", "foreign"),
        /// Connections that made room for others: requests not granted, and idle ones.
        displaced: Counter => no_metric(),
        /// Pairs taken back because something spoke against them.
        contradicted: Counter => metric("npcc_contradicted_pairs"),
    }
}

counters! {
    /// Counters of NPCC on one switch, except those of its watched queues.
    pub struct NpccCounters => NpccCount {
        /// Calls of the control core: at every tick, and for policies that evaluate between two ticks.
        ticks: Counter => metric("npcc_ticks"),
        /// Calls of the control core that had no time left for a queue that was due, which then came first in the next.
        queues_deferred: Counter => no_metric(),
        /// Records processed.
        #[serde(skip)] records: Counter => no_metric(),
        /// Packets of ports that are not trusted: nothing was learned from them.
        untrusted: Counter => metric("npcc_untrusted_packets"),
        /// Packets whose source does not lie behind the port they came by: nothing was learned from them.
        wrong_port: Counter => metric("npcc_wrong_port_packets"),
        /// New endpoints, REQ and REP refused because their source began too many; the report adds them to the flows refused.
        #[serde(skip)] rate_limited: Counter => no_metric(),
        /// Contributors without an entry in the flow table.
        uncounted: ByName<Uncounted, UncountedCounters, { Uncounted::COUNT }> => nested().by(BY_REASON),
        /// Flows known.
        flows: Gauge => metric("npcc_flows"),
        /// New flows refused: their source had too many, or the table was full of live ones.
        flows_refused: Counter => metric("npcc_flows_refused"),
        /// Idle flows that made room for others.
        #[serde(skip)] flows_displaced: Counter => no_metric(),
        /// Endpoints in the table of connections.
        #[serde(skip)] ends: Gauge => no_metric(),
        /// Endpoints refused because every other was in use.
        #[serde(skip)] ends_refused: Gauge => no_metric(),
        /// Idle endpoints that made room for others, those not paired first, then the pairs longest unused.
        #[serde(skip)] ends_displaced: Gauge => no_metric(),
        /// Flows whose bytes were read from a worker.
        flows_read: Counter => no_metric(),
        /// Flows that send again after a pause.
        flows_woken: Counter => no_metric(),
        /// Reports of waking flows that were overwritten before they were read: the flows are found by the slow round of readings.
        wakes_lost: Counter => no_metric(),
        /// Flows weighed as contributors of a decision.
        flows_weighed: Counter => no_metric(),
        /// Flows by the evidence for their sender's queue pair.
        paired: ByName<Evidence, Gauge, { Evidence::COUNT }> => metric("npcc_flows_by_evidence").by(&[("evidence", &[])]),
        /// Wire bytes of data in watched queues.
        #[serde(skip)] data_bytes: Counter => metric("npcc_data_bytes"),
        /// Wire bytes of data from flows that nobody could tell yet, as no packet came back.
        cold_bytes: Counter => metric("npcc_cold_bytes"),
        /// Wire bytes of data from flows that are answered but below the configured evidence; their share is reported.
        #[serde(skip)] unpaired_bytes: Counter => no_metric(),
        /// CNPs of receivers that passed through.
        cnps_passed: Counter => metric("npcc_cnps_passed"),
        /// CNPs that passed without BECN.
        cnps_damaged: Counter => metric("npcc_cnps_damaged"),
        /// The connection manager's messages.
        cm: CmCounters => nested(),
    }
}

/// Status of NPCC on one switch.
#[derive(Debug, Default, derive_more::Deref)]
pub struct NpccStatus {
    queues: Box<[QueueStatus]>,
    /// Counters not of a queue.
    #[deref]
    pub counts: NpccCounters,
    /// Wire bytes of contributors without an entry in the flow table, by ingress port.
    pub(crate) uncounted_ports: [Counter; MAX_PORTS],
    /// Log of the last CNPs, sent and would-be, with their reasons.
    pub log: DecisionLog,
    /// Log of flows that were refused a CNP lately, with the reason: a flow is logged again when the reason changed or 10 ms have passed.
    pub refusals: DecisionLog,
    /// Action on decisions of the whole switch.
    pub action: ActionGauge,
    /// Counters per host.
    pub hosts: HostView,
    /// Responsiveness of hosts to CNPs.
    pub verdicts: HostVerdictView,
    /// Counters of peers that report ends.
    pub peers: PeerView,
}

impl NpccStatus {
    pub(crate) fn new(
        queues: impl Iterator<Item = (PortId, Priority, PolicyName)>,
        [log, refusals]: [DecisionLog; 2],
    ) -> NpccStatus {
        NpccStatus {
            queues: queues
                .map(|(port, priority, policy)| QueueStatus::new(port, priority, policy))
                .collect(),
            log,
            refusals,
            ..NpccStatus::default()
        }
    }

    /// Watched queues, in the order of the configuration.
    #[must_use]
    pub fn queues(&self) -> &[QueueStatus] {
        &self.queues
    }

    /// Wire bytes of contributors without an entry in the flow table that came in by this port, whatever the reason.
    #[must_use]
    pub fn uncounted_bytes_by(&self, port: PortId) -> u64 {
        self.uncounted_ports
            .get(port.index())
            .map_or(0, Counter::get)
    }

    /// Number of flows known by this evidence.
    #[must_use]
    pub fn paired(&self, evidence: Evidence) -> &Gauge {
        evidence.pick(&self.paired)
    }

    /// Number of CNPs that would have left, where nothing is sent, over all queues.
    #[must_use]
    pub fn would_send(&self) -> u64 {
        self.queues.iter().map(|queue| queue.would_send.get()).sum()
    }

    /// Number of CNPs given to workers, over all queues.
    #[must_use]
    pub fn cnps_sent(&self) -> u64 {
        self.queues.iter().map(|queue| queue.cnps.get()).sum()
    }

    /// Number of contributors not signalled for this reason, over all queues.
    #[must_use]
    pub fn cnps_suppressed(&self, reason: Suppressed) -> u64 {
        self.queues
            .iter()
            .map(|queue| queue.suppressed(reason).get())
            .sum()
    }
}

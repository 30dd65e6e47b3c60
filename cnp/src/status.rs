//! Status of NPCC for its viewers: counters and gauges written by the control core alone, read by any thread.

use npcc_pipeline::counters::{ByName, Counter, Gauge, Label};
use npcc_pipeline::named::Named;
use npcc_pipeline::units::{MAX_PORTS, PortId, Priority};
use npcc_pipeline::{counters, named};

use crate::action::Action;
use crate::detector::{DetectorConfig, Reading, Trend, Zone};
use crate::host_response::HostResponseView;
use crate::hosts::HostView;
use crate::log::DecisionLog;
use crate::pair::Evidence;
use crate::plan::Suppressed;
use crate::policy::{Amount, Decision, PARAMETERS, Parameters, PolicyKind, PolicyName, Reason};
use crate::uncounted::{Uncounted, UncountedCounters};

named! {
    /// A row of the detector's table.
    pub enum Row {
        /// The depth rises.
        Rising = "rising",
        /// The depth falls.
        Falling = "falling",
        /// The rise into the zone may be jitter.
        Jitter = "jitter",
    }
}

impl Row {
    /// Row of a reading.
    #[must_use]
    pub fn of(reading: &Reading) -> Row {
        match reading.trend {
            _ if reading.is_jitter() => Row::Jitter,
            Trend::Rising => Row::Rising,
            Trend::Falling => Row::Falling,
        }
    }
}

/// Value of a gauge as an index.
fn index_of(gauge: &Gauge) -> Option<usize> {
    usize::try_from(gauge.get()).ok()
}

/// A cell of the detector's table: zone, then row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneRow {}

impl Named for ZoneRow {
    const NAMES: &'static [&'static str] = &[
        "idle-rising",
        "idle-falling",
        "idle-jitter",
        "shallow-rising",
        "shallow-falling",
        "shallow-jitter",
        "deep-rising",
        "deep-falling",
        "deep-jitter",
        "hard-rising",
        "hard-falling",
        "hard-jitter",
    ];
}

/// Label with one value for each reason.
const BY_REASON: &[Label] = &[("reason", &[])];

counters! {
    /// Counters of a watched queue.
    pub struct WatchedCounters => WatchedCount {
        /// Looks at which another policy answered than the one in the slot.
        #[serde(rename = "policy_fallbacks")] fallbacks: Counter => metric("npcc_watched_queue_policy_fallbacks").kept("policy_fallbacks"),
        /// Wire bytes that the detector saw last, with what is outstanding in the device.
        depth: Gauge => metric("npcc_watched_queue_depth_bytes").column("DEPTH"),
        /// Most wire bytes that the detector saw.
        peak: Gauge => metric("npcc_watched_queue_peak_bytes").column("PEAK"),
        /// Flows that put bytes into the watched queue, at the last decision.
        contributors: Gauge => metric("npcc_watched_queue_contributors"),
        /// Wire bytes from which the queue is shallow.
        shallow: Gauge => metric("npcc_watched_queue_threshold_bytes").tag("zone", "shallow").help("Depths from which the watched queue is shallow, deep and hard."),
        /// Wire bytes from which it is deep.
        deep: Gauge => metric("npcc_watched_queue_threshold_bytes").tag("zone", "deep"),
        /// Wire bytes from which no filter applies.
        hard: Gauge => metric("npcc_watched_queue_threshold_bytes").tag("zone", "hard"),
        /// Ticks of the detector, by the zone it found and by what the depth did: two labels of one metric, which the scrape makes of the name.
        decisions: ByName<ZoneRow, Counter, { Zone::COUNT * Row::COUNT }> => no_metric(),
        /// Looks of the policy per amount decided, after the policy's pauses.
        #[serde(skip)] amounts: [Counter; Amount::COUNT] => no_metric(),
        /// Looks of the policy at the watched queue, by the reason it gave.
        reasons: ByName<Reason, Counter, { Reason::COUNT }> => metric("npcc_watched_queue_reasons").by(BY_REASON),
        /// Strikes owed to a sender that were sent as a CNP.
        marks_paid: Counter => metric("npcc_watched_queue_marks").tag("kind", "paid").help("Strikes of the watched queue that were owed to a sender, by what became of them."),
        /// Merged with a CNP, ours or the receiver's, that the sender got less than the receiver's interval (in a pause's backlog also
        /// `min_cnp_interval`) before.
        marks_merged: Counter => metric("npcc_watched_queue_marks").tag("kind", "merged"),
        /// Returned, to be written as CE on the flow's next frame.
        marks_returned: Counter => metric("npcc_watched_queue_marks").tag("kind", "returned"),
        /// Dropped, as their flow is gone.
        marks_forgotten: Counter => metric("npcc_watched_queue_marks").tag("kind", "forgotten"),
        /// CNPs given to a worker for flows of the watched queue.
        cnps: Counter => metric("npcc_cnps_sent").column("CNPS"),
        /// CNPs that would have left for flows of the watched queue, where nothing is sent.
        would_send: Counter => metric("npcc_cnps_would_send").column("WOULD"),
        /// CNPs not sent for flows of the watched queue, by reason.
        suppressed: ByName<Suppressed, Counter, { Suppressed::COUNT }> => metric("npcc_cnps_suppressed").by(BY_REASON),
    }
}

/// Status of one watched queue.
#[derive(Debug, Default, derive_more::Deref)]
pub struct QueueStatus {
    /// Port of the egress queue.
    pub port: PortId,
    /// Priority of the queue.
    pub priority: Priority,
    /// Policy the queue was started with.
    pub policy: PolicyName,
    /// Index, plus one, of the policy that it was given since; 0 for none.
    changed_policy: Gauge,
    /// Values of the policy's parameters, in the order of its parameters.
    parameters: [Gauge; PARAMETERS],
    /// Gauge that is 1 if another law decided in the policy's stead at the last look, else 0.
    fell_back: Gauge,
    zone: Gauge,
    trend: Gauge,
    /// Action on decisions: the weaker of the switch's and the queue's own.
    action: Gauge,
    /// Counters of the queue.
    #[deref]
    pub counts: WatchedCounters,
}

impl QueueStatus {
    fn new(port: PortId, priority: Priority, policy: PolicyName) -> QueueStatus {
        QueueStatus {
            port,
            priority,
            policy,
            ..QueueStatus::default()
        }
    }

    pub(crate) fn observed(&self, reading: &Reading) {
        self.depth.set(reading.depth);
        self.peak.raise(reading.depth);
        self.zone.set(reading.zone as u64);
        self.trend.set(reading.trend as u64);
        self.cell(reading.zone, Row::of(reading)).add(1);
    }

    pub(crate) fn noted(&self, decision: &Decision) {
        self.reason(decision.reason).add(1);
        self.decided(decision.amount).add(1);
    }

    pub(crate) fn change_policy(&self, kind: PolicyKind) {
        self.changed_policy.set(kind.which().index() as u64 + 1);
    }

    pub(crate) fn show_parameters(&self, parameters: &Parameters) {
        for (gauge, parameter) in self.parameters.iter().zip(parameters) {
            gauge.set(parameter.value);
        }
    }

    pub(crate) fn show_thresholds(&self, config: &DetectorConfig) {
        self.shallow.set(config.shallow);
        self.deep.set(config.deep);
        self.hard.set(config.hard);
    }

    /// Thresholds in wire bytes from which the queue is shallow, deep and hard at this moment.
    #[must_use]
    pub fn thresholds(&self) -> [u64; 3] {
        [&self.shallow, &self.deep, &self.hard].map(Gauge::get)
    }

    /// Records if the fallback decided at this look.
    pub(crate) fn answered(&self, fell_back: bool) {
        self.fell_back.set(u64::from(fell_back));
        if fell_back {
            self.fallbacks.add(1);
        }
    }

    /// Returns true if at the last look the table decided instead of the policy in the slot, because rates were not known.
    #[must_use]
    pub fn fell_back(&self) -> bool {
        self.fell_back.get() != 0
    }

    /// Parameters of the policy in the slot, with their values at this moment.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        let mut parameters = self.policy_now().defaults().slot().parameters();
        for (parameter, gauge) in parameters.iter_mut().zip(&self.parameters) {
            parameter.value = gauge.get();
        }
        parameters
    }

    /// Policy in the slot at this moment.
    #[must_use]
    pub fn policy_now(&self) -> PolicyName {
        let given = index_of(&self.changed_policy).and_then(|given| given.checked_sub(1));
        given
            .and_then(PolicyName::from_index)
            .unwrap_or(self.policy)
    }

    pub(crate) fn acts(&self, action: Action) {
        self.action.set(action as u64);
    }

    /// Action on decisions about the queue: the weaker of the switch's and the queue's own.
    #[must_use]
    pub fn action(&self) -> Action {
        index_of(&self.action)
            .and_then(Action::from_index)
            .unwrap_or_default()
    }

    pub(crate) fn suppress(&self, reason: Suppressed) {
        self.suppressed(reason).add(1);
    }

    /// Zone at the last tick.
    #[must_use]
    pub fn zone(&self) -> Zone {
        index_of(&self.zone)
            .and_then(Zone::from_index)
            .unwrap_or_default()
    }

    /// Trend at the last tick.
    #[must_use]
    pub fn trend(&self) -> Trend {
        index_of(&self.trend)
            .and_then(Trend::from_index)
            .unwrap_or_default()
    }

    /// Number of ticks spent in a cell of the table.
    #[must_use]
    pub fn cell(&self, zone: Zone, row: Row) -> &Counter {
        let (rows, _) = self.decisions.as_chunks();
        rows.get(zone.index())
            .map_or(&self.cnps, |rows| row.pick(rows))
    }

    /// Number of ticks that ended in this amount.
    #[must_use]
    pub fn decided(&self, amount: Amount) -> &Counter {
        amount.pick(&self.amounts)
    }

    /// Number of looks at which the policy gave this reason.
    #[must_use]
    pub fn reason(&self, reason: Reason) -> &Counter {
        reason.pick(&self.reasons)
    }

    /// Number of contributors not signalled for this reason.
    #[must_use]
    pub fn suppressed(&self, reason: Suppressed) -> &Counter {
        reason.pick(&self.suppressed)
    }
}

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
        /// Pairs taken back because something spoke against them.
        contradicted: Counter => metric("npcc_contradicted_pairs"),
    }
}

counters! {
    /// Counters of NPCC on one switch, except those of its watched queues.
    pub struct NpccCounters => NpccCount {
        /// Turns of the control core: ticks, and looks of policies between two ticks.
        ticks: Counter => metric("npcc_ticks"),
        /// Turns of the control core that had no time left for a queue that was due, which then came first in the next.
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
    action: Gauge,
    /// Counters per host.
    pub hosts: HostView,
    /// Responsiveness of hosts to CNPs.
    pub responses: HostResponseView,
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

    pub(crate) fn acts(&self, action: Action) {
        self.action.set(action as u64);
    }

    /// Action on decisions of the whole switch.
    #[must_use]
    pub fn action(&self) -> Action {
        index_of(&self.action)
            .and_then(Action::from_index)
            .unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_the_table_is_named_by_its_zone_and_its_row() {
        let zones =
            Zone::ALL.map(|zone| Row::ALL.map(|row| format!("{}-{}", zone.name(), row.name())));
        assert_eq!(zones.concat(), ZoneRow::NAMES);
        let queue = QueueStatus::default();
        queue.cell(Zone::Deep, Row::Falling).add(1);
        assert_eq!(
            queue.decisions.named("deep-falling").map(Counter::get),
            Some(1)
        );
    }
}

//! What NPCC does, for whoever shows it: counters and gauges written by the control core alone, read by anybody.

use npcc_pipeline::counters::{Counter, Gauge};
use npcc_pipeline::named;
use npcc_pipeline::units::{PortId, Priority};

use crate::action::Action;
use crate::detector::{DetectorConfig, Reading, Trend, Zone};
use crate::host_response::HostResponseView;
use crate::hosts::HostView;
use crate::log::DecisionLog;
use crate::pair::Evidence;
use crate::plan::Suppressed;
use crate::policy::{Amount, Decision, PARAMETERS, Parameters, PolicyKind, PolicyName, Reason};
use crate::uncounted::UncountedStatus;

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
    /// The row of a reading.
    #[must_use]
    pub fn of(reading: &Reading) -> Row {
        match reading.trend {
            _ if reading.is_jitter() => Row::Jitter,
            Trend::Rising => Row::Rising,
            Trend::Falling => Row::Falling,
        }
    }
}

/// A gauge as an index.
fn index_of(gauge: &Gauge) -> Option<usize> {
    usize::try_from(gauge.get()).ok()
}

/// One watched queue.
#[derive(Debug, Default)]
pub struct QueueStatus {
    /// The port whose egress queue it is.
    pub port: PortId,
    /// Which.
    pub priority: Priority,
    /// The policy it was started with.
    pub policy: PolicyName,
    /// One more than the index of the policy it was given since; 0 for none.
    changed_policy: Gauge,
    /// Values of the policy's parameters, in the order of its parameters.
    parameters: [Gauge; PARAMETERS],
    /// Whether another law answered in the policy's stead at the last look.
    fell_back: Gauge,
    /// Looks at which it did.
    pub fallbacks: Counter,
    /// Wire bytes at the last tick.
    pub depth: Gauge,
    /// Most bytes at any tick.
    pub peak: Gauge,
    /// Flows that put bytes in over the window, at the last decision.
    pub contributors: Gauge,
    zone: Gauge,
    trend: Gauge,
    /// Depths from which the queue is shallow, deep and hard.
    thresholds: [Gauge; 3],
    /// Ticks per cell: zone, then row.
    cells: [[Counter; Row::COUNT]; Zone::COUNT],
    /// Ticks per amount decided, after the policy's pauses.
    amounts: [Counter; Amount::COUNT],
    /// Looks per reason of the policy.
    reasons: [Counter; Reason::COUNT],
    /// CNPs that left.
    pub cnps: Counter,
    /// CNPs that would have left, where nothing is sent.
    pub would_send: Counter,
    /// What becomes of decisions: the least of the switch's action and its own.
    action: Gauge,
    suppressed: [Counter; Suppressed::COUNT],
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
        let all = [config.shallow, config.deep, config.hard];
        for (gauge, bytes) in self.thresholds.iter().zip(all) {
            gauge.set(bytes);
        }
    }

    /// Wire bytes from which the queue is shallow, deep and hard at this moment.
    #[must_use]
    pub fn thresholds(&self) -> [u64; 3] {
        self.thresholds.each_ref().map(Gauge::get)
    }

    /// Notes who answered at this look.
    pub(crate) fn answered(&self, fell_back: bool) {
        self.fell_back.set(u64::from(fell_back));
        if fell_back {
            self.fallbacks.add(1);
        }
    }

    /// Whether at the last look the table answered instead of the policy in the slot, because rates were not known.
    #[must_use]
    pub fn fell_back(&self) -> bool {
        self.fell_back.get() != 0
    }

    /// The parameters of the policy in its slot, with the values of this moment.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        let mut parameters = self.policy_now().defaults().slot().parameters();
        for (parameter, gauge) in parameters.iter_mut().zip(&self.parameters) {
            parameter.value = gauge.get();
        }
        parameters
    }

    /// The policy in its slot at this moment.
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

    /// What becomes of decisions about the queue: the least of the switch's action and its own.
    #[must_use]
    pub fn action(&self) -> Action {
        index_of(&self.action)
            .and_then(Action::from_index)
            .unwrap_or_default()
    }

    pub(crate) fn suppress(&self, reason: Suppressed) {
        self.suppressed(reason).add(1);
    }

    /// The zone at the last tick.
    #[must_use]
    pub fn zone(&self) -> Zone {
        index_of(&self.zone)
            .and_then(Zone::from_index)
            .unwrap_or_default()
    }

    /// The trend at the last tick.
    #[must_use]
    pub fn trend(&self) -> Trend {
        index_of(&self.trend)
            .and_then(Trend::from_index)
            .unwrap_or_default()
    }

    /// Ticks spent in a cell of the table.
    #[must_use]
    pub fn cell(&self, zone: Zone, row: Row) -> &Counter {
        row.pick(zone.pick(&self.cells))
    }

    /// Ticks that ended in this amount.
    #[must_use]
    pub fn decided(&self, amount: Amount) -> &Counter {
        amount.pick(&self.amounts)
    }

    /// Looks at which the policy gave this reason.
    #[must_use]
    pub fn reason(&self, reason: Reason) -> &Counter {
        reason.pick(&self.reasons)
    }

    /// Contributors not signalled for this reason.
    #[must_use]
    pub fn suppressed(&self, reason: Suppressed) -> &Counter {
        reason.pick(&self.suppressed)
    }
}

/// What the connection manager's messages came to.
#[derive(Debug, Default)]
pub struct CmStatus {
    /// QP1 packets seen.
    pub heard: Counter,
    /// QP1 packets with a wrong ICRC: nothing was learned from them.
    pub damaged: Counter,
    /// QP1 packets of another class than connection management.
    pub foreign: Counter,
    /// Pairs taken back because something spoke against them.
    pub contradicted: Gauge,
}

/// The whole of NPCC on one switch.
#[derive(Debug, Default)]
pub struct NpccStatus {
    queues: Box<[QueueStatus]>,
    /// Ticks done.
    pub ticks: Counter,
    /// Ticks that had no time left for a queue that was due, which then came first in the next.
    pub queues_deferred: Counter,
    /// Records taken in.
    pub records: Counter,
    /// Records and QP1 packets from ports that are not trusted: nothing was learned from them.
    pub untrusted: Counter,
    /// Records and QP1 packets from sources that do not lie behind the port they came by: nothing was learned from them.
    pub wrong_port: Counter,
    /// New ends, REQ and REP refused because their source began too many.
    pub rate_limited: Counter,
    /// Contributors without an entry in the flow table.
    pub uncounted: UncountedStatus,
    /// Flows in the table.
    pub flows: Gauge,
    /// New flows refused because every other was in use.
    pub flows_refused: Counter,
    /// Idle flows that made room for others.
    pub flows_displaced: Counter,
    /// Ends in the table of connections.
    pub ends: Gauge,
    /// Ends refused because every other was in use.
    pub ends_refused: Gauge,
    /// Idle ends that made room for others, those not paired first, then the pairs longest unused.
    pub ends_displaced: Gauge,
    /// Flows whose bytes were read from a worker.
    pub flows_read: Counter,
    /// Flows that send again after a pause.
    pub flows_woken: Counter,
    /// Flows of which a worker said so too long ago: they are found by the slow round of readings.
    pub wakes_lost: Counter,
    /// Flows weighed as contributors of a decision.
    pub flows_weighed: Counter,
    paired: [Gauge; Evidence::COUNT],
    /// Wire bytes of data in watched queues.
    pub data_bytes: Counter,
    /// Wire bytes of data from flows nobody has answered yet.
    pub cold_bytes: Counter,
    /// Wire bytes of data from flows that are answered but below the configured evidence.
    pub unpaired_bytes: Counter,
    /// CNPs of receivers that passed through.
    pub cnps_passed: Counter,
    /// CNPs that passed with a wrong ICRC or without BECN: their senders ignore them, and so does NPCC.
    pub cnps_damaged: Counter,
    /// The connection manager's messages.
    pub cm: CmStatus,
    /// The last CNPs, sent and would-be, and why.
    pub log: DecisionLog,
    /// Flows that were refused a CNP lately, and why: a flow again when the reason changed or 10 ms have passed.
    pub refusals: DecisionLog,
    action: Gauge,
    /// Counts per host.
    pub hosts: HostView,
    /// How hosts answer CNPs.
    pub responses: HostResponseView,
}

impl NpccStatus {
    pub(crate) fn new(queues: impl Iterator<Item = (PortId, Priority, PolicyName)>) -> NpccStatus {
        NpccStatus {
            queues: queues
                .map(|(port, priority, policy)| QueueStatus::new(port, priority, policy))
                .collect(),
            ..NpccStatus::default()
        }
    }

    /// Watched queues, in the order of the configuration.
    #[must_use]
    pub fn queues(&self) -> &[QueueStatus] {
        &self.queues
    }

    /// Flows known by this evidence.
    #[must_use]
    pub fn paired(&self, evidence: Evidence) -> &Gauge {
        evidence.pick(&self.paired)
    }

    pub(crate) fn acts(&self, action: Action) {
        self.action.set(action as u64);
    }

    /// What becomes of decisions on the whole switch.
    #[must_use]
    pub fn action(&self) -> Action {
        index_of(&self.action)
            .and_then(Action::from_index)
            .unwrap_or_default()
    }

    /// CNPs that would have left, where nothing is sent, over all queues.
    #[must_use]
    pub fn would_send(&self) -> u64 {
        self.queues.iter().map(|queue| queue.would_send.get()).sum()
    }

    /// CNPs that left, over all queues.
    #[must_use]
    pub fn cnps_sent(&self) -> u64 {
        self.queues.iter().map(|queue| queue.cnps.get()).sum()
    }

    /// Contributors not signalled for this reason, over all queues.
    #[must_use]
    pub fn cnps_suppressed(&self, reason: Suppressed) -> u64 {
        self.queues
            .iter()
            .map(|queue| queue.suppressed(reason).get())
            .sum()
    }
}

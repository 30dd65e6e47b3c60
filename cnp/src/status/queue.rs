//! Status of one watched queue.

use npcc_pipeline::counters::{ByName, Counter, Gauge, Label};
use npcc_pipeline::named::Named;
use npcc_pipeline::units::{PortId, Priority};
use npcc_pipeline::{counters, named};

use crate::action::Action;
use crate::admission::Suppressed;
use crate::detector::{DetectorConfig, Reading, Trend, Zone};
use crate::policy::{Amount, Decision, PARAMETERS, Parameters, PolicyKind, PolicyName, Reason};

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

/// Action in force, for readers on other threads.
#[derive(Debug, Default)]
pub struct ActionGauge(Gauge);

impl ActionGauge {
    pub(crate) fn set(&self, action: Action) {
        self.0.set(action as u64);
    }

    /// Returns the action that was set last.
    #[must_use]
    pub fn get(&self) -> Action {
        let action = index_of(&self.0).and_then(Action::from_index);
        action.unwrap_or_default()
    }
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
pub(super) const BY_REASON: &[Label] = &[("reason", &[])];

counters! {
    /// Counters of a watched queue.
    pub struct WatchedCounters => WatchedCount {
        /// Evaluations of the watched queue in which another policy decided than the configured one.
        #[serde(rename = "policy_fallbacks")] fallbacks: Counter => metric("npcc_watched_queue_policy_fallbacks").kept("policy_fallbacks"),
        /// Wire bytes in the queue that the detector saw last; those in the device are not among them.
        depth: Gauge => metric("npcc_watched_queue_depth_bytes").column("DEPTH B"),
        /// Most wire bytes that the detector saw.
        peak: Gauge => metric("npcc_watched_queue_peak_bytes").column("PEAK B"),
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
        /// Evaluations by the policy, by the amount decided after its pauses.
        #[serde(skip)] amounts: [Counter; Amount::COUNT] => no_metric(),
        /// Evaluations of the watched queue by its policy, by reason.
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
    /// Gauge that is 1 if another law decided in the policy's stead at the last evaluation, else 0.
    fell_back: Gauge,
    zone: Gauge,
    trend: Gauge,
    /// Action on decisions about the queue: the weaker of the switch's and the queue's own.
    pub action: ActionGauge,
    /// Counters of the queue.
    #[deref]
    pub counts: WatchedCounters,
}

impl QueueStatus {
    pub(super) fn new(port: PortId, priority: Priority, policy: PolicyName) -> QueueStatus {
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
    pub(crate) fn record_fallback(&self, fell_back: bool) {
        self.fell_back.set(u64::from(fell_back));
        if fell_back {
            self.fallbacks.add(1);
        }
    }

    /// Returns true if at the last evaluation the table decided instead of the policy in the slot, because rates were not known.
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

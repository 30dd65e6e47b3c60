//! Settings of NPCC that may change while it runs.
//!
//! The configuration makes one [`Settings`], the control core holds one, and
//! [`ControlCommand::Configure`](super::command::ControlCommand::Configure) replaces it as a whole. Values fixed at the start are in
//! [`ControlConfig`](super::config::ControlConfig), around it.

pub use npcc_pipeline::egress::marking::EcnMode;
use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

use crate::action::Action;
use crate::defaults;
use crate::detector::DetectorConfig;
use crate::host_rules::HostRules;
use crate::policy::PolicyKind;
use npcc_roce::key::FlowKey;
use npcc_roce::pair::Evidence;
use npcc_roce::source_check::{ANYWHERE, Sides};

/// Settings of one watched queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchedQueueConfig {
    /// Port of the egress queue.
    pub port: PortId,
    /// Priority of the queue.
    pub priority: Priority,
    /// Action for decisions about this queue; [`Settings::action`] can only hold back more.
    pub action: Action,
    /// Thresholds, filter, tick.
    pub detector: DetectorConfig,
    /// Policy of the queue, with its parameters.
    pub policy: PolicyKind,
}

impl WatchedQueueConfig {
    /// Settings of a queue whose CNPs leave (action `send`).
    #[must_use]
    pub const fn new(
        (port, priority): (PortId, Priority),
        detector: DetectorConfig,
        policy: PolicyKind,
    ) -> WatchedQueueConfig {
        WatchedQueueConfig {
            port,
            priority,
            action: Action::Send,
            detector,
            policy,
        }
    }

    /// Port and priority of the queue.
    #[must_use]
    pub const fn place(&self) -> (PortId, Priority) {
        (self.port, self.priority)
    }
}

/// Treatment of flows whose receiver is so near that nothing is won by signalling their sender from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Gate {
    /// They are left to ECN while the round trip to the receiver is below four times that to the sender, which is taken as one to ten times `feedback`.
    #[default]
    Auto,
    /// They are treated as all others.
    Off,
}

/// Ratio of the round trip to the receiver to that to the sender from which a flow is signalled from here.
const GAIN: u64 = 4;

impl Gate {
    /// Returns true if a flow with these times is left to ECN: `near` is limited as by `DcqcnModel::bounded_rtt`. A far side that was not measured counts
    /// as far.
    pub(crate) const fn holds(self, near: Nanos, far: Option<Nanos>) -> bool {
        match (self, far) {
            (Gate::Auto, Some(far)) => far.0 < near.0.saturating_mul(GAIN),
            (Gate::Auto, None) | (Gate::Off, _) => false,
        }
    }
}

npcc_pipeline::defaults! {
    /// All settings of NPCC that may change while it runs.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Settings {
        /// Watched queues, at most 255. The set is fixed at the start; a queue that is left out of later settings is off.
        pub queues: Vec<WatchedQueueConfig> = Vec::new(),
        /// Action for decisions of the whole switch.
        pub action: Action = Action::default(),
        /// Hosts that may be signalled, are only observed, or are known to answer (default: all may be signalled).
        pub hosts: HostRules = HostRules::default(),
        /// Wire rates of all ports by index, 0 for no limit: CNPs leaving by a port take at most `cap` of it. A port beyond the
        /// end of the list gets no CNPs. The length of the list is fixed at the start.
        pub port_rates: Vec<BitRate> = Vec::new(),
        /// Share of a port's rate that CNPs may take, in thousandths.
        pub cap: u16 = defaults::CAP,
        /// Cap on CNPs per second of the whole switch.
        pub cap_per_second: u64 = defaults::CAP_PER_SECOND.into(),
        /// Evidence a sender must be known by to be signalled; flows below it keep ordinary ECN marking.
        pub evidence: Evidence = defaults::EVIDENCE,
        /// Interaction of ECN marks with CNPs.
        pub ecn: EcnMode = EcnMode::default(),
        /// Wire bytes that a flow with all of the drain rate must put into a queue between two CNPs to its sender; a slower flow puts its share of
        /// them.
        pub earned: u64 = defaults::EARNED,
        /// Shortest time between two CNPs that stand for marks, as the receiver's network card keeps it; receivers in
        /// [`HostRules::cnp_intervals`] have their own.
        pub cnp_interval: Nanos = defaults::NIC_MIN_CNP_INTERVAL,
        /// Treatment of flows whose receiver is near.
        pub gate: Gate = Gate::default(),
        /// Time from a CNP to its effect in the queue, until learned.
        pub feedback: Nanos = defaults::FEEDBACK,
        /// Shortest time between two CNPs to one flow in rounds of few and, while the backlog of a pause waits, for marks.
        pub min_cnp_interval: Nanos = defaults::MIN_CNP_INTERVAL,
        /// Ports whose packets are believed, as a port set (default all).
        pub trusted_ports: u32 = u32::MAX,
        /// Interfaces by port behind which the sources of its packets must lie for the packets to be believed (default anywhere). The routes that
        /// [`super::ControlCore::know_routes`] was given say where sources lie.
        pub source_sides: Sides = ANYWHERE,
    }
}

impl Settings {
    /// Returns true if a flow with these times to its sender and its receiver is left to ECN. Without ECN there is nothing to leave it to.
    pub(crate) fn leaves_to_ecn(&self, near: Nanos, far: Option<Nanos>) -> bool {
        self.ecn != EcnMode::Off && self.gate.holds(near, far)
    }

    /// Returns true if this evidence is enough for a CNP.
    pub(crate) fn believes(&self, evidence: Evidence) -> bool {
        evidence >= self.evidence && evidence != Evidence::None
    }

    /// Ports with a watched queue.
    pub(crate) fn watched_ports(&self) -> u32 {
        let ports = self.queues.iter().map(|queue| queue.port.bit());
        ports.fold(0, |set, port| set | port)
    }

    /// Returns true if packets that came by this port are believed.
    pub(crate) const fn trusts(&self, ingress: PortId) -> bool {
        self.trusted_ports & ingress.bit() != 0
    }

    /// Shortest time between two CNPs that stand for marks on this flow.
    pub(crate) fn cnp_interval_of(&self, flow: &FlowKey) -> Nanos {
        let own = self.hosts.cnp_interval(flow.dst());
        own.unwrap_or(self.cnp_interval)
    }

    /// Action for decisions about a queue; `Off` for a queue that is not watched.
    pub(crate) fn action_of_queue(&self, queue: usize) -> Action {
        let own = self.queues.get(queue).map(|queue| queue.action);
        own.unwrap_or(Action::Off).min(self.action)
    }

    /// Action for a decision to signal the sender of a flow of a queue.
    pub(crate) fn action_of_flow(&self, queue: usize, flow: &FlowKey) -> Action {
        let host = if self.hosts.observe.holds_sender(flow) {
            Action::Observe
        } else {
            Action::Send
        };
        self.action_of_queue(queue).min(host)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::action::HostSet;
    use crate::traffic_tests::rig::queue;
    use npcc_roce::key::Qpn;

    #[test]
    fn what_does_least_holds() {
        let address = |text: &str| text.parse().unwrap();
        let flow = FlowKey::new(address("10.0.1.3"), address("10.0.2.2"), Qpn::new(7));
        let observed = HostSet::new([(address("10.0.1.0"), 24)]);
        for action in Action::ALL {
            for own in Action::ALL {
                for (observe, host) in [
                    (HostSet::default(), Action::Send),
                    (observed.clone(), Action::Observe),
                ] {
                    let mut settings = Settings {
                        action,
                        queues: vec![queue(Nanos::from_micros(20))],
                        ..Settings::default()
                    };
                    settings.hosts.observe = observe;
                    settings.queues[0].action = own;
                    let least = [action, own, host].into_iter().min().unwrap();
                    assert_eq!(
                        settings.action_of_flow(0, &flow),
                        least,
                        "{action:?} {own:?}"
                    );
                    assert_eq!(settings.action_of_queue(0), action.min(own));
                    assert_eq!(settings.action_of_queue(1), Action::Off, "not watched");
                }
            }
        }
    }
}

//! `npcc:` proactive congestion notification, for all ports.

use std::collections::BTreeMap;

pub use npcc_cnp::action::Action;
pub use npcc_cnp::control::settings::Gate;
use npcc_cnp::defaults;
use npcc_cnp::policy::PolicyInputs;
pub use npcc_cnp::policy::PolicyName;
pub use npcc_pipeline::egress::marking::{EcnMode, UpstreamCe};
pub use npcc_roce::pair::Evidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Dscp, PriorityId, Unresponsive};
use crate::units::{Bytes, Count, Nanos, Percent, Prefix, Ranged, Threshold};

npcc_pipeline::defaults! {
    /// Proactive congestion notification, for all ports.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Npcc {
        /// Interval at which watched queues are evaluated; 5us to 10ms.
        pub tick: Nanos = defaults::TICK,
        /// Transmission of CNPs by the whole switch; `ports[].npcc.action` and `hosts` can only restrict it further.
        pub action: Action = Action::default(),
        /// Number of entries of the flow table.
        pub flows: Count = Count(defaults::FLOWS as u64),
        /// Weakest evidence for the sender's queue pair on which a CNP is sent; flows below it keep ordinary ECN marking.
        pub evidence: Evidence = defaults::EVIDENCE,
        /// Delivery of the ECN marks of watched queues: CE on the frame, a CNP to the sender, or neither.
        pub ecn: EcnMode = EcnMode::default(),
        /// Treatment of flows whose receiver is near, i.e. whose round trip on the far side is below four of those on the near side: `auto` leaves
        /// them to ECN while flows with far receivers have less than a sixteenth of their queue.
        pub gate: Gate = Gate::default(),
        /// Queue depth from which policy `npcc` sends CNPs; without a pool policy `model` keeps the queue near four thirds of it.
        pub shallow: Threshold = Threshold::Time(defaults::SHALLOW),
        /// Queue depth from which policy `npcc` signals many flows in a round.
        pub deep: Threshold = Threshold::Time(defaults::DEEP),
        /// Number of ticks that a rise in depth must last so as not to count as a microburst.
        pub filter: Ranged<1, 1000> = Ranged::fixed(defaults::FILTER),
        /// Rate-increase timer of the senders' NICs: minimum time between two rounds of few CNPs of policy `npcc`, time in which policy `model`
        /// corrects a depth off its set-point; up to 1s.
        pub recovery: Nanos = defaults::RECOVERY,
        /// Minimum time between two CNPs for one flow in rounds of few of policy `npcc`; at least 4us, which NICs need.
        pub min_cnp_interval: Nanos = defaults::MIN_CNP_INTERVAL,
        /// Assumed delay from a CNP to its effect on the queue, used until it is measured.
        pub feedback: Nanos = defaults::FEEDBACK,
        /// Ports from whose packets queue pairs may be learned; empty trusts all ports.
        pub trusted_ports: Vec<String> = Vec::new(),
        /// Check of a packet's source address against the routes before anything is learned from the packet.
        pub source_check: SourceCheck = SourceCheck::Side,
        /// Per-host rules: exceptions for senders and receivers by prefix.
        pub hosts: Hosts = Hosts::default(),
        /// Format, path and rate limits of the CNPs.
        pub cnp: Cnp = Cnp::default(),
    }
}

impl Npcc {
    /// Returns the settings that all policies of a queue share. Its depths and its drain rate are those of a queue of 100G.
    #[must_use]
    pub fn queue(&self) -> PolicyInputs {
        PolicyInputs {
            tick: self.tick,
            recovery: self.recovery,
            min_cnp_interval: self.min_cnp_interval,
            feedback: self.feedback,
            filter: Nanos(self.tick.0.saturating_mul(self.filter.get().into())),
            ..PolicyInputs::default()
        }
    }
}

/// Check of a packet's source address against the routes before anything is learned from the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceCheck {
    /// Source must be behind a port on the side the packet arrived on: ports that NPCC watches are one side, the others are the other.
    Side,
    /// Source must be behind the very port the packet arrived on; any of several equal-cost paths counts.
    Port,
    /// Source may be anywhere: no check.
    Off,
}

npcc_pipeline::defaults! {
    /// Per-host rules: exceptions for senders and receivers by prefix of their addresses.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Hosts {
        /// Senders that may be signalled, and no others; empty allows all.
        pub allow: Vec<Prefix> = Vec::new(),
        /// Senders that are never signalled, even if `allow` contains them.
        pub deny: Vec<Prefix> = Vec::new(),
        /// Senders for which CNPs are decided, counted and logged, but not sent.
        pub observe: Vec<Prefix> = Vec::new(),
        /// Senders whose NICs are known to slow down when signalled: they have no trials of it. Unknown hosts need no entry.
        pub answering: Vec<Prefix> = Vec::new(),
        /// Receivers whose NICs use another minimum time between two CNPs than `cnp.interval`: `10.0.2.0/24: 50us`. The longest prefix applies.
        pub cnp_intervals: BTreeMap<Prefix, Nanos> = BTreeMap::new(),
        /// Treatment of hosts that do not respond to CNPs: `mark` leaves their flows in the watched queue; `{ queue: PRIORITY }` moves them to a lossy
        /// queue that nothing else uses, where they have the share of their number.
        pub unresponsive: Unresponsive = Unresponsive::Mark,
    }
}

npcc_pipeline::defaults! {
    /// Format, path and rate limits of the CNPs.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Cnp {
        /// Priority of the egress queue that CNPs use.
        pub priority: PriorityId = PriorityId::fixed(defaults::CNP_PRIORITY as u32),
        /// DSCP of the CNPs.
        pub dscp: Dscp = Dscp::fixed(defaults::CNP_DSCP as u32),
        /// Wire bytes that a flow must put into a queue between two CNPs to its sender, whether for marks or by a policy; 0 to 16 MiB.
        pub earned: Bytes = Bytes(defaults::EARNED),
        /// Minimum time between two CNPs sent instead of marks, as the receiver's NIC keeps it; `hosts.cnp_intervals` has exceptions; 1us to 10ms.
        pub interval: Nanos = defaults::NIC_MIN_CNP_INTERVAL,
        /// Maximum share of a port's wire rate that CNPs may use.
        pub cap: Percent = Percent::of_thousandths(defaults::CAP),
        /// Maximum number of CNPs per second of all ports together.
        pub per_second: Ranged<1, 1_000_000_000> = Ranged::fixed(defaults::CAP_PER_SECOND),
    }
}

//! `npcc:` proactive congestion notification, for all ports.

use std::collections::BTreeMap;

pub use npcc_cnp::action::Action;
pub use npcc_cnp::control::settings::Gate;
pub use npcc_cnp::pair::Evidence;
pub use npcc_cnp::plan::Unpaired;
use npcc_cnp::policy::QueueSettings;
pub use npcc_cnp::policy::{Mode, PolicyName};
pub use npcc_pipeline::egress::marking::{EcnMode, UpstreamCe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Dscp, PriorityId};
use crate::units::{Bytes, Count, Nanos, Percent, Prefix, Ranged, Threshold};

npcc_pipeline::defaults! {
    /// Proactive congestion notification, for all ports.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Npcc {
        /// How often queues are looked at; 5us to 10ms.
        pub tick: Nanos = Nanos::from_micros(20),
        /// Whether CNPs leave; `ports[].npcc.action` and `hosts` can only hold back more.
        pub action: Action = Action::Send,
        /// Entries of the flow table.
        pub flows: Count = Count(65_536),
        /// Least evidence for the sender's queue pair with which a CNP is sent.
        pub evidence: Evidence = Evidence::Port,
        /// What happens to flows below that evidence.
        pub unpaired: Unpaired = Unpaired::Mark,
        /// Where the marks of watched queues go.
        pub ecn: EcnMode = EcnMode::Divert,
        /// Treatment of flows whose receiver is near: `auto` leaves them to ECN while the round trip on the far side is below four of those on the
        /// near side.
        pub gate: Gate = Gate::Auto,
        /// Depth below which nothing is ever sent.
        pub shallow: Threshold = Threshold::from_micros(30),
        /// Depth from which many are told.
        pub deep: Threshold = Threshold::from_micros(120),
        /// Depth from which no filter applies; default twice `deep`.
        pub hard: Option<Threshold> = None,
        /// How far below a threshold the depth must fall to leave its zone.
        pub hysteresis: Percent = Percent::of_whole(20),
        /// Ticks a rise must last to be more than a microburst.
        pub filter: Ranged<1, 1000> = Ranged::fixed(2),
        /// Least time between two rounds of few CNPs: the NIC's rate-increase timer.
        pub recovery: Nanos = Nanos::from_micros(300),
        /// Least time between two CNPs to one flow by decision of a policy; at least 4us, which NICs need.
        pub min_cnp_interval: Nanos = Nanos::from_micros(60),
        /// Assumed delay from a CNP to its effect, until it is learned.
        pub feedback: Nanos = Nanos::from_micros(20),
        /// Ports whose packets may teach queue pairs; none means all.
        pub trusted_ports: Vec<String> = Vec::new(),
        /// Where a packet's source must lie for the packet to teach anything.
        pub source_check: SourceCheck = SourceCheck::Side,
        /// Hosts that are treated in another way than all.
        pub hosts: Hosts = Hosts::default(),
        /// The CNPs themselves.
        pub cnp: Cnp = Cnp::default(),
    }
}

impl Npcc {
    /// What policies share of a queue in this mode. Its depths and its drain rate are those of a queue of 100G.
    #[must_use]
    pub fn queue(&self, mode: Mode) -> QueueSettings {
        QueueSettings {
            mode,
            tick: self.tick,
            recovery: self.recovery,
            min_cnp_interval: self.min_cnp_interval,
            feedback: self.feedback,
            ..QueueSettings::default()
        }
    }
}

/// Where a packet's source must lie, by the routes to it, for the packet to teach anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceCheck {
    /// Behind a port of the side the packet came by: ports that NPCC watches are one side, the others are the other.
    Side,
    /// Behind the very port the packet came by; any of several equal paths counts.
    Port,
    /// Anywhere.
    Off,
}

npcc_pipeline::defaults! {
    /// Hosts that are treated in another way than all, by the prefixes of their addresses.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Hosts {
        /// Senders that may be told, and no others; none means all.
        pub allow: Vec<Prefix> = Vec::new(),
        /// Senders that are never told, though allowed.
        pub deny: Vec<Prefix> = Vec::new(),
        /// Senders whose CNPs are decided, counted and logged, and not sent.
        pub observe: Vec<Prefix> = Vec::new(),
        /// Senders whose network cards are known to slow down when signalled, and to stay slow: their prior odds are 1,000 to one. Unknown hosts need
        /// no entry; those that take their rate back within microseconds must not have one.
        pub answering: Vec<Prefix> = Vec::new(),
        /// Odds, to one, that a host responds as long as nothing was measured; 1 to 1000. More trust an unknown host longer, and have the others pay for it
        /// if it does not respond.
        pub prior: Ranged<1, 1000> = Ranged::fixed(1),
        /// Receivers whose network cards keep another least time between two CNPs than `cnp.interval`: `10.0.2.0/24: 50us`. The longest prefix counts.
        pub cnp_intervals: BTreeMap<Prefix, Nanos> = BTreeMap::new(),
    }
}

npcc_pipeline::defaults! {
    /// The CNPs themselves.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Cnp {
        /// Queue they leave by.
        pub priority: PriorityId = PriorityId::fixed(6),
        /// DSCP they carry.
        pub dscp: Dscp = Dscp::fixed(48),
        /// UDP source port they carry; network cards send 0.
        pub udp_source_port: Ranged<0, 65535> = Ranged::fixed(0),
        /// TTL or hop limit they carry.
        pub ttl: Ranged<1, 255> = Ranged::fixed(64),
        /// How they find their port.
        pub via: CnpVia = CnpVia::Route,
        /// Wire bytes that a flow must put into a queue between two CNPs to its sender, whoever decides; 0 to 16 MiB.
        pub earned: Bytes = Bytes(16 << 10),
        /// Least time between two CNPs that stand for marks, as the receiver's network card keeps it; `hosts.cnp_intervals` has exceptions; 1us to 10ms.
        pub interval: Nanos = Nanos::from_micros(4),
        /// Most of a port's wire rate they may take.
        pub cap: Percent = Percent::of_whole(5),
        /// Most of them that leave in a second, by all ports together.
        pub per_second: Ranged<1, 1_000_000_000> = Ranged::fixed(1_000_000),
    }
}

/// How CNPs find their port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CnpVia {
    /// By the routing table.
    Route,
    /// Back by the port the flow came from.
    IngressPort,
}

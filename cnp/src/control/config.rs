//! How the control core of one switch is set up.

pub use npcc_pipeline::egress::marking::EcnMode;
use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

use crate::action::{Action, HostSet};
use crate::detector::DetectorConfig;
use crate::host_rules::HostRules;
use crate::pair::Evidence;
use crate::plan::Unpaired;
use crate::policy::PolicyKind;
use crate::source_check::{ANYWHERE, Sides};

/// One watched queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// The port whose egress queue it is.
    pub port: PortId,
    /// Which.
    pub priority: Priority,
    /// Thresholds, filter, tick; for `low-latency` already halved ([`crate::policy::Mode::thresholds`]).
    pub detector: DetectorConfig,
    /// Its policy.
    pub policy: PolicyKind,
}

/// Set up of [`super::ControlCore`].
#[derive(Debug, Clone)]
pub struct ControlConfig {
    /// Time between ticks (default 20 us).
    pub tick: Nanos,
    /// Watched queues, at most 255.
    pub queues: Vec<QueueConfig>,
    /// Whether CNPs leave (default yes).
    pub action: Action,
    /// The same for each of `queues`, in their order; `send` where the list ends.
    pub queue_actions: Vec<Action>,
    /// Hosts whose senders are told nothing, and all else as if they were.
    pub observed: HostSet,
    /// Hosts that may be told (default all).
    pub told: HostRules,
    /// Wire rates of all ports by index, 0 for no limit: CNPs leaving by a port take at most `cap` of it. A port beyond the
    /// end of the list gets no CNPs.
    pub port_rates: Vec<BitRate>,
    /// In thousandths (default 50).
    pub cap: u16,
    /// CNPs per second of the whole switch (default 1,000,000).
    pub cap_per_second: u64,
    /// Data flows in watched queues (default 65,536; about 600 bytes each, what readers see of it included).
    pub flows: usize,
    /// Ends in the table of connections: two a connection (default 131,072; about 330 bytes each).
    pub ends: usize,
    /// Evidence a sender must be known by to be signalled (default [`Evidence::Port`]).
    pub evidence: Evidence,
    /// What happens to the others.
    pub unpaired: Unpaired,
    /// What NPCC has to do with ECN marks.
    pub ecn: EcnMode,
    /// Time from a CNP to its effect in the queue (default 20 us).
    pub feedback: Nanos,
    /// How long a signalled flow counts as signalled (default 60 us).
    pub notified: Nanos,
    /// Ports whose packets are believed, as a port set (default all).
    pub trusted_ports: u32,
    /// By port: where the sources of packets that came by it must lie to be believed (default anywhere). Asked of the routes that
    /// [`super::ControlCore::know_routes`] was given.
    pub source_sides: Sides,
    /// Whether the ICRC of QP1 packets and of CNPs is checked before anything is learned from them (default yes).
    pub verify_cm: bool,
    /// New ends a second from one source address by one port (default 20,000).
    pub new_flows: u64,
    /// New ends at once from one source address by one port (default 16,384).
    pub new_flows_burst: u64,
    /// REQ and REP a second from one source address by one port (default 5,000).
    pub new_connections: u64,
    /// REQ and REP at once from one source address by one port (default 8,192).
    pub new_connections_burst: u64,
    /// Records taken in per tick (default 512).
    pub records_per_tick: usize,
    /// Flows of one queue read per tick while it is above shallow (default 512).
    pub reads_per_tick: usize,
    /// CNPs ordered per tick and queue (default 128, near 5 % of 100G at 20 us).
    pub orders_per_tick: usize,
    /// After so long a tick takes nothing more upon itself but what a queue at `hard` needs, for which it has twice the time
    /// (default 60 us, at least two ticks).
    pub deadline: Nanos,
    /// Should differ from start to start, so that nobody can aim at one hash bucket.
    pub hash_seed: u64,
}

impl Default for ControlConfig {
    fn default() -> ControlConfig {
        ControlConfig {
            tick: Nanos::from_micros(20),
            queues: Vec::new(),
            action: Action::Send,
            queue_actions: Vec::new(),
            observed: HostSet::default(),
            told: HostRules::default(),
            port_rates: Vec::new(),
            cap: 50,
            cap_per_second: 1_000_000,
            flows: 65_536,
            ends: 131_072,
            evidence: Evidence::Port,
            unpaired: Unpaired::Mark,
            ecn: EcnMode::MarkUnlessNotified,
            feedback: Nanos::from_micros(20),
            notified: Nanos::from_micros(60),
            trusted_ports: u32::MAX,
            source_sides: ANYWHERE,
            verify_cm: true,
            new_flows: 20_000,
            new_flows_burst: 16_384,
            new_connections: 5_000,
            new_connections_burst: 8_192,
            records_per_tick: 512,
            reads_per_tick: 512,
            orders_per_tick: 128,
            deadline: Nanos::from_micros(60),
            hash_seed: 0,
        }
    }
}

/// What [`super::command::Command::Settings`] may change of a [`ControlConfig`] while running; the fields are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Evidence a sender must be known by to be signalled.
    pub evidence: Evidence,
    /// What happens to the others.
    pub unpaired: Unpaired,
    /// What NPCC has to do with ECN marks.
    pub ecn: EcnMode,
    /// Time from a CNP to its effect in the queue, until learned.
    pub feedback: Nanos,
    /// How long a signalled flow counts as signalled.
    pub notified: Nanos,
    /// Share of a port's wire rate CNPs may take, in thousandths.
    pub cap: u16,
    /// CNPs per second of the whole switch.
    pub cap_per_second: u64,
    /// Ports whose packets are believed, as a port set.
    pub trusted_ports: u32,
    /// By port: where the sources of packets that came by it must lie to be believed.
    pub source_sides: Sides,
}

impl ControlConfig {
    /// The part that may change while running.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        Settings {
            evidence: self.evidence,
            unpaired: self.unpaired,
            ecn: self.ecn,
            feedback: self.feedback,
            notified: self.notified,
            cap: self.cap,
            cap_per_second: self.cap_per_second,
            trusted_ports: self.trusted_ports,
            source_sides: self.source_sides,
        }
    }

    /// Time over which contributions are counted: five ticks, at least 100 us.
    #[must_use]
    pub fn window(&self) -> Nanos {
        Nanos(self.tick.0.saturating_mul(5)).max(Nanos::from_micros(100))
    }
}

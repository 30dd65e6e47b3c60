//! Proactive congestion notification, resolved.

use crate::model::{self, CnpVia, EcnMode, Evidence, Unpaired};
use crate::units::{Percent, Rate, Threshold, Time};

/// Depths that bound the detector's zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Below it nothing is ever sent.
    pub shallow: Threshold,
    /// From it on many are told.
    pub deep: Threshold,
    /// From it on no filter applies.
    pub hard: Threshold,
}

impl Thresholds {
    /// The three depths in bytes for a queue that drains at `drain`; those given as times are at
    /// least four frames of `mtu` bytes (see [`Threshold::bytes_floored`]).
    #[must_use]
    pub fn bytes(&self, drain: Rate, mtu: u16) -> [u64; 3] {
        [self.shallow, self.deep, self.hard].map(|t| t.bytes_floored(drain, mtu))
    }

    /// The general thresholds with a port's own in their stead.
    pub(crate) fn merge(general: &model::Npcc, own: Option<&model::PortNpcc>) -> Self {
        let shallow = own.and_then(|o| o.shallow).unwrap_or(general.shallow);
        let deep = own.and_then(|o| o.deep).unwrap_or(general.deep);
        // A port with its own `deep` is not bound to a `hard` meant for another one.
        let inherited = if own.is_some_and(|o| o.deep.is_some()) {
            None
        } else {
            general.hard
        };
        let hard = own
            .and_then(|o| o.hard)
            .or(inherited)
            .unwrap_or_else(|| deep.doubled());
        Self {
            shallow,
            deep,
            hard,
        }
    }
}

/// Proactive congestion notification, for all ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Npcc {
    /// How often queues are looked at, 5 us to 10 ms.
    pub tick: Time,
    /// Entries of the flow table, a power of two is not required.
    pub flows: usize,
    /// Least evidence with which a CNP is sent.
    pub evidence: Evidence,
    /// What happens to flows below it.
    pub unpaired: Unpaired,
    /// How ECN marking and our CNPs go together.
    pub ecn: EcnMode,
    /// The general thresholds.
    pub thresholds: Thresholds,
    /// How far below a threshold the depth must fall to leave its zone.
    pub hysteresis: Percent,
    /// Ticks a rise must last, at least 1.
    pub filter: u32,
    /// Least time between two rounds of few CNPs.
    pub recovery: Time,
    /// Least time between two CNPs to one flow, at least 4 us.
    pub min_cnp_interval: Time,
    /// Delay from a CNP to its effect, until learned.
    pub feedback: Time,
    /// Indices of the ports whose packets may teach queue pairs; all ports when none is named.
    pub trusted_ports: Vec<usize>,
    /// The CNPs themselves.
    pub cnp: Cnp,
}

/// The CNPs themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cnp {
    /// Priority of the queue they leave by.
    pub priority: u8,
    /// DSCP they carry.
    pub dscp: u8,
    /// UDP source port they carry.
    pub udp_source_port: u16,
    /// TTL or hop limit they carry.
    pub ttl: u8,
    /// How they find their port.
    pub via: CnpVia,
    /// Most of a port's wire rate they may take.
    pub cap: Percent,
}

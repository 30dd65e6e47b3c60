//! An end that is not paired, as it is handed on to whoever keeps it over a restart of the switch.

use npcc_pipeline::units::Nanos;

use crate::key::FlowKey;

/// An end that is not paired is forgotten after this time unseen.
pub(crate) const FORGET: Nanos = Nanos::from_millis(6_000);

/// An end whose packets all had one UDP source port, and that is not paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LooseEnd {
    /// Its addresses and the queue pair they name.
    pub key: FlowKey,
    /// Their UDP source port.
    pub port: u16,
    /// Whether it is unreliable connection.
    pub is_uc: bool,
    /// When it was seen last.
    pub seen: Nanos,
}

impl LooseEnd {
    /// Whether an end that is not paired would still be known.
    #[must_use]
    pub fn is_known(&self, now: Nanos) -> bool {
        now.since(self.seen) < FORGET
    }
}

//! Thresholds of the congestion detector, resolved.

use crate::model;
use crate::units::{BitRate, Threshold};

/// Queue depths that bound the detector's zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Depth from which policy `npcc` sends CNPs; policy `model` keeps the queue near four thirds of it.
    pub shallow: Threshold,
    /// Depth from which policy `npcc` signals many flows in a round.
    pub deep: Threshold,
}

impl Thresholds {
    /// Returns the depths in bytes from which the queue is shallow, deep and hard (twice `deep`: no filter applies from there on) for a queue that drains at `drain`; those given as times are at
    /// least four frames of `mtu` bytes (see [`Threshold::bytes_floored`]).
    #[must_use]
    pub fn bytes(&self, drain: BitRate, mtu: u16) -> [u64; 3] {
        [self.shallow, self.deep, self.deep.doubled()].map(|t| t.bytes_floored(drain, mtu))
    }

    /// Merges the general thresholds with a port's own, which take precedence.
    pub(crate) fn merge(general: &model::Npcc, own: Option<&model::PortNpcc>) -> Self {
        Self {
            shallow: own.and_then(|o| o.shallow).unwrap_or(general.shallow),
            deep: own.and_then(|o| o.deep).unwrap_or(general.deep),
        }
    }
}

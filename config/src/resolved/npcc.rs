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
    /// Depth from which no filter applies.
    pub hard: Threshold,
}

impl Thresholds {
    /// Returns the three depths in bytes for a queue that drains at `drain`; those given as times are at
    /// least four frames of `mtu` bytes (see [`Threshold::bytes_floored`]).
    #[must_use]
    pub fn bytes(&self, drain: BitRate, mtu: u16) -> [u64; 3] {
        [self.shallow, self.deep, self.hard].map(|t| t.bytes_floored(drain, mtu))
    }

    /// Merges the general thresholds with a port's own, which take precedence.
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

//! What an end keeps for evidence `psn` ([`super::super::psn`]).

use npcc_pipeline::units::Nanos;

use super::{LIVE, MIXED};
use crate::links::NONE;

/// Requests remembered that ask for a reply.
pub(in crate::pair) const MARKS: u8 = 4;

/// What replies say of the only end with the same UDP source port in the other direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pair) enum PortFit {
    /// Nothing yet.
    Unknown,
    /// One had the number of a request in flight, to the packet, and none had another.
    Fits,
    /// One had a number that was none in flight, and one had before it.
    Contradicted,
    /// One had a number that was none in flight, and none had before it.
    Refuted,
}

impl PortFit {
    /// After an answer with a number that is none in flight.
    pub(in crate::pair) const fn after_misfit(self) -> PortFit {
        match self {
            PortFit::Fits | PortFit::Contradicted => PortFit::Contradicted,
            PortFit::Unknown | PortFit::Refuted => PortFit::Refuted,
        }
    }

    /// After an answer that fits, so long after the last misfit. What never fitted before is long another connection's, whose numbers
    /// come near by chance for some seconds.
    pub(in crate::pair) fn after_fit(self, since: Nanos) -> PortFit {
        match self {
            PortFit::Contradicted if since < LIVE => self,
            PortFit::Refuted if since < MIXED => self,
            _ => PortFit::Fits,
        }
    }
}

/// What is known of whose numbers an end's fit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PsnState {
    /// Numbers of requests to this end that ask for a reply, the latest first; [`NONE`] for none.
    pub(in crate::pair) marks: [u32; MARKS as usize],
    /// The end that replies to this end fit, how often, and the last of them.
    pub(in crate::pair) candidate: u32,
    /// That end's [serial number](super::End::serial).
    pub(in crate::pair) candidate_serial: u32,
    pub(in crate::pair) supports: u8,
    pub(in crate::pair) supported: u32,
    /// The end whose replies fit this one.
    pub(in crate::pair) claimed: u32,
    /// Whether replies fit the only end with the same UDP source port.
    pub(in crate::pair) port: PortFit,
    /// READs were among the requests: one has as many numbers as its answer has packets.
    pub(in crate::pair) reads: bool,
    /// The last reply to this end fits nobody seen.
    pub(in crate::pair) orphan: bool,
}

impl PsnState {
    pub(crate) const fn new() -> PsnState {
        PsnState {
            marks: [NONE; MARKS as usize],
            candidate: NONE,
            candidate_serial: 0,
            supports: 0,
            supported: NONE,
            claimed: NONE,
            port: PortFit::Unknown,
            reads: false,
            orphan: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fitted_once_fits_again_after_three_seconds_and_what_never_did_after_a_minute() {
        let (soon, later) = (Nanos(LIVE.0 - 1), Nanos(MIXED.0 - 1));
        let contradicted = PortFit::Unknown.after_fit(soon).after_misfit();
        assert_eq!(contradicted.after_fit(soon), PortFit::Contradicted);
        assert_eq!(contradicted.after_misfit().after_fit(LIVE), PortFit::Fits);
        let refuted = PortFit::Unknown.after_misfit();
        assert_eq!(refuted.after_misfit().after_fit(later), PortFit::Refuted);
        assert_eq!(refuted.after_fit(MIXED), PortFit::Fits);
    }
}

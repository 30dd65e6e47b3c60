//! State of an endpoint for evidence `psn` ([`super::super::psn`]).

use npcc_pipeline::units::Nanos;

use super::{LIVE, MIXED};
use crate::links::NONE;

/// Number of requests remembered that ask for a reply.
pub(in crate::pair) const ACKREQ_PSNS: u8 = 4;

/// Fit of replies to the only endpoint with the same UDP source port in the other direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pair) enum PortFit {
    /// No reply was compared yet.
    Unknown,
    /// A reply had the number of a request in flight, to the packet, and none had another.
    Fits,
    /// A reply had a number that was none in flight, and one before had fitted.
    Contradicted,
    /// A reply had a number that was none in flight, and none before had fitted.
    Refuted,
}

impl PortFit {
    /// State after an answer with a number that is none in flight.
    pub(in crate::pair) const fn after_misfit(self) -> PortFit {
        match self {
            PortFit::Fits | PortFit::Contradicted => PortFit::Contradicted,
            PortFit::Unknown | PortFit::Refuted => PortFit::Refuted,
        }
    }

    /// State after an answer that fits, `since` after the last misfit. An endpoint that never fitted before is most likely another connection's, whose
    /// numbers come near by chance for some seconds.
    pub(in crate::pair) fn after_fit(self, since: Nanos) -> PortFit {
        match self {
            PortFit::Contradicted if since < LIVE => self,
            PortFit::Refuted if since < MIXED => self,
            _ => PortFit::Fits,
        }
    }
}

/// Progress of pairing an endpoint by sequence numbers: the endpoint of the other direction whose numbers fit, and the evidence for it so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PsnState {
    /// Numbers of requests to this endpoint that ask for a reply, the latest first; [`NONE`] for none.
    pub(in crate::pair) ackreq_psns: [u32; ACKREQ_PSNS as usize],
    /// Endpoint that replies to this endpoint fit (`candidate`), the number of fits (`supports`), and the last number that fitted (`supported`).
    pub(in crate::pair) candidate: u32,
    /// Candidate's [serial number](super::Endpoint::serial).
    pub(in crate::pair) candidate_serial: u32,
    pub(in crate::pair) supports: u8,
    pub(in crate::pair) supported: u32,
    /// Endpoint whose replies fit this one.
    pub(in crate::pair) claimed: u32,
    /// Fit of replies to the only endpoint with the same UDP source port.
    pub(in crate::pair) port: PortFit,
    /// True if READs were among the requests: one takes as many numbers as its answer has packets.
    pub(in crate::pair) reads: bool,
    /// True if the last reply to this endpoint fits nobody seen.
    pub(in crate::pair) orphan: bool,
}

impl PsnState {
    pub(crate) const fn new() -> PsnState {
        PsnState {
            ackreq_psns: [NONE; ACKREQ_PSNS as usize],
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
    fn a_port_that_fitted_once_fits_again_after_three_seconds_and_another_after_a_minute() {
        let (soon, later) = (Nanos(LIVE.0 - 1), Nanos(MIXED.0 - 1));
        let contradicted = PortFit::Unknown.after_fit(soon).after_misfit();
        assert_eq!(contradicted.after_fit(soon), PortFit::Contradicted);
        assert_eq!(contradicted.after_misfit().after_fit(LIVE), PortFit::Fits);
        let refuted = PortFit::Unknown.after_misfit();
        assert_eq!(refuted.after_misfit().after_fit(later), PortFit::Refuted);
        assert_eq!(refuted.after_fit(MIXED), PortFit::Fits);
    }
}

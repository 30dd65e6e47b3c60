//! What an end keeps for evidence `psn` ([`super::super::psn`]).

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
    /// One had a number that was none in flight.
    Refuted,
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

//! CNPs in a capture, parsed with the pipeline's parser. Tests that must not trust our own code use scapy and tshark instead.

use npcc_pipeline::parse::{Kind, L3, parse};
use npcc_pipeline::wire::bth::{Bth, RoceClass};
use std::net::IpAddr;

use crate::capture::Captured;

/// A CNP found in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeenCnp {
    /// Source address: the flow's receiver, which seems to send it.
    pub src: IpAddr,
    /// Destination address: the sender it slows down.
    pub dst: IpAddr,
    /// Queue pair of that sender.
    pub dest_qp: u32,
    /// True if its BECN bit is set.
    pub becn: bool,
}

/// Returns all CNPs of a capture, in order.
pub fn find(frames: &[Captured]) -> impl Iterator<Item = SeenCnp> {
    frames.iter().filter_map(|captured| seen(&captured.frame))
}

fn seen(frame: &[u8]) -> Option<SeenCnp> {
    let parsed = parse(frame).ok()?;
    let roce = parsed.roce.filter(|roce| roce.class == RoceClass::Cnp)?;
    let l3 = usize::from(parsed.l3_off);
    let address = |at: usize, len: usize| -> Option<IpAddr> {
        let bytes = frame.get(l3 + at..l3 + at + len)?;
        match parsed.kind {
            Kind::Routed(L3::V4) => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
            _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        }
    };
    let (src, dst) = match parsed.kind {
        Kind::Routed(L3::V4) => (address(12, 4)?, address(16, 4)?),
        _ => (address(8, 16)?, address(24, 16)?),
    };
    let bytes = frame.get(usize::from(roce.bth_off)..)?;
    let (bth, _) = <Bth as zerocopy::FromBytes>::ref_from_prefix(bytes).ok()?;
    Some(SeenCnp {
        src,
        dst,
        dest_qp: bth.dest_qp(),
        becn: bth.becn(),
    })
}

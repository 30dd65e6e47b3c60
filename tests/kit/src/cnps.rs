//! CNPs in a capture, read with the pipeline's parser. Tests that must not believe our own code use scapy and tshark instead.

use npcc_pipeline::parse::{Kind, L3, parse};
use npcc_pipeline::wire::bth::{Bth, RoceClass};
use std::net::IpAddr;

use crate::capture::Captured;

/// A CNP as found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeenCnp {
    /// Who seems to send it: the flow's receiver.
    pub src: IpAddr,
    /// Whom it slows down.
    pub dst: IpAddr,
    /// That sender's QP.
    pub dest_qp: u32,
    /// BECN.
    pub becn: bool,
}

/// All CNPs of a capture, in order.
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

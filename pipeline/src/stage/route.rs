//! Stage 2: longest prefix, then the path of the flow. What cannot be forwarded is dropped with the route's reason.

use zerocopy::FromBytes;

use super::lane::{Lanes, Trash, discard};
use crate::bits::low32;
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::FrameBuf;
use crate::parse::{Kind, L3, Parsed};
use crate::route::fib::FibReader;
use crate::route::nexthop::Kind as PathKind;
use crate::route::prefix::Family;
use crate::route::writer::default_group;
use crate::wire::bth::Bth;
use crate::wire::ipv6::Ipv6;

/// Finds the path of every frame in hand.
#[inline]
pub fn run<B: FrameBuf>(
    fib: &FibReader,
    lanes: &mut Lanes<B>,
    counters: &PortCounters,
    trash: &mut Trash<B>,
) {
    for lane in lanes.iter_mut() {
        let Some(buf) = &lane.buf else { continue };
        let data = buf.data();
        let group = lookup(fib, data, &lane.parsed);
        lane.path = fib.hops().resolve(group, || flow_hash(data, &lane.parsed));
        if !lane.path.forwards()
            && let Some(buf) = lane.buf.take()
        {
            discard(buf, reason(lane.path.kind()), counters, trash);
        }
    }
}

/// Why a path forwards nothing.
#[cold]
const fn reason(kind: PathKind) -> Drop {
    match kind {
        PathKind::Unresolved => Drop::NoNeighbor,
        PathKind::Local => Drop::LocalUnserved,
        PathKind::Blackhole => Drop::Blackhole,
        PathKind::NoRoute | PathKind::Forward => Drop::NoRoute,
    }
}

/// The next-hop group of a frame's destination.
#[inline]
fn lookup(fib: &FibReader, data: &[u8], parsed: &Parsed) -> u32 {
    match parsed.kind {
        Kind::Routed(L3::V4) => fib.images().v4.lookup_v4(parsed.dst_v4),
        Kind::Routed(L3::V6) => {
            let packet = data.get(usize::from(parsed.l3_off)..).unwrap_or_default();
            let dst = Ipv6::ref_from_prefix(packet).map_or([0; 16], |(header, _)| header.dst);
            match fib.images().v6.lookup_v6(u128::from_be_bytes(dst)) {
                0 => u32::from(default_group(Family::V6).0),
                group => group,
            }
        }
        Kind::MacControl => 0,
    }
}

/// A hash of what tells flows apart: addresses, protocol, UDP or TCP ports, destination QP. Fragments hash by addresses only.
#[must_use]
pub fn flow_hash(data: &[u8], parsed: &Parsed) -> u32 {
    let packet = data.get(usize::from(parsed.l3_off)..).unwrap_or_default();
    let mut hash = Mixer::default();
    match parsed.kind {
        Kind::Routed(L3::V6) => packet
            .get(8..40)
            .into_iter()
            .flat_map(|all| all.chunks_exact(8))
            .for_each(|word| hash.mix(word)),
        _ => packet
            .get(12..20)
            .into_iter()
            .for_each(|word| hash.mix(word)),
    }
    if parsed.l4_off != 0 {
        hash.mix(&[parsed.protocol]);
        if matches!(parsed.protocol, 6 | 17) {
            let l4 = usize::from(parsed.l4_off);
            hash.mix(data.get(l4..l4 + 4).unwrap_or_default());
        }
    }
    if let Some(roce) = parsed.roce {
        let base = Bth::ref_from_prefix(data.get(usize::from(roce.bth_off)..).unwrap_or_default());
        hash.mix(&base.map_or([0; 3], |(base, _)| base.dest_qp));
    }
    hash.finish()
}

/// Multiply and fold (as in wyhash): enough to spread flows over 16 buckets.
#[derive(Default)]
struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, bytes: &[u8]) {
        let word = bytes
            .iter()
            .fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        let (low, high) =
            (self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15).carrying_mul(0xe703_7ed1_a0b4_28db, 0);
        self.0 = high ^ low;
    }

    const fn finish(&self) -> u32 {
        low32(self.0 >> 32) ^ low32(self.0)
    }
}

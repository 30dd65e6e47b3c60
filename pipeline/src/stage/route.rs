//! Stage 2: longest prefix, then the path of the flow. What cannot be forwarded is dropped with the route's reason.

use zerocopy::FromBytes;

use super::packet::{Packet, Places};
use crate::bits::low32;
use crate::drop::Drop;
use crate::frame::FrameBuf;
use crate::parse::{Kind, L3, Parsed};
use crate::route::fib::FibReader;
use crate::route::nexthop::{Kind as PathKind, Path};
use crate::route::prefix::Family;
use crate::route::writer::default_group;
use crate::wire::bth::Bth;
use crate::wire::ipv6::Ipv6;

/// Finds the path of every frame in hand; tells those that cannot be forwarded.
#[inline]
pub fn run<B: FrameBuf>(fib: &FibReader, frames: &[B], packets: &mut [Packet]) -> Places {
    let images = fib.images();
    let mut gone = Places::NONE;
    // Frames one after the other often take the same path.
    let (mut last, mut known) = (u32::MAX, Path::NONE);
    for (place, (buf, packet)) in frames.iter().zip(packets).enumerate() {
        let group = if packet.is_v4() {
            images.v4.lookup_v4(packet.parsed.dst_v4())
        } else {
            lookup_v6(fib, buf.data(), &packet.parsed)
        };
        if group != last {
            (known, last) = match fib.hops().only(group) {
                Some(path) => (path, group),
                None => (resolve(fib, group, buf.data(), &packet.parsed), u32::MAX),
            };
        }
        packet.path = known;
        packet.meta.egress = known.port();
        if !known.forwards() {
            packet.reason = Some(reason(known.kind()));
            gone.add(place);
        }
    }
    gone
}

/// The path of a flow in a group with a choice.
#[inline(never)]
fn resolve(fib: &FibReader, group: u32, data: &[u8], parsed: &Parsed) -> Path {
    fib.hops().resolve(group, || flow_hash(data, parsed))
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

/// The next-hop group of an IPv6 destination.
#[inline(never)]
fn lookup_v6(fib: &FibReader, data: &[u8], parsed: &Parsed) -> u32 {
    let packet = data.get(usize::from(parsed.l3_off)..).unwrap_or_default();
    let dst = Ipv6::ref_from_prefix(packet).map_or([0; 16], |(header, _)| header.dst);
    match fib.images().v6.lookup_v6(u128::from_be_bytes(dst)) {
        0 => u32::from(default_group(Family::V6).0),
        group => group,
    }
}

/// A hash of what tells flows apart: addresses, protocol, UDP or TCP ports, destination QP. Fragments hash by addresses only.
#[must_use]
#[inline(never)]
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

//! Stage 2: longest prefix, then the path of the flow. What cannot be forwarded is dropped with the route's reason.
//! [`super::receive`] asks.

use zerocopy::FromBytes;

use super::packet::Packet;
use crate::bits::low32;
use crate::drop::Drop;
use crate::parse::{Kind, L3, Parsed};
use crate::route::fib::FibReader;
use crate::route::nexthop::Kind as PathKind;
use crate::route::nexthop::default_group;
use crate::route::prefix::Family;
use crate::wire::bth::Bth;
use crate::wire::ipv6::Ipv6;
use crate::wire::udp;

/// Why a path forwards nothing.
#[cold]
pub(super) const fn reason(kind: PathKind) -> Drop {
    match kind {
        PathKind::Unresolved => Drop::NoNeighbor,
        PathKind::Local => Drop::LocalUnserved,
        PathKind::Blackhole => Drop::Blackhole,
        PathKind::NoRoute | PathKind::Forward => Drop::NoRoute,
    }
}

/// The next-hop group of an IPv6 destination.
#[inline(never)]
pub(super) fn lookup_v6(fib: &FibReader, data: &[u8], packet: &Packet) -> u32 {
    let l3 = usize::from(packet.meta.l3_off);
    let packet = data.get(l3..).unwrap_or_default();
    let dst = Ipv6::ref_from_prefix(packet).map_or([0; 16], |(header, _)| header.dst);
    match fib.images().v6.lookup_v6(u128::from_be_bytes(dst)) {
        0 => u32::from(default_group(Family::V6).0),
        group => group,
    }
}

/// [`flow_hash`] of a packet in hand, whose frame is `data`, which is asked only when it is not common.
pub(super) fn hash(data: &[u8], packet: &Packet) -> u32 {
    let brief = &packet.brief;
    if !brief.is_common() {
        return flow_hash(data, &packet.parsed(data));
    }
    let mut hash = Mixer::default();
    hash.mix_word(brief.addresses);
    hash.mix_word(u64::from(udp::PROTOCOL));
    hash.mix_word(u64::from(brief.src_port) << 16 | u64::from(udp::ROCEV2_PORT));
    hash.mix_word(u64::from(brief.dest_qp()));
    hash.finish()
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
        self.mix_word(word);
    }

    fn mix_word(&mut self, word: u64) {
        let (low, high) =
            (self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15).carrying_mul(0xe703_7ed1_a0b4_28db, 0);
        self.0 = high ^ low;
    }

    const fn finish(&self) -> u32 {
        low32(self.0 >> 32) ^ low32(self.0)
    }
}

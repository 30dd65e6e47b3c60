//! The key by which a flow's path is chosen, and the drop reasons of routes. Destinations are looked up, and paths chosen, in the loops of
//! [`super::receive`].

use zerocopy::FromBytes;

use crate::bits::{low32, low64};
use crate::burst::Record;
use crate::drop::DropReason;
use crate::parse::Parsed;
use crate::parse::common::Words;
use crate::route::nexthop::Kind as PathKind;
use crate::route::seed::FlowSeed;
use crate::wire::bth::Traits;
use crate::wire::ipv6::Ipv6;
use crate::wire::udp;

/// Returns the drop reason of a path that does not forward.
#[cold]
pub(super) const fn reason(kind: PathKind) -> DropReason {
    match kind {
        PathKind::Unresolved => DropReason::NoNeighbor,
        PathKind::Local => DropReason::LocalUnserved,
        PathKind::Blackhole => DropReason::Blackhole,
        PathKind::Unreachable => DropReason::Unreachable,
        PathKind::Prohibited => DropReason::Prohibited,
        PathKind::NoRoute | PathKind::Forward => DropReason::NoRoute,
    }
}

/// Flow key: addresses, protocol, UDP or TCP ports, destination queue pair. For a fragment, the addresses only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FlowWords {
    /// Source (high half) and destination of IPv4, or both addresses of IPv6 [folded](fold_v6).
    pub(super) addresses: u64,
    /// Destination queue pair in the high 24 bits, protocol in the next 8, ports in the low 32.
    pub(super) upper: u64,
}

impl FlowWords {
    /// Returns the key of an unfragmented packet that was read; `upper` reads its fields above IP, which the record of a packet
    /// other than RoCEv2 has not.
    #[inline(always)]
    pub(super) fn of_record(
        addresses: u64,
        record: &Record,
        upper: impl FnOnce() -> Words,
    ) -> FlowWords {
        if !record.is_roce() {
            return FlowWords::new(addresses, &upper());
        }
        let ports = u64::from(record.src_port) << 16 | u64::from(udp::ROCEV2_PORT);
        FlowWords {
            addresses,
            upper: u64::from(record.dest_qp()) << 40 | u64::from(udp::PROTOCOL) << 32 | ports,
        }
    }

    /// Returns the key of an unfragmented packet.
    #[inline]
    pub(super) const fn new(addresses: u64, upper: &Words) -> FlowWords {
        let ports = match upper.protocol {
            6 | udp::PROTOCOL => upper.ports(),
            _ => 0,
        };
        let qp = if upper.traits.any(Traits::ANY) {
            upper.transport >> 32 & 0x00ff_ffff
        } else {
            0
        };
        FlowWords {
            addresses,
            upper: qp << 40 | (upper.protocol as u64) << 32 | ports as u64,
        }
    }

    /// Returns the key of any packet; `data` is its frame.
    pub(super) fn of(data: &[u8], parsed: &Parsed) -> FlowWords {
        let packet = data.get(usize::from(parsed.l3_off)..).unwrap_or_default();
        let addresses = if parsed.is_v6() {
            folded(packet)
        } else {
            parsed.addresses_v4
        };
        if parsed.l4_off == 0 {
            return FlowWords {
                addresses,
                upper: 0,
            };
        }
        let l4 = data.get(usize::from(parsed.l4_off)..).unwrap_or_default();
        let [a, b, c, d] = l4.first_chunk().copied().unwrap_or_default();
        let roce = parsed.roce;
        let transport = roce.map_or(0, |roce| u64::from(roce.dest_qp) << 32);
        let traits = roce.map_or(Traits::NONE, |roce| Traits::of(roce.opcode));
        FlowWords::new(
            addresses,
            &Words {
                transport,
                src_port: u16::from_be_bytes([a, b]),
                dst_port_and_len: u32::from_be_bytes([c, d, 0, 0]),
                protocol: parsed.protocol,
                syndrome: 0,
                traits,
            },
        )
    }

    /// Hashes the key by multiply and fold (as in wyhash), once a word: enough to spread flows over the buckets of a group.
    #[inline]
    pub(super) fn hash(self, seed: FlowSeed) -> u32 {
        let first = fold(self.addresses ^ seed.word());
        let all = fold(first ^ self.upper);
        low32(all >> 32) ^ low32(all)
    }
}

#[inline]
fn fold(word: u64) -> u64 {
    let (low, high) = word.carrying_mul(0xe703_7ed1_a0b4_28db, 0);
    high ^ low
}

/// Folds both addresses of an IPv6 packet into one word; 0 if it has no header.
pub(super) fn folded(packet: &[u8]) -> u64 {
    let header = Ipv6::ref_from_prefix(packet);
    header.map_or(0, |(header, _)| {
        let address = u128::from_be_bytes;
        fold_v6(address(header.src), address(header.dst))
    })
}

/// Folds both addresses of an IPv6 packet into one word.
#[inline]
pub(super) fn fold_v6(src: u128, dst: u128) -> u64 {
    let halves = [src >> 64, src, dst >> 64, dst].map(low64);
    halves
        .into_iter()
        .fold(0, |word, half| fold(word ^ half ^ 0x9e37_79b9_7f4a_7c15))
}

/// Returns the hash of a flow: addresses, protocol, UDP or TCP ports, destination QP. Fragments hash by addresses only.
#[must_use]
pub fn flow_hash(data: &[u8], parsed: &Parsed, seed: FlowSeed) -> u32 {
    FlowWords::of(data, parsed).hash(seed)
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;

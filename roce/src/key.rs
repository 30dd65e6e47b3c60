//! Keys of flows: addresses and the destination queue pair of their packets.
//!
//! A key names one *direction*. The reverse direction of a connection is another key, with the other queue pair.

mod hasher;

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use hasher::{KeyHasher, PairHasher};
pub use npcc_pipeline::bits::low32;
use npcc_pipeline::burst::Record;
use npcc_pipeline::moved_hosts::HostAddress;
use npcc_pipeline::parse::{Kind, L3, Parsed};
use npcc_pipeline::units::{PortId, Priority};
use npcc_pipeline::wire::ipv4::Ipv4;
use npcc_pipeline::wire::ipv6::Ipv6;
use zerocopy::FromBytes;

const QPN_MASK: u32 = 0x00ff_ffff;
const V6: u32 = 1 << 24;
/// `::ffff:0:0/96`, the upper half of the low word.
const MAPPED: u64 = 0xffff_0000_0000;

/// Queue pair number, 24 bits.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, derive_more::Display,
)]
#[display("{_0:#x}")]
pub struct Qpn(u32);

impl Qpn {
    /// Queue pair number from the low 24 bits of `value`.
    #[must_use]
    pub const fn new(value: u32) -> Qpn {
        Qpn(value & QPN_MASK)
    }

    /// The number as an integer, below 2^24.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Address as 128 bits; IPv4 is mapped (`::ffff:a.b.c.d`) and the key's family bit tells them apart.
pub type Bits = [u64; 2];

pub(crate) const fn v4_bits(address: [u8; 4]) -> Bits {
    [0, MAPPED | u32::from_be_bytes(address) as u64]
}

pub(crate) fn v6_bits(address: [u8; 16]) -> Bits {
    let word = u128::from_be_bytes(address);
    [high64(word), low64(word)]
}

const fn high64(word: u128) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = word.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

const fn low64(word: u128) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = word.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Key of one direction of a connection: source, destination, destination queue pair.
#[derive(Clone, Copy, PartialEq, Eq, derive_more::Debug, derive_more::Display)]
#[debug("{self}")]
#[display("{} > {} qp {}", self.src(), self.dst(), self.dest_qp())]
pub struct FlowKey {
    /// Source address.
    pub src: Bits,
    /// Destination address.
    pub dst: Bits,
    /// QPN in the low 24 bits, the family bit above.
    tail: u32,
}

impl FlowKey {
    /// Makes a key. If the families differ the key is that of IPv6, with the IPv4 address mapped.
    #[must_use]
    pub fn new(src: IpAddr, dst: IpAddr, dest_qp: Qpn) -> FlowKey {
        let v6 = if src.is_ipv4() && dst.is_ipv4() {
            0
        } else {
            V6
        };
        FlowKey {
            src: bits(src),
            dst: bits(dst),
            tail: dest_qp.0 | v6,
        }
    }

    /// Makes a key of two GIDs as a connection manager writes them (an IPv4 address is mapped), with no queue pair.
    #[must_use]
    pub(crate) fn of_gids(src: [u8; 16], dst: [u8; 16]) -> FlowKey {
        let (src, dst) = (v6_bits(src), v6_bits(dst));
        let is_v4 = |[high, low]: Bits| high == 0 && low & !0xffff_ffff == MAPPED;
        let v6 = if is_v4(src) && is_v4(dst) { 0 } else { V6 };
        FlowKey { src, dst, tail: v6 }
    }

    /// Key of a parsed IP packet with this destination queue pair; `None` if it is not IP.
    #[inline]
    #[must_use]
    pub fn of_packet(frame: &[u8], parsed: &Parsed, dest_qp: Qpn) -> Option<FlowKey> {
        let packet = frame.get(usize::from(parsed.l3_off)..)?;
        match parsed.kind {
            Kind::Routed(L3::V4) => {
                let (header, _) = Ipv4::ref_from_prefix(packet).ok()?;
                Some(FlowKey {
                    src: v4_bits(header.src),
                    dst: v4_bits(header.dst),
                    tail: dest_qp.0,
                })
            }
            Kind::Routed(L3::V6) => {
                let (header, _) = Ipv6::ref_from_prefix(packet).ok()?;
                let tail = dest_qp.0 | V6;
                Some(FlowKey {
                    src: v6_bits(header.src),
                    dst: v6_bits(header.dst),
                    tail,
                })
            }
            Kind::MacControl => None,
        }
    }

    /// Address of the sender.
    #[must_use]
    pub fn src(&self) -> IpAddr {
        self.address(self.src)
    }

    /// Sender, as the table of moved hosts has it.
    #[must_use]
    pub const fn sender(&self) -> HostAddress {
        HostAddress::of_words(self.src, self.is_ipv6())
    }

    /// Address of the receiver.
    #[must_use]
    pub fn dst(&self) -> IpAddr {
        self.address(self.dst)
    }

    /// The queue pair at the receiver.
    #[must_use]
    pub const fn dest_qp(&self) -> Qpn {
        Qpn::new(self.tail)
    }

    /// Returns true for an IPv6 flow.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.tail & V6 != 0
    }

    /// Key of packets to `qpn` in the other direction.
    #[must_use]
    pub const fn reversed(&self, qpn: Qpn) -> FlowKey {
        FlowKey {
            src: self.dst,
            dst: self.src,
            tail: qpn.0 | (self.tail & V6),
        }
    }

    /// Key of packets to `qpn` in the same direction.
    #[must_use]
    pub const fn with_qp(&self, qpn: Qpn) -> FlowKey {
        FlowKey {
            tail: qpn.0 | (self.tail & V6),
            ..*self
        }
    }

    /// Key of packets to the same queue pair whose source is not known: the unspecified address.
    #[must_use]
    pub(crate) const fn sourceless(&self) -> FlowKey {
        let src = if self.is_ipv6() { [0; 2] } else { [0, MAPPED] };
        FlowKey { src, ..*self }
    }

    /// Returns true if the source is the unspecified address.
    #[must_use]
    pub fn is_sourceless(&self) -> bool {
        self.src == self.sourceless().src
    }

    fn address(&self, bits: Bits) -> IpAddr {
        let [high, low] = bits;
        if self.is_ipv6() {
            IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)))
        } else {
            IpAddr::V4(Ipv4Addr::from(low32(low)))
        }
    }
}

/// Returns an address as 128 bits: an IPv4 address in its IPv4-mapped form.
pub fn bits(address: IpAddr) -> Bits {
    match address {
        IpAddr::V4(v4) => v4_bits(v4.octets()),
        IpAddr::V6(v6) => v6_bits(v6.octets()),
    }
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in self.src.into_iter().chain(self.dst) {
            state.write_u64(word);
        }
        state.write_u32(self.tail);
    }
}

/// Key of a flow in one egress queue: the unit that contributes to a queue's depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFlow {
    /// Addresses and destination queue pair.
    pub key: FlowKey,
    /// Egress port.
    pub egress: PortId,
    /// Priority of the queue.
    pub priority: Priority,
}

impl QueueFlow {
    /// Key as five words; equal words mean an equal key. The first holds all but the addresses, which IPv4 has in the second.
    #[inline]
    pub const fn words(&self) -> [u64; 5] {
        let queue = queue_bits(self.egress, self.priority);
        let tail = self.key.tail as u64 | queue;
        if self.key.is_ipv6() {
            let ([a, b], [c, d]) = (self.key.src, self.key.dst);
            return [tail, a, b, c, d];
        }
        let ([_, src], [_, dst]) = (self.key.src, self.key.dst);
        [tail, src << 32 | dst & LOW, 0, 0, 0]
    }

    /// Inverse of [`QueueFlow::words`].
    pub const fn from_words(words: [u64; 5]) -> QueueFlow {
        let [tail, a, b, c, d] = words;
        let [_, _, _, _, egress, priority, ..] = tail.to_le_bytes();
        let key = low32(tail) & (QPN_MASK | V6);
        let (src, dst) = if key & V6 != 0 {
            ([a, b], [c, d])
        } else {
            ([0, MAPPED | a >> 32], [0, MAPPED | a & LOW])
        };
        QueueFlow {
            key: FlowKey {
                src,
                dst,
                tail: key,
            },
            egress: PortId(egress),
            priority: Priority::new(priority),
        }
    }
}

/// Mask of the low half of a word.
const LOW: u64 = 0xffff_ffff;

/// Bits that a queue adds to the first of a queue flow's words.
#[inline]
pub const fn queue_bits(egress: PortId, priority: Priority) -> u64 {
    (egress.0 as u64) << 32 | (priority.get() as u64) << 40
}

/// Pair of words of a packet's flow: all of an IPv4 flow's key, and nearly always enough to tell an IPv6 flow, whose second word is the digest
/// of its addresses. `queue` is [`queue_bits`].
#[inline(always)]
pub const fn pair_of(record: &Record, queue: u64) -> [u64; 2] {
    [record.qp as u64 | queue, record.addresses]
}

const _: () = assert!(Record::V6 == V6);

/// Returns true if the words are an IPv4 flow's.
#[inline]
pub(crate) const fn is_v4(words: &[u64; 5]) -> bool {
    words[0] & V6 as u64 == 0
}

impl Hash for QueueFlow {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in self.words() {
            state.write_u64(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_small_and_shows_what_it_holds() {
        assert!(size_of::<FlowKey>() <= 40);
        let v4 = FlowKey::new(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.2".parse().unwrap(),
            Qpn::new(0x11),
        );
        assert_eq!(v4.to_string(), "10.0.1.3 > 10.0.2.2 qp 0x11");
        assert_eq!(
            v4.reversed(Qpn::new(0x18)).to_string(),
            "10.0.2.2 > 10.0.1.3 qp 0x18"
        );
        let v6 = FlowKey::new(
            "2001:db8::1".parse().unwrap(),
            "2001:db8::2".parse().unwrap(),
            Qpn::new(5),
        );
        assert_eq!(v6.to_string(), "2001:db8::1 > 2001:db8::2 qp 0x5");
    }

    #[test]
    fn a_mapped_address_on_ipv6_is_not_ipv4() {
        let v4 = FlowKey::new(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.2".parse().unwrap(),
            Qpn::new(1),
        );
        let v6 = FlowKey::new(
            "::ffff:10.0.1.3".parse().unwrap(),
            "::ffff:10.0.2.2".parse().unwrap(),
            Qpn::new(1),
        );
        assert_ne!(v4, v6);
    }

    #[test]
    fn queue_flows_round_trip_through_words() {
        let flow = QueueFlow {
            key: FlowKey::new(
                "2001:db8::1".parse().unwrap(),
                "::2".parse().unwrap(),
                Qpn::new(0xff_ffff),
            ),
            egress: PortId(31),
            priority: Priority::new(7),
        };
        assert_eq!(QueueFlow::from_words(flow.words()), flow);
    }
}

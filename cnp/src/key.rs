//! What names a flow: addresses and the destination queue pair of its packets.
//!
//! A key names one *direction*. The reverse direction of a connection is another key, with the other queue pair.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use foldhash::fast::FixedState;
pub(crate) use npcc_pipeline::bits::low32;
use npcc_pipeline::parse::{Kind, L3, Parsed};
use npcc_pipeline::units::{PortId, Priority};
use npcc_pipeline::wire::ipv4::Ipv4;
use npcc_pipeline::wire::ipv6::Ipv6;
use zerocopy::FromBytes;

const QPN_MASK: u32 = 0x00ff_ffff;
const V6: u32 = 1 << 24;
/// `::ffff:0:0/96`, the upper half of the low word.
const MAPPED: u64 = 0xffff_0000_0000;

/// A queue pair number, 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Qpn(u32);

impl Qpn {
    /// The queue pair with the low 24 bits of `value`.
    #[must_use]
    pub const fn new(value: u32) -> Qpn {
        Qpn(value & QPN_MASK)
    }

    /// The number, below 2^24.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#x}", self.0)
    }
}

/// An address as 128 bits; IPv4 is mapped (`::ffff:a.b.c.d`) and the key's family bit tells them apart.
pub(crate) type Bits = [u64; 2];

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

/// One direction of a connection: source, destination, destination queue pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FlowKey {
    pub(crate) src: Bits,
    pub(crate) dst: Bits,
    /// QPN in the low 24 bits, the family bit above.
    tail: u32,
}

impl FlowKey {
    /// A key. When the families differ the key is that of IPv6, with the IPv4 address mapped.
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

    /// A key of two GIDs as a connection manager writes them (an IPv4 address is mapped), with no queue pair.
    #[must_use]
    pub(crate) fn of_gids(src: [u8; 16], dst: [u8; 16]) -> FlowKey {
        let (src, dst) = (v6_bits(src), v6_bits(dst));
        let is_v4 = |[high, low]: Bits| high == 0 && low & !0xffff_ffff == MAPPED;
        let v6 = if is_v4(src) && is_v4(dst) { 0 } else { V6 };
        FlowKey { src, dst, tail: v6 }
    }

    /// The addresses of a parsed IP packet with this destination queue pair; `None` when it is not IP.
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

    /// Who sends packets of this key.
    #[must_use]
    pub fn src(&self) -> IpAddr {
        self.address(self.src)
    }

    /// Who receives them.
    #[must_use]
    pub fn dst(&self) -> IpAddr {
        self.address(self.dst)
    }

    /// The queue pair at the receiver.
    #[must_use]
    pub const fn dest_qp(&self) -> Qpn {
        Qpn::new(self.tail)
    }

    /// Whether this is an IPv6 flow.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.tail & V6 != 0
    }

    /// The key of packets to `qpn` in the other direction.
    #[must_use]
    pub const fn reversed(&self, qpn: Qpn) -> FlowKey {
        FlowKey {
            src: self.dst,
            dst: self.src,
            tail: qpn.0 | (self.tail & V6),
        }
    }

    /// The key of packets to `qpn` in the same direction.
    #[must_use]
    pub const fn with_qp(&self, qpn: Qpn) -> FlowKey {
        FlowKey {
            tail: qpn.0 | (self.tail & V6),
            ..*self
        }
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

pub(crate) fn bits(address: IpAddr) -> Bits {
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

impl fmt::Display for FlowKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} > {} qp {}", self.src(), self.dst(), self.dest_qp())
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A flow in one egress queue: the unit that contributes to a queue's depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFlow {
    /// Addresses and destination queue pair.
    pub key: FlowKey,
    /// Port it leaves by.
    pub egress: PortId,
    /// Its queue there.
    pub priority: Priority,
}

impl QueueFlow {
    /// As five words; equal words mean an equal key. The first holds all but the addresses, which IPv4 has in the second.
    #[inline]
    pub(crate) const fn words(&self) -> [u64; 5] {
        let queue = queue_bits(self.egress, self.priority);
        let tail = self.key.tail as u64 | queue;
        if self.key.is_ipv6() {
            let ([a, b], [c, d]) = (self.key.src, self.key.dst);
            return [tail, a, b, c, d];
        }
        let ([_, src], [_, dst]) = (self.key.src, self.key.dst);
        [tail, src << 32 | dst & LOW, 0, 0, 0]
    }

    /// The inverse of [`QueueFlow::words`].
    pub(crate) const fn from_words(words: [u64; 5]) -> QueueFlow {
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

/// The low half of a word.
const LOW: u64 = 0xffff_ffff;

/// What a queue adds to the first of a queue flow's words.
#[inline]
pub(crate) const fn queue_bits(egress: PortId, priority: Priority) -> u64 {
    (egress.0 as u64) << 32 | (priority.get() as u64) << 40
}

/// The words of an IPv4 flow: `addresses` are source and destination as they stand in the header, `queue` is
/// [`queue_bits`].
#[inline]
pub(crate) const fn words_v4(addresses: u64, dest_qp: u32, queue: u64) -> [u64; 5] {
    [(dest_qp & QPN_MASK) as u64 | queue, addresses, 0, 0, 0]
}

/// The words of an IPv6 flow: `addresses` are source and destination, the high half of each first, `queue` is [`queue_bits`].
#[inline]
pub(crate) const fn words_of_v6(addresses: [u64; 4], dest_qp: u32, queue: u64) -> [u64; 5] {
    let [a, b, c, d] = addresses;
    [(dest_qp & QPN_MASK | V6) as u64 | queue, a, b, c, d]
}

/// Whether words are an IPv4 flow's.
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

/// The hash used everywhere here: foldhash with a seed of its owner.
#[derive(Debug, Clone)]
pub(crate) struct KeyHasher {
    fold: FixedState,
    /// Odd.
    seeds: [u64; 3],
}

impl KeyHasher {
    pub(crate) fn new(seed: u64) -> KeyHasher {
        let fold = FixedState::with_seed(seed);
        let seeds = [1u64, 2, 3].map(|n| fold.hash_one(n) | 1);
        KeyHasher { fold, seeds }
    }

    #[inline]
    pub(crate) fn hash<T: Hash>(&self, value: &T) -> u64 {
        self.fold.hash_one(value)
    }

    /// The hash of a queue flow's words, in two multiplications where the addresses are IPv4 and four where not. The high
    /// bits are the good ones.
    ///
    /// One multiplication is not enough: numbers that follow one another then give an arithmetic progression, which may
    /// meet few sets. The second puts all bits of the first one's halves, combined, into the high ones.
    #[inline]
    pub(crate) fn of_words(&self, words: &[u64; 5]) -> u64 {
        let [tail, first, second, third, fourth] = *words;
        if is_v4(words) {
            return self.of_v4([tail, first]);
        }
        let [a, b, c] = self.seeds;
        let addresses = multiply(first ^ a, third ^ b) ^ multiply(second ^ c, fourth ^ a);
        multiply(addresses ^ tail, b).wrapping_mul(SPREAD)
    }

    /// The hash of an IPv4 flow's first two words, which are all that it has.
    #[inline]
    pub(crate) fn of_v4(&self, [tail, addresses]: [u64; 2]) -> u64 {
        self.v4().hash([tail, addresses])
    }

    /// The hasher of IPv4 flows by itself, to be kept in registers.
    #[inline]
    pub(crate) const fn v4(&self) -> V4Hasher {
        let [a, b, _] = self.seeds;
        V4Hasher { a, b }
    }
}

/// [`KeyHasher::of_v4`] by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct V4Hasher {
    a: u64,
    b: u64,
}

impl V4Hasher {
    #[inline(always)]
    pub(crate) fn hash(self, [tail, addresses]: [u64; 2]) -> u64 {
        multiply(addresses ^ self.a, tail ^ self.b).wrapping_mul(SPREAD)
    }
}

/// 2^64 over the golden ratio, odd.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of a product, combined.
#[inline]
fn multiply(a: u64, b: u64) -> u64 {
    let (low, high) = a.carrying_mul(b, 0);
    low ^ high
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

    /// An address of either family whose last 32 bits are these.
    fn host(v6: bool, last: u32) -> IpAddr {
        if v6 {
            Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(last)).into()
        } else {
            Ipv4Addr::from(0x0a00_0000 | last).into()
        }
    }

    /// Source, destination and queue pair of flow `n`.
    type Fields = fn(u32) -> [u32; 3];

    /// Flows as they come in practice: numbers follow one another in one field or in two.
    const FAMILIES: [(&str, Fields); 9] = [
        ("consecutive queue pairs", |n| [1, 0x0201, 0x11 + n]),
        ("every fourth queue pair", |n| [1, 0x0201, n << 2]),
        ("every 64th queue pair", |n| [1, 0x0201, n << 6]),
        ("queue pairs counted in the high octet", |n| {
            [1, 0x0201, (n & 0xff) << 16 | n >> 8]
        }),
        ("consecutive senders", |n| [n, 0x80_0000, 0x11]),
        ("consecutive receivers", |n| [0x80_0000, n, 0x11]),
        ("senders a subnet apart", |n| {
            [(n & 0xff) << 16 | n >> 8, 1, 0x11]
        }),
        ("eight by eight hosts", |n| {
            [n & 7, 0x200 | n >> 3 & 7, n >> 6]
        }),
        ("256 senders to 256 receivers, one queue pair each", |n| {
            [n & 0xff, 0x1_0000 | n >> 8, 0x11]
        }),
    ];

    /// As many flows do not find room in their sets of eight as when sets were drawn by lot, give or take 5 sigma.
    #[test]
    fn flows_that_follow_one_another_crowd_no_more_than_by_chance() {
        const FLOWS: u32 = 1 << 15;
        const SETS_LOG2: u32 = 13;
        // Poisson with mean 4: flows beyond eight of a set, and their square.
        let (mut more, mut square, mut chance) = (0.0, 0.0, (-4.0f64).exp());
        for flows in 0..60u32 {
            let beyond = f64::from(flows.saturating_sub(8));
            more += beyond * chance;
            square += beyond * beyond * chance;
            chance *= 4.0 / f64::from(flows + 1);
        }
        let sets = f64::from(1u32 << SETS_LOG2);
        let (mean, sigma) = (more * sets, ((square - more * more) * sets).sqrt());
        for (name, fields) in FAMILIES {
            for (seed, v6) in [1, 7, 0xdead, 1 << 40]
                .into_iter()
                .zip([false, true].into_iter().cycle())
                .chain([(1, true), (7, false)])
            {
                let hasher = KeyHasher::new(seed);
                let mut sets = vec![0u32; 1 << SETS_LOG2];
                for [src, dst, qpn] in (0..FLOWS).map(fields) {
                    let flow = QueueFlow {
                        key: FlowKey::new(host(v6, src), host(v6, dst), Qpn::new(qpn)),
                        egress: PortId(1),
                        priority: Priority::new(3),
                    };
                    // Three bits choose the slot of the set: see the flow cache.
                    let set = hasher.of_words(&flow.words()) >> 35 & ((1 << SETS_LOG2) - 1);
                    sets[set as usize] += 1;
                }
                let beyond: u32 = sets.iter().map(|flows| flows.saturating_sub(8)).sum();
                assert!(
                    f64::from(beyond) < mean + 5.0 * sigma,
                    "{name}, seed {seed}, IPv6 {v6}: {beyond} beyond eight, by chance {mean:.0} +- {sigma:.0}"
                );
            }
        }
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

//! Reader by AVX2. Each word below has one lane of 64 bits a frame, in the order of the frames.
//!
//! Everything that must have one value is compared as a whole: `differ` collects the bits that are not as expected. A group of
//! four in which any is set, or a packet is counted one by one, is left to the scalar reader.
//!
//! One file of more than 400 lines: all of it is inlined into one loop, whose vectors stay in registers from the first load to the last store.

use std::arch::x86_64::*;
use std::mem::offset_of;
use std::ops::{BitAnd, BitOr};

use npcc_pipeline::bits::Octets;
use npcc_pipeline::burst::Record;
use npcc_pipeline::frame::{FrameBuf, MetaFlags};
use npcc_pipeline::stage::heads::{FOUR, HeadsRead, VectorReader};
use npcc_pipeline::stage::kinds::{FrameKind, flags_of, l3_off};
use npcc_pipeline::stage::parse::{IngressPort, Seen};
use npcc_pipeline::wire::bth::{RoceClass, TRAITS, Traits};
use npcc_pipeline::wire::{ethernet, udp};

/// The reader; made only on a processor that has AVX2.
#[derive(Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Returns the reader if this processor can run it.
    pub(crate) fn detected() -> Option<Avx2> {
        is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }
}

impl<B: FrameBuf> VectorReader<B> for Avx2 {
    fn read(
        &self,
        kind: FrameKind,
        (port, seen): (&IngressPort, &Seen),
        frames: &[B],
        records: &mut [Record],
    ) -> HeadsRead {
        // SAFETY: an `Avx2` is made only where the processor has AVX2.
        unsafe {
            match kind {
                FrameKind::V4 => read::<false, false, B>(port, seen, frames, records),
                FrameKind::TaggedV4 => read::<true, false, B>(port, seen, frames, records),
                FrameKind::V6 => read::<false, true, B>(port, seen, frames, records),
                FrameKind::TaggedV6 => read::<true, true, B>(port, seen, frames, records),
            }
        }
    }
}

/// Traits of each opcode in the low 16 bits; in the highest octet, the flags that a packet with these traits may have.
static TRAITS_AND_FLAGS: [u32; 256] = {
    let mut table = [0; 256];
    let mut opcode = 0;
    while opcode < 256 {
        let traits = TRAITS[opcode];
        let kept = MetaFlags(0xff).of_class(traits).0;
        table[opcode] = traits.bits() as u32 | (kept as u32) << 24;
        opcode += 1;
    }
    table
};

/// Classes whose packets the scalar reader counts one by one.
const SPEAK: i64 =
    (RoceClass::Cnp.bit() | RoceClass::Datagram.bit() | RoceClass::Unsupported.bit()) as i64;

/// Bytes of an IP header without options or extension headers.
const fn ip_len(v6: bool) -> usize {
    if v6 { 40 } else { 20 }
}

/// Bytes above IP of the shortest RoCEv2 packet. Shorter packets are left to the scalar reader.
const SHORTEST_ROCE: usize = 24;

/// The record as four words, in which it is stored.
const _: () = assert!(
    size_of::<Record>() == 32
        && offset_of!(Record, addresses) == 0
        && offset_of!(Record, ack_psn) == 8
        && offset_of!(Record, qp) == 12
        && offset_of!(Record, slot) == 16
        && offset_of!(Record, len) == 20
        && offset_of!(Record, src_port) == 22
        && offset_of!(Record, traits) == 24
        && offset_of!(Record, tos) == 26
        && offset_of!(Record, flags) == 27
        && offset_of!(Record, queue) == 28
);

#[inline]
#[target_feature(enable = "avx2")]
fn all(word: u64) -> __m256i {
    _mm256_set1_epi64x(word.cast_signed())
}

/// Returns a shuffle that puts octet `from[n]` of a lane in its octet `n`, or 0 where that is negative.
const fn shuffle(from: [i8; 8]) -> [i8; 32] {
    let mut places = [-1; 32];
    let mut octet = 0;
    while octet < 32 {
        let place = from[octet % 8];
        if place >= 0 {
            // Octets are counted from the start of each half of 128 bits, which has two lanes.
            places[octet] = place + if octet % 16 >= 8 { 8 } else { 0 };
        }
        octet += 1;
    }
    places
}

#[inline]
#[target_feature(enable = "avx2")]
fn by(places: &'static [i8; 32]) -> __m256i {
    // SAFETY: the array has the size of a vector, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(places.as_ptr().cast()) }
}

/// Returns the word at an offset of each of four frames.
///
/// # Safety
/// Each pointer is to a frame of at least `at + 8` bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn words(frames: [*const u8; FOUR], at: usize) -> __m256i {
    // SAFETY: as the caller promises; the loads need no alignment.
    let [a, b, c, d] = frames.map(|frame| unsafe { frame.add(at).cast::<i64>().read_unaligned() });
    _mm256_set_epi64x(d, c, b, a)
}

/// Transposes: word `n` of each of four vectors becomes a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed([a, b, c, d]: [__m256i; FOUR]) -> [__m256i; FOUR] {
    let (even, odd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    let (more_even, more_odd) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
    [
        _mm256_permute2x128_si256::<0x20>(even, more_even),
        _mm256_permute2x128_si256::<0x20>(odd, more_odd),
        _mm256_permute2x128_si256::<0x31>(even, more_even),
        _mm256_permute2x128_si256::<0x31>(odd, more_odd),
    ]
}

/// Returns the four words from an offset on, of each of four frames.
///
/// # Safety
/// Each pointer is to a frame of at least `at + 32` bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn four_words(frames: [*const u8; FOUR], at: usize) -> [__m256i; FOUR] {
    // SAFETY: as the caller promises; the loads need no alignment.
    let [a, b, c, d] = frames.map(|frame| unsafe { _mm256_loadu_si256(frame.add(at).cast()) });
    transposed([a, b, c, d])
}

/// Fields of four packets that depend on the IP version.
struct Ip {
    /// Bits that are not as a good packet has them.
    differ: __m256i,
    addresses: __m256i,
    /// DSCP and ECN, in the low octet.
    tos: __m256i,
    /// Source port in the highest two octets, as a number.
    src_port: __m256i,
    /// Destination port and length of UDP, as they stand, in the low 32 bits; protocol in the highest octet.
    to: __m256i,
}

/// Values that the frames of a kind are compared with, in each lane.
struct Expected {
    /// Length that all frames exceed.
    least: __m256i,
    /// Length that no frame reaches.
    longest: __m256i,
    mac: __m256i,
    /// Tag and EtherType: the word that ends where the IP header begins.
    tag: __m256i,
    tag_mask: __m256i,
}

impl Expected {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new<const TAGGED: bool, const V6: bool>(port: &IngressPort, seen: &Seen) -> Expected {
        let l3 = l3_off::<TAGGED>();
        let shortest = (l3 + ip_len(V6) + SHORTEST_ROCE).max(60);
        let ethertype = if V6 { ethernet::IPV6 } else { ethernet::IPV4 };
        let [high, low] = ethertype.to_be_bytes();
        let [t0, t1, t2, t3] = seen.tag().to_be_bytes();
        let (tag, mask) = if TAGGED {
            (
                [0, 0, t0, t1, t2, t3, high, low],
                [0, 0, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff],
            )
        } else {
            (
                [0, 0, 0, 0, 0, 0, high, low],
                [0, 0, 0, 0, 0, 0, 0xff, 0xff],
            )
        };
        Expected {
            least: all(shortest as u64 - 1),
            longest: all((port.longest() + l3 - ethernet::HEADER_LEN) as u64 + 1),
            mac: all(port.mac_word() << 16),
            tag: all(u64::from_le_bytes(tag)),
            tag_mask: all(u64::from_le_bytes(mask)),
        }
    }

    /// Returns true if all lengths are in range.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn fits(&self, lens: __m256i) -> bool {
        let fits = _mm256_and_si256(
            _mm256_cmpgt_epi64(lens, self.least),
            _mm256_cmpgt_epi64(self.longest, lens),
        );
        _mm256_movemask_epi8(fits) == -1
    }

    /// Returns the bits in which the first word is not as expected.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn not_ours(&self, first: __m256i) -> __m256i {
        _mm256_xor_si256(_mm256_slli_epi64::<16>(first), self.mac)
    }

    /// Returns the bits in which the word before IP is not as expected.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn not_kind(&self, before_ip: __m256i) -> __m256i {
        _mm256_xor_si256(_mm256_and_si256(before_ip, self.tag_mask), self.tag)
    }
}

/// Reads groups of four frames of one kind, up to the first group that the scalar reader must read.
#[target_feature(enable = "avx2")]
fn read<const TAGGED: bool, const V6: bool, B: FrameBuf>(
    port: &IngressPort,
    seen: &Seen,
    frames: &[B],
    records: &mut [Record],
) -> HeadsRead {
    let l3 = l3_off::<TAGGED>();
    let upper = l3 + ip_len(V6);
    let expected = Expected::new::<TAGGED, V6>(port, seen);
    let keys = port.digest().keys().map(|key| all(key));
    let zero = _mm256_setzero_si256();
    let (mut read, mut bytes) = (0, zero);
    let (mut tos_all, mut tos_any) = (all(0xff), zero);
    let groups = frames.as_chunks::<FOUR>().0;
    for (four, out) in groups.iter().zip(records.as_chunks_mut::<FOUR>().0) {
        let [a, b, c, d] = four.each_ref().map(FrameBuf::data);
        let len = |frame: &[u8]| frame.len().cast_signed() as i64;
        let lens = _mm256_set_epi64x(len(d), len(c), len(b), len(a));
        if !expected.fits(lens) {
            break;
        }
        let starts = [a.as_ptr(), b.as_ptr(), c.as_ptr(), d.as_ptr()];
        // The last seven octets of the BTH, and the one behind it.
        // SAFETY: each frame has at least 60 bytes, and `upper` and `SHORTEST_ROCE` together, behind which nothing is loaded.
        let (ip, differ, transport) = unsafe {
            let ip = if V6 {
                read_v6(starts, lens, l3, keys)
            } else {
                read_v4(starts, lens, l3)
            };
            let mut differ = expected.not_ours(words(starts, 0));
            // The word from the EtherType on is one of those that are read of IPv4.
            if TAGGED || V6 {
                let not_kind = expected.not_kind(words(starts, l3 - 8));
                differ = _mm256_or_si256(differ, not_kind);
            }
            (ip, differ, words(starts, upper + 13))
        };
        let differ = _mm256_or_si256(ip.differ, differ);
        if _mm256_testz_si256(differ, differ) == 0 {
            break;
        }
        let is_roce = ip.is_roce(_mm256_sub_epi64(lens, all(upper as u64)));
        // SAFETY: as above.
        let Some(traits) = (unsafe { traits::<V6>((starts, upper), transport, is_roce) }) else {
            break;
        };
        let last = last_word(ip.tos, (traits, is_roce), flags_of::<TAGGED, V6>().into());
        // No slot yet.
        let third = _mm256_or_si256(all(0xffff_ffff), _mm256_slli_epi64::<32>(lens));
        let third = _mm256_or_si256(third, ip.src_port);
        let place = out.as_mut_ptr().cast::<__m256i>();
        let all_words = transposed([ip.addresses, transport_word::<V6>(transport), third, last]);
        for (n, words) in all_words.into_iter().enumerate() {
            // SAFETY: there are four records of 32 bytes, laid out as is asserted above, and any bits are a record.
            unsafe { _mm256_storeu_si256(place.add(n), words) };
        }
        tos_all = _mm256_and_si256(tos_all, ip.tos);
        tos_any = _mm256_or_si256(tos_any, ip.tos);
        bytes = _mm256_add_epi64(bytes, lens);
        read += FOUR;
    }
    let [all, any] =
        [tos_all, tos_any].map(|lanes| lanes_of(lanes).map(|lane| lane.to_le_bytes()[0]));
    HeadsRead {
        frames: read,
        bytes: lanes_of(bytes).iter().sum(),
        tos: Octets {
            all: all.into_iter().fold(u8::MAX, BitAnd::bitand),
            any: any.into_iter().fold(0, BitOr::bitor),
        },
    }
}

/// Returns the words in the lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes_of(words: __m256i) -> [u64; FOUR] {
    [
        _mm256_extract_epi64::<0>(words),
        _mm256_extract_epi64::<1>(words),
        _mm256_extract_epi64::<2>(words),
        _mm256_extract_epi64::<3>(words),
    ]
    .map(i64::cast_unsigned)
}

impl Ip {
    /// Returns all bits of each lane whose packet is RoCEv2; `above` are the bytes above IP.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn is_roce(&self, above: __m256i) -> __m256i {
        static LEN_AT_2: [i8; 32] = shuffle([-1, -1, 1, 0, -1, -1, -1, -1]);
        let port = u64::from(udp::ROCEV2_PORT.swap_bytes());
        let port = all(port | u64::from(udp::PROTOCOL) << 56);
        let expected = _mm256_or_si256(port, _mm256_shuffle_epi8(above, by(&LEN_AT_2)));
        _mm256_cmpeq_epi64(self.to, expected)
    }
}

/// Returns the entries of [`TRAITS_AND_FLAGS`] for the opcodes, 0 if not RoCEv2; `None` if any packet speaks. The highest octet of
/// `transport` is the one behind the BTH.
///
/// # Safety
/// Each pointer is to a frame of at least `upper + 9` bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn traits<const V6: bool>(
    (starts, upper): ([*const u8; FOUR], usize),
    transport: __m256i,
    is_roce: __m256i,
) -> Option<__m256i> {
    // SAFETY: as the caller promises.
    let opcodes = starts.map(|start| unsafe { *start.add(upper + 8) });
    let [a, b, c, d] = opcodes.map(|opcode| i64::from(TRAITS_AND_FLAGS[usize::from(opcode)]));
    let zero = _mm256_setzero_si256();
    let family = if V6 { all(u64::from(Traits::V6)) } else { zero };
    let traits = _mm256_or_si256(_mm256_set_epi64x(d, c, b, a), family);
    let traits = _mm256_and_si256(traits, is_roce);
    if _mm256_testz_si256(traits, _mm256_set1_epi64x(SPEAK)) == 0 {
        return None;
    }
    // A NAK is an ACK with any of these two bits of its syndrome.
    let negative = _mm256_and_si256(transport, all(0b0110_0000 << 56));
    let positive = _mm256_cmpeq_epi64(negative, zero);
    let ack = all(u64::from(RoceClass::Ack.bit()));
    if _mm256_testz_si256(_mm256_andnot_si256(positive, traits), ack) == 0 {
        return None;
    }
    Some(traits)
}

/// Returns the second word of the records: the last seven octets of the BTH as numbers, and the IP version.
#[inline]
#[target_feature(enable = "avx2")]
fn transport_word<const V6: bool>(as_it_stands: __m256i) -> __m256i {
    static REVERSED: [i8; 32] = shuffle([6, 5, 4, 3, 2, 1, 0, -1]);
    let word = _mm256_shuffle_epi8(as_it_stands, by(&REVERSED));
    if V6 {
        _mm256_or_si256(word, all(u64::from(Record::V6) << 32))
    } else {
        word
    }
}

/// Returns the last word of the records: traits, TOS and flags.
#[inline]
#[target_feature(enable = "avx2")]
fn last_word(tos: __m256i, (traits, is_roce): (__m256i, __m256i), kind: u64) -> __m256i {
    static FLAGS: [i8; 32] = {
        let mut flags = [0; 32];
        let mut ecn = 0;
        while ecn < 4 {
            flags[ecn as usize] = MetaFlags::of_ecn(ecn).0.cast_signed();
            flags[16 + ecn as usize] = flags[ecn as usize];
            ecn += 1;
        }
        flags
    };
    let of_flags = all(0xff00_0000);
    let ecn = _mm256_slli_epi64::<24>(_mm256_and_si256(tos, all(3)));
    // The octets other than that of the flags are 0 here, as the flags of Not-ECT are.
    let flags = _mm256_or_si256(_mm256_shuffle_epi8(by(&FLAGS), ecn), all(kind << 24));
    let kept = _mm256_blendv_epi8(of_flags, traits, is_roce);
    let flags = _mm256_and_si256(flags, _mm256_and_si256(kept, of_flags));
    let traits = _mm256_and_si256(traits, all(0xffff));
    _mm256_or_si256(_mm256_or_si256(traits, flags), _mm256_slli_epi64::<16>(tos))
}

/// Reads four IPv4 headers without options at `l3`, of packets that end with their frames.
///
/// # Safety
/// Each pointer is to a frame of at least `l3 + 30` bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn read_v4(starts: [*const u8; FOUR], lens: __m256i, l3: usize) -> Ip {
    static REVERSED: [i8; 32] = shuffle([7, 6, 5, 4, 3, 2, 1, 0]);
    static SRC_PORT: [i8; 32] = shuffle([-1, -1, -1, -1, -1, -1, 7, 6]);
    static LEN_AT_4: [i8; 32] = shuffle([-1, -1, -1, -1, 1, 0, -1, -1]);
    let low16 = all(0xffff);
    // From the EtherType on: version, TOS, length, identification | fragment, TTL, protocol, checksum, source | source,
    // destination, source port | destination port, length.
    // SAFETY: as the caller promises.
    let [x0, x1, x2, x3] = unsafe { four_words(starts, l3 - 2) };
    let len = _mm256_shuffle_epi8(_mm256_sub_epi64(lens, all(l3 as u64)), by(&LEN_AT_4));
    let shape = all(0x45 << 16 | u64::from(ethernet::IPV4.swap_bytes()));
    let shape = _mm256_or_si256(shape, len);
    let shape = _mm256_xor_si256(_mm256_and_si256(x0, all(0x0000_ffff_00ff_ffff)), shape);
    let fragment = _mm256_and_si256(x1, all(u64::from_le_bytes([0x3f, 0xff, 0, 0, 0, 0, 0, 0])));
    // The one's complement sum of the header, of its halves of 32 bits and then of 16, is all ones.
    let halves = |word| {
        let high = _mm256_srli_epi64::<32>(word);
        _mm256_add_epi64(_mm256_and_si256(word, all(0xffff_ffff)), high)
    };
    let head = _mm256_add_epi64(
        halves(_mm256_srli_epi64::<16>(x0)),
        halves(_mm256_and_si256(x2, all(0x0000_ffff_ffff_ffff))),
    );
    let sum = _mm256_add_epi64(head, halves(x1));
    let fold = |sum| _mm256_add_epi64(_mm256_and_si256(sum, low16), _mm256_srli_epi64::<16>(sum));
    let checksum = _mm256_xor_si256(fold(fold(sum)), low16);
    let addresses = _mm256_or_si256(_mm256_srli_epi64::<48>(x1), _mm256_slli_epi64::<16>(x2));
    let addresses = _mm256_shuffle_epi8(addresses, by(&REVERSED));
    // The first octets of both; 1 elsewhere, which is a good one.
    let octets = _mm256_and_si256(addresses, all(0xff00_0000_ff00_0000));
    let octets = _mm256_or_si256(octets, all(0x0001_0101_0001_0101));
    let is = |octet| _mm256_cmpeq_epi8(octets, _mm256_set1_epi8(octet));
    let above = _mm256_cmpeq_epi8(
        _mm256_max_epu8(octets, _mm256_set1_epi8(224u8.cast_signed())),
        octets,
    );
    let suspect = _mm256_or_si256(
        _mm256_or_si256(is(0), is(127)),
        _mm256_or_si256(is(169u8.cast_signed()), above),
    );
    let differ = _mm256_or_si256(_mm256_or_si256(shape, fragment), checksum);
    let protocol = _mm256_slli_epi64::<32>(_mm256_and_si256(x1, all(0xff00_0000)));
    Ip {
        differ: _mm256_or_si256(differ, suspect),
        addresses,
        tos: _mm256_and_si256(_mm256_srli_epi64::<24>(x0), all(0xff)),
        src_port: _mm256_shuffle_epi8(x2, by(&SRC_PORT)),
        to: _mm256_blend_epi32::<0b1010_1010>(x3, protocol),
    }
}

/// Reads four IPv6 headers at `l3`, of packets that end with their frames, and with no extension header.
///
/// # Safety
/// Each pointer is to a frame of at least `l3 + 48` bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn read_v6(
    starts: [*const u8; FOUR],
    lens: __m256i,
    l3: usize,
    keys: [__m256i; FOUR],
) -> Ip {
    static SRC_PORT: [i8; 32] = shuffle([-1, -1, -1, -1, -1, -1, 1, 0]);
    static LEN_AT_4: [i8; 32] = shuffle([-1, -1, -1, -1, 1, 0, -1, -1]);
    // SAFETY: as the caller promises.
    let (head, addresses, ports) = unsafe {
        (
            words(starts, l3),
            four_words(starts, l3 + 8),
            words(starts, l3 + 40),
        )
    };
    let len = _mm256_shuffle_epi8(_mm256_sub_epi64(lens, all(l3 as u64 + 40)), by(&LEN_AT_4));
    let shape = _mm256_or_si256(all(0x60), len);
    let shape = _mm256_xor_si256(_mm256_and_si256(head, all(0x0000_ffff_0000_00f0)), shape);
    let next = _mm256_and_si256(head, all(0x00ff_0000_0000_0000));
    let is = |protocol: u8| _mm256_cmpeq_epi64(next, all(u64::from(protocol) << 48));
    let ends = _mm256_or_si256(is(udp::PROTOCOL), _mm256_or_si256(is(6), is(58)));
    let mut differ = _mm256_or_si256(shape, _mm256_andnot_si256(ends, all(1)));
    let [src, _, dst, _] = addresses;
    for half in [src, dst] {
        // Addresses that begin with an octet of 0, or of fe or above, need a closer check. 1 elsewhere is good.
        let octet = _mm256_and_si256(half, all(0xff));
        let octet = _mm256_or_si256(octet, all(0x0101_0101_0101_0100));
        let above = _mm256_max_epu8(octet, _mm256_set1_epi8(0xfeu8.cast_signed()));
        let special = _mm256_or_si256(
            _mm256_cmpeq_epi8(octet, _mm256_setzero_si256()),
            _mm256_cmpeq_epi8(above, octet),
        );
        differ = _mm256_or_si256(differ, special);
    }
    let mut digest = _mm256_setzero_si256();
    for (word, key) in addresses.into_iter().zip(keys) {
        let sums = _mm256_add_epi32(word, key);
        let product = _mm256_mul_epu32(sums, _mm256_srli_epi64::<32>(sums));
        digest = _mm256_add_epi64(digest, product);
    }
    let tos = _mm256_or_si256(
        _mm256_and_si256(_mm256_srli_epi64::<12>(head), all(0x0f)),
        _mm256_and_si256(_mm256_slli_epi64::<4>(head), all(0xf0)),
    );
    Ip {
        differ,
        addresses: digest,
        tos,
        src_port: _mm256_shuffle_epi8(ports, by(&SRC_PORT)),
        to: _mm256_blend_epi32::<0b1010_1010>(
            _mm256_srli_epi64::<16>(ports),
            _mm256_slli_epi64::<8>(next),
        ),
    }
}

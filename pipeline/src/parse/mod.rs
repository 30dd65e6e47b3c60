//! Parser from Ethernet to BTH in one pass: finds offsets, reads the fields later stages need, and refuses what must not be
//! routed.
//!
//! Only the addresses of a fragment are read, nothing above IP. The ICRC is not checked; forwarding does not change a covered
//! byte (IBTA annex A17.3.3).

pub(crate) mod common;
pub mod digest;

use zerocopy::FromBytes;

use crate::bits::{low8, low16, low32};
use crate::drop::DropReason;
use crate::wire::bth::{self, Bth, RoceClass};
use crate::wire::checksum;
use crate::wire::ethernet::{self, Ethernet, Tag};
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6::{self, Ipv6};
use crate::wire::udp::{self, Udp};

/// Layer 3 protocol of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum L3 {
    /// IPv4 packet.
    V4,
    /// IPv6 packet.
    V6,
}

/// Treatment of a frame by the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Frame to be routed.
    Routed(L3),
    /// MAC control frame (pause, PFC): consumed here, never forwarded.
    MacControl,
}

/// RoCEv2 part of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roce {
    /// Offset of the BTH in the frame.
    pub bth_off: u16,
    /// Class by which NPCC treats the packet.
    pub class: RoceClass,
    /// Opcode: transport and operation.
    pub opcode: u8,
    /// Destination queue pair, 24 bits.
    pub dest_qp: u32,
    /// Last word of the BTH: AckReq in the highest bit, the packet sequence number in the low 24.
    pub ack_psn: u32,
    /// UDP source port.
    pub src_port: u16,
}

impl Roce {
    /// Returns the packet sequence number, 24 bits.
    #[inline]
    #[must_use]
    pub const fn psn(&self) -> u32 {
        self.ack_psn & 0x00ff_ffff
    }

    /// Returns true if the sender requests an acknowledgement.
    #[inline]
    #[must_use]
    pub const fn ack_req(&self) -> bool {
        self.ack_psn >> 31 == 1
    }
}

/// Offsets and fields of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed {
    /// Kind of frame: routed, or MAC control.
    pub kind: Kind,
    /// Offset of the IP header, or of the MAC control opcode.
    pub l3_off: u8,
    /// Tag control word of the outer VLAN tag.
    pub tci: Option<u16>,
    /// Number of tags in front of layer 3, 0 to 2.
    pub tags: u8,
    /// DSCP (high six bits) and ECN (low two).
    pub tos: u8,
    /// Length of the IP packet, header included; 0 for MAC control.
    pub ip_len: u16,
    /// IP protocol after extension headers; 0 if unread.
    pub protocol: u8,
    /// Offset of the layer 4 header; 0 for a fragment, whose layer 4 is not read.
    pub l4_off: u16,
    /// Source (high half) and destination of an IPv4 packet; 0 otherwise.
    pub addresses_v4: u64,
    /// RoCEv2 headers; `None` for a fragment, or if they are cut short.
    pub roce: Option<Roce>,
}

impl Parsed {
    /// Returns a frame of this kind with no other field set.
    #[must_use]
    pub const fn nothing(kind: Kind) -> Parsed {
        Parsed {
            kind,
            l3_off: 0,
            tci: None,
            tags: 0,
            tos: 0,
            ip_len: 0,
            protocol: 0,
            l4_off: 0,
            addresses_v4: 0,
            roce: None,
        }
    }

    /// Returns true if it is an IPv6 packet.
    #[inline]
    #[must_use]
    pub const fn is_v6(&self) -> bool {
        matches!(self.kind, Kind::Routed(L3::V6))
    }

    /// Returns the destination of an IPv4 packet.
    #[inline]
    #[must_use]
    pub const fn dst_v4(&self) -> u32 {
        low32(self.addresses_v4)
    }

    /// Returns the ECN field: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168 section 5).
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }

    /// Returns the DSCP, 0..=63.
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.tos >> 2
    }
}

/// Parses a frame of any kind.
///
/// # Errors
/// Returns the drop reason if the frame is cut short, over-tagged, not IP, or its IP header is wrong.
pub fn parse(frame: &[u8]) -> Result<Parsed, DropReason> {
    let (header, _) = Ethernet::ref_from_prefix(frame).map_err(|_| DropReason::Runt)?;
    let (ethertype, l3_off, tags, tci) = match header.ethertype.get() {
        ethernet::VLAN | ethernet::QINQ => tagged(frame)?,
        plain => (plain, ethernet::HEADER_LEN, 0, None),
    };
    let parsed = Parsed {
        l3_off: low8(l3_off),
        tci,
        tags,
        ..Parsed::nothing(Kind::MacControl)
    };
    match ethertype {
        ethernet::IPV4 => parse_ipv4(frame, parsed),
        ethernet::IPV6 => parse_ipv6(frame, parsed),
        // 802.1Qbb: a MAC control frame is never tagged.
        ethernet::MAC_CONTROL if tags == 0 => Ok(parsed),
        _ => Err(DropReason::NotIp),
    }
}

/// Steps over one or two tags; returns inner EtherType, layer 3 offset, number of tags, outer tag control word.
#[cold]
fn tagged(frame: &[u8]) -> Result<(u16, usize, u8, Option<u16>), DropReason> {
    let (outer, inner_bytes) = tag_at(frame, ethernet::HEADER_LEN)?;
    let tci = Some(outer.tci.get());
    let off = ethernet::HEADER_LEN + ethernet::TAG_LEN;
    match outer.ethertype.get() {
        ethernet::VLAN | ethernet::QINQ => {
            let (inner, _) = Tag::ref_from_prefix(inner_bytes).map_err(|_| DropReason::Runt)?;
            match inner.ethertype.get() {
                ethernet::VLAN | ethernet::QINQ => Err(DropReason::VlanDepth),
                ethertype => Ok((ethertype, off + ethernet::TAG_LEN, 2, tci)),
            }
        }
        ethertype => Ok((ethertype, off, 1, tci)),
    }
}

fn tag_at(frame: &[u8], off: usize) -> Result<(&Tag, &[u8]), DropReason> {
    Tag::ref_from_prefix(frame.get(off..).unwrap_or_default()).map_err(|_| DropReason::Runt)
}

#[inline]
fn parse_ipv4(frame: &[u8], mut parsed: Parsed) -> Result<Parsed, DropReason> {
    let l3_off = usize::from(parsed.l3_off);
    let packet = frame.get(l3_off..).unwrap_or_default();
    let (header, _) = Ipv4::ref_from_prefix(packet).map_err(|_| DropReason::Runt)?;
    let header_len = header.header_len();
    if header.version() != 4 || header_len < ipv4::MIN_LEN {
        return Err(DropReason::IpHeader);
    }
    let total_len = header.total_len.get();
    if usize::from(total_len) < header_len {
        return Err(DropReason::IpHeader);
    }
    if packet.len() < usize::from(total_len) {
        return Err(DropReason::IpTruncated);
    }
    if checksum::sum(packet.get(..header_len).unwrap_or_default()) != 0xffff {
        return Err(DropReason::IpChecksum);
    }
    if martian_v4(header.src) || martian_v4(header.dst) {
        return Err(reason_v4(header.src, header.dst));
    }
    parsed.kind = Kind::Routed(L3::V4);
    parsed.tos = header.tos;
    parsed.ip_len = total_len;
    parsed.protocol = header.protocol;
    let [src, dst] = [header.src, header.dst].map(|address| u64::from(u32::from_be_bytes(address)));
    parsed.addresses_v4 = src << 32 | dst;
    if !header.is_fragment() {
        let end = l3_off + usize::from(total_len);
        read_l4(frame, l3_off + header_len, end, &mut parsed);
    }
    Ok(parsed)
}

fn parse_ipv6(frame: &[u8], mut parsed: Parsed) -> Result<Parsed, DropReason> {
    let l3_off = usize::from(parsed.l3_off);
    let packet = frame.get(l3_off..).unwrap_or_default();
    let (header, _) = Ipv6::ref_from_prefix(packet).map_err(|_| DropReason::Runt)?;
    if header.version() != 6 {
        return Err(DropReason::IpHeader);
    }
    let total_len = ipv6::HEADER_LEN + usize::from(header.payload_len.get());
    if packet.len() < total_len {
        return Err(DropReason::IpTruncated);
    }
    refused_v6(&header.src, &header.dst).map_or(Ok(()), Err)?;
    parsed.kind = Kind::Routed(L3::V6);
    parsed.tos = header.traffic_class();
    parsed.ip_len = u16::try_from(total_len).map_err(|_| DropReason::IpHeader)?;
    let packet = packet.get(..total_len).unwrap_or_default();
    let upper = skip_extensions(packet, header.next_header).ok_or(DropReason::IpHeader)?;
    parsed.protocol = upper.protocol;
    if !upper.is_fragment {
        read_l4(frame, l3_off + upper.off, l3_off + total_len, &mut parsed);
    }
    if upper.has_segments_left {
        // The destination address is a segment's (SRv6): the queue pair is of another host.
        parsed.roce = None;
    }
    Ok(parsed)
}

/// Upper layer of an IPv6 packet.
pub(crate) struct UpperLayer {
    pub(crate) protocol: u8,
    /// Offset of its header in the packet.
    pub(crate) off: usize,
    /// True if the packet is a fragment.
    pub(crate) is_fragment: bool,
    /// True if a routing header has segments left (RFC 8200 section 4.4).
    pub(crate) has_segments_left: bool,
}

/// Finds the upper layer of an IPv6 packet. `None` if a header is cut short or the chain is too long.
pub(crate) fn skip_extensions(packet: &[u8], first: u8) -> Option<UpperLayer> {
    let (mut next, mut off, mut has_segments_left) = (first, ipv6::HEADER_LEN, false);
    let upper = |protocol, off, is_fragment, has_segments_left| UpperLayer {
        protocol,
        off,
        is_fragment,
        has_segments_left,
    };
    for _ in 0..=ipv6::MAX_EXTENSIONS {
        if ipv6::is_option_like(next) {
            let [after, len, _, left, ..] = *packet.get(off..)?.first_chunk::<8>()?;
            has_segments_left |= next == ipv6::ROUTING && left > 0;
            next = after;
            off += (usize::from(len) + 1) * 8;
        } else if next == ipv6::FRAGMENT {
            let fixed = packet.get(off..off + 8)?;
            let offset_flags = u16::from_be_bytes([*fixed.get(2)?, *fixed.get(3)?]);
            next = *fixed.first()?;
            off += 8;
            // An atomic fragment (offset 0, no more) is a whole packet (RFC 6946).
            if offset_flags & 0xfff9 != 0 {
                return Some(upper(next, off, true, has_segments_left));
            }
        } else {
            return (off <= packet.len()).then(|| upper(next, off, false, has_segments_left));
        }
    }
    None
}

/// Reads layer 4 of an unfragmented packet that ends at `end`.
#[inline]
fn read_l4(frame: &[u8], l4_off: usize, end: usize, parsed: &mut Parsed) {
    parsed.l4_off = low16(l4_off);
    if parsed.protocol != udp::PROTOCOL {
        return;
    }
    let segment = frame.get(l4_off..end).unwrap_or_default();
    let Ok((header, payload)) = Udp::ref_from_prefix(segment) else {
        return;
    };
    // If the UDP length disagrees with IP's, this is no RoCEv2 we can trust.
    if header.dst_port.get() != udp::ROCEV2_PORT || usize::from(header.len.get()) != segment.len() {
        return;
    }
    if payload.len() < bth::HEADER_LEN + bth::ICRC_LEN {
        return;
    }
    if let Ok((base, _)) = Bth::ref_from_prefix(payload) {
        parsed.roce = Some(Roce {
            bth_off: low16(l4_off + udp::HEADER_LEN),
            class: RoceClass::of(base.opcode, base.dest_qp()),
            opcode: base.opcode,
            dest_qp: base.dest_qp(),
            ack_psn: base.ack_psn(),
            src_port: header.src_port.get(),
        });
    }
}

/// Returns true for addresses a router must not forward (RFC 1812 section 5.3.7): this network, loopback, link-local,
/// multicast, class E.
#[inline]
const fn martian_v4(address: [u8; 4]) -> bool {
    let [a, b, _, _] = address;
    a == 0 || a == 127 || a >= 224 || (a == 169 && b == 254)
}

/// Returns the drop reason of a packet between addresses of which one is not forwarded. What a host may send to a group or to all, also
/// before it has an address, is no martian: DHCP's requests, neighbour discovery.
#[cold]
const fn reason_v4(src: [u8; 4], dst: [u8; 4]) -> DropReason {
    let group = matches!(dst, [224..=239, ..] | [255, 255, 255, 255]);
    let nobody = match src {
        [0, b, c, d] => b != 0 || c != 0 || d != 0,
        [first, ..] => first == 127 || first >= 224,
    };
    if group && !nobody {
        DropReason::Multicast
    } else {
        DropReason::Martian
    }
}

/// Returns the drop reason if no router may forward between these addresses.
#[inline]
fn refused_v6(src: &[u8; 16], dst: &[u8; 16]) -> Option<DropReason> {
    (martian_v6(src) || martian_v6(dst)).then(|| reason_v6(src, dst))
}

/// Returns the drop reason of a packet between addresses of which one is not forwarded; see [`reason_v4`].
#[cold]
const fn reason_v6(src: &[u8; 16], dst: &[u8; 16]) -> DropReason {
    let nobody = src[0] == 0xff || u128::from_be_bytes(*src) == 1;
    if dst[0] == 0xff && !nobody {
        DropReason::Multicast
    } else {
        DropReason::Martian
    }
}

/// Returns true for unspecified, loopback, link-local (RFC 4291 section 2.5.6) and multicast addresses.
#[inline]
const fn martian_v6(address: &[u8; 16]) -> bool {
    let word = u128::from_be_bytes(*address);
    word <= 1 || address[0] == 0xff || (address[0] == 0xfe && address[1] & 0xc0 == 0x80)
}

#[cfg(test)]
pub(crate) mod tests;

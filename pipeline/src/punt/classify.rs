//! Classification of frames for Linux: which frames it is given, and in which class.
//!
//! Called only for frames that are not forwarded, so it may read a frame from its start. The law of [`super`] is enforced
//! here: a unicast packet must be to one of our addresses and have no source route; a group must be one that routers do not
//! forward.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::FromBytes;

use super::class::PuntClass;
use super::interface::PuntPort;
use super::layer2::Layer2;
use crate::drop::DropReason;
use crate::parse::skip_extensions;
use crate::wire::ethernet::{self, Ethernet};
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6::{self, Ipv6};
use crate::wire::udp;

/// Classification of a frame for Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForLinux {
    /// Class of the frame.
    pub class: PuntClass,
    /// Number of bytes of the frame to keep: those behind the packet are left out.
    pub end: usize,
}

/// Length of the longest non-IP frame that goes to Linux, tag not counted.
const LONGEST: usize = 1514;
/// Hop limit of neighbour discovery (RFC 4861) and of single-hop BFD (RFC 5881): a packet from further away cannot have it.
const NEAR: u8 = 255;

/// IP protocol numbers.
mod protocol {
    pub(super) const TCP: u8 = 6;
    pub(super) const RSVP: u8 = 46;
    pub(super) const ICMPV6: u8 = 58;
    pub(super) const EIGRP: u8 = 88;
    pub(super) const OSPF: u8 = 89;
    pub(super) const PIM: u8 = 103;
    pub(super) const VRRP: u8 = 112;
}

/// PTP's groups beyond those of the link (IEEE 1588 annexes C and D).
const PTP_PRIMARY: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 129);
const PTP_PRIMARY_V6: Ipv6Addr = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 0x181);

/// UDP and TCP port numbers.
mod port {
    pub(super) const BGP: u16 = 179;
    pub(super) const RIP: u16 = 520;
    pub(super) const RIPNG: u16 = 521;
    pub(super) const LDP: u16 = 646;
    pub(super) const BFD: u16 = 3784;
    pub(super) const BFD_ECHO: u16 = 3785;
    pub(super) const BFD_MULTIHOP: u16 = 4784;
    pub(super) const DHCP_SERVER: u16 = 67;
    pub(super) const DHCP_CLIENT: u16 = 68;
    pub(super) const PTP_EVENT: u16 = 319;
    pub(super) const PTP_GENERAL: u16 = 320;
    pub(super) const DHCPV6_CLIENT: u16 = 546;
    pub(super) const DHCPV6_SERVER: u16 = 547;
}

/// Classifies a frame that is not forwarded. `is_local` returns true for addresses that routes lead to us; `ports` has the
/// link-local ones.
///
/// # Errors
/// Returns `refused` for a frame that is not for Linux, or a better reason.
pub fn classify(
    layer2: &Layer2,
    frame: &[u8],
    ports: &PuntPort,
    is_local: impl Fn(IpAddr) -> bool,
    refused: DropReason,
) -> Result<ForLinux, DropReason> {
    let packet = frame.get(layer2.l3_off..).ok_or(refused)?;
    let found = match layer2.ethertype {
        ethernet::IPV4 => of_v4(layer2, packet, is_local, refused)?,
        ethernet::IPV6 => {
            let own = ports.of(layer2.vlan);
            let own = |address| own.is_some_and(|one| one.link_locals.contains(&address));
            of_v6(layer2, packet, (is_local, own), refused)?
        }
        other => {
            return whole(
                of_other(other, frame, packet).ok_or(refused)?,
                layer2,
                frame,
            );
        }
    };
    Ok(found.moved(layer2.l3_off))
}

/// MAC addresses of IS-IS: all level 1 and level 2 systems (ISO 10589), and all intermediate systems (RFC 5309, on links between two).
const IS_IS: [[u8; 6]; 3] = [
    [0x01, 0x80, 0xc2, 0, 0, 0x14],
    [0x01, 0x80, 0xc2, 0, 0, 0x15],
    [0x09, 0, 0x2b, 0, 0, 0x05],
];
/// LLC header of ISO network protocols: both service access points.
const OSI: [u8; 2] = [0xfe, 0xfe];
/// MAC addresses of PTP: forwarded by bridges, and not (IEEE 1588 annex F).
const PTP: [[u8; 6]; 2] = [[0x01, 0x1b, 0x19, 0, 0, 0], [0x01, 0x80, 0xc2, 0, 0, 0x0e]];

/// Returns the class of a frame that is not IP.
fn of_other(ethertype: u16, frame: &[u8], payload: &[u8]) -> Option<PuntClass> {
    let to = *frame.first_chunk()?;
    match ethertype {
        ethernet::ARP => Some(PuntClass::ArpNd),
        ethernet::LLDP => Some(PuntClass::Lldp),
        ethernet::PTP if PTP.contains(&to) => Some(PuntClass::Ptp),
        ..=ethernet::LONGEST_LENGTH | ethernet::LONG_LLC
            if IS_IS.contains(&to) && payload.starts_with(&OSI) =>
        {
            Some(PuntClass::Routing)
        }
        _ => None,
    }
}

/// Classifies a frame that is not IP.
fn whole(class: PuntClass, layer2: &Layer2, frame: &[u8]) -> Result<ForLinux, DropReason> {
    let tag = layer2.l3_off - ethernet::HEADER_LEN;
    // IS-IS pads its hellos to the MTU (ISO 10589), so that it finds links on which that differs.
    let longest = match class {
        PuntClass::Routing => layer2.longest.max(LONGEST),
        _ => LONGEST,
    };
    if frame.len() - tag > longest {
        return Err(DropReason::Oversize);
    }
    let end = frame.len();
    Ok(ForLinux { class, end })
}

impl ForLinux {
    /// Adds the length of the headers before the packet.
    const fn moved(self, before: usize) -> ForLinux {
        let end = self.end + before;
        ForLinux { end, ..self }
    }
}

fn of_v4(
    layer2: &Layer2,
    packet: &[u8],
    is_local: impl Fn(IpAddr) -> bool,
    refused: DropReason,
) -> Result<ForLinux, DropReason> {
    let (header, _) = Ipv4::ref_from_prefix(packet).map_err(|_| refused)?;
    let (len, end) = (header.header_len(), usize::from(header.total_len.get()));
    let whole = packet.get(..end).filter(|_| len <= end).ok_or(refused)?;
    let (src, dst) = (Ipv4Addr::from(header.src), Ipv4Addr::from(header.dst));
    let upper = upper_of_v4(header, whole);
    // DHCP to the broadcast address of a subnet, which Linux knows: a frame to a group is never forwarded, whatever address is in it.
    let is_dhcp = layer2.is_group && dst.octets()[0] < 224 && upper.class() == PuntClass::Dhcp;
    let is_group = matches!(dst.octets(), [224, 0, 0, _]) || upper.is_for_all(dst) || is_dhcp;
    let nobody = src.is_loopback() || src.octets()[0] >= 224;
    let ours = !layer2.is_group && !src.is_unspecified() && is_local(dst.into());
    if nobody || !is_group && !ours {
        return Err(refused);
    }
    if has_source_route(whole.get(ipv4::MIN_LEN..len).unwrap_or_default()) {
        return Err(DropReason::SourceRoute);
    }
    let class = upper.class();
    Ok(ForLinux { class, end })
}

/// Returns the upper layer of an IPv4 packet.
fn upper_of_v4<'a>(header: &Ipv4, packet: &'a [u8]) -> Upper<'a> {
    Upper {
        protocol: header.protocol,
        bytes: packet.get(header.header_len()..).unwrap_or_default(),
        ttl: header.ttl,
        is_group: header.dst[0] >= 224,
        is_fragment: header.is_fragment(),
    }
}

/// Returns true if IPv4 options contain a loose (131) or strict (137) source route, or cannot be read.
fn has_source_route(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        let len = match kind {
            0 => return false,
            1 => 1,
            131 | 137 => return true,
            _ => match rest.first() {
                Some(len) if *len >= 2 => usize::from(*len),
                _ => return true,
            },
        };
        let Some(next) = options.get(len..) else {
            return true;
        };
        options = next;
    }
    false
}

fn of_v6(
    layer2: &Layer2,
    packet: &[u8],
    (is_local, is_own): (impl Fn(IpAddr) -> bool, impl Fn(Ipv6Addr) -> bool),
    refused: DropReason,
) -> Result<ForLinux, DropReason> {
    let (header, _) = Ipv6::ref_from_prefix(packet).map_err(|_| refused)?;
    let end = ipv6::HEADER_LEN + usize::from(header.payload_len.get());
    let whole = packet.get(..end).ok_or(refused)?;
    let (src, dst) = (Ipv6Addr::from(header.src), Ipv6Addr::from(header.dst));
    // Link-local groups (RFC 4291 section 2.7), which no router forwards.
    let is_group = dst.segments()[0] & 0xff0f == 0xff02;
    // PTP's group of the largest scope, which a router would forward, is for Linux nevertheless: nothing here forwards groups.
    let is_clock = dst == PTP_PRIMARY_V6
        && upper_of_v6(whole, header, true).is_ok_and(|upper| upper.class() == PuntClass::Ptp);
    let is_group = is_group || is_clock;
    let nobody = src.is_loopback() || src.is_multicast();
    // A packet from afar to a neighbour's link-local address is refused: Linux could forward it.
    let near = dst.is_unicast_link_local() && (is_own(dst) || src.is_unicast_link_local());
    let ours = !layer2.is_group && !src.is_unspecified() && (near || is_local(dst.into()));
    if nobody || !is_group && !ours {
        return Err(refused);
    }
    let class = upper_of_v6(whole, header, is_group)?.class();
    Ok(ForLinux { class, end })
}

/// Returns the upper layer of an IPv6 packet.
///
/// # Errors
/// Returns the drop reason for a routing header that is not at its end, for a fragment that begins with an extension header (a routing header may
/// be among those, which only the whole packet shows), or for a chain that cannot be read.
fn upper_of_v6<'a>(
    packet: &'a [u8],
    header: &Ipv6,
    is_group: bool,
) -> Result<Upper<'a>, DropReason> {
    let layer = skip_extensions(packet, header.next_header).ok_or(DropReason::IpHeader)?;
    let hides_routing = layer.is_fragment && ipv6::is_option_like(layer.protocol);
    if layer.has_segments_left || hides_routing {
        return Err(DropReason::SourceRoute);
    }
    Ok(Upper {
        protocol: layer.protocol,
        bytes: packet.get(layer.off..).unwrap_or_default(),
        ttl: header.hop_limit,
        is_group,
        is_fragment: layer.is_fragment,
    })
}

/// Upper layer of an IP packet, with the IP fields that its class depends on.
struct Upper<'a> {
    protocol: u8,
    bytes: &'a [u8],
    ttl: u8,
    is_group: bool,
    is_fragment: bool,
}

impl Upper<'_> {
    fn class(&self) -> PuntClass {
        if self.is_fragment {
            return PuntClass::ToUs;
        }
        match self.protocol {
            udp::PROTOCOL => self.of_udp(),
            protocol::TCP if !self.is_group => {
                let ports = self.ports();
                if ports.contains(&port::BGP) {
                    PuntClass::Routing
                } else {
                    PuntClass::ToUs
                }
            }
            protocol::OSPF => PuntClass::Routing,
            protocol::PIM | protocol::VRRP | protocol::EIGRP | protocol::RSVP if self.is_group => {
                PuntClass::Routing
            }
            // ICMPv6 router and neighbour solicitation and advertisement, redirect.
            protocol::ICMPV6 if self.ttl == NEAR => match self.bytes.first() {
                Some(133..=137) => PuntClass::ArpNd,
                _ => PuntClass::ToUs,
            },
            _ => PuntClass::ToUs,
        }
    }

    fn of_udp(&self) -> PuntClass {
        let [_, dst] = self.ports();
        match dst {
            port::BFD | port::BFD_ECHO if self.ttl == NEAR && !self.is_group => PuntClass::Bfd,
            port::BFD_MULTIHOP if !self.is_group => PuntClass::Bfd,
            port::RIP | port::RIPNG | port::LDP if self.is_group => PuntClass::Routing,
            port::PTP_EVENT | port::PTP_GENERAL => PuntClass::Ptp,
            port::DHCP_SERVER | port::DHCP_CLIENT | port::DHCPV6_SERVER | port::DHCPV6_CLIENT => {
                PuntClass::Dhcp
            }
            _ => PuntClass::ToUs,
        }
    }

    /// Returns true for a packet to this broadcast address or group that Linux gets though routers may forward its like: DHCP to all, and
    /// PTP. Nothing here forwards either.
    fn is_for_all(&self, dst: Ipv4Addr) -> bool {
        match dst {
            Ipv4Addr::BROADCAST => self.class() == PuntClass::Dhcp,
            PTP_PRIMARY => self.class() == PuntClass::Ptp,
            _ => false,
        }
    }

    /// Returns the source and destination port of UDP or TCP; 0 if they are cut off.
    fn ports(&self) -> [u16; 2] {
        let [a, b, c, d] = self.bytes.first_chunk().copied().unwrap_or_default();
        [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
    }
}

/// Returns the class of a frame that Linux sends; one other than [`PuntClass::ToUs`] goes ahead of the data. `None` if it may
/// not leave: it is no frame, is MAC control, which would pause our peers, or has a tag, for which there is another interface.
#[must_use]
pub fn of_sent(frame: &[u8]) -> Option<PuntClass> {
    let (header, packet) = Ethernet::ref_from_prefix(frame).ok()?;
    let class = match header.ethertype.get() {
        ethernet::MAC_CONTROL | ethernet::VLAN | ethernet::QINQ => return None,
        ethernet::IPV4 => upper_of_sent_v4(packet).map(|upper| upper.class()),
        ethernet::IPV6 => upper_of_sent_v6(packet).map(|upper| upper.class()),
        other => of_other(other, frame, packet),
    };
    Some(class.unwrap_or(PuntClass::ToUs))
}

fn upper_of_sent_v4(packet: &[u8]) -> Option<Upper<'_>> {
    let (header, _) = Ipv4::ref_from_prefix(packet).ok()?;
    Some(upper_of_v4(header, packet))
}

fn upper_of_sent_v6(packet: &[u8]) -> Option<Upper<'_>> {
    let (header, _) = Ipv6::ref_from_prefix(packet).ok()?;
    upper_of_v6(packet, header, header.dst[0] == 0xff).ok()
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;

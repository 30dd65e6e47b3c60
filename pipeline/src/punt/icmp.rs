//! ICMP errors that this switch makes itself (RFC 792, 1812 and 1191; RFC 4443 for IPv6), so that traceroute and path MTU
//! discovery work through it, and Linux need not see packets it cannot forward.
//!
//! The error is made in the buffer of the packet it is about, which is dropped: it needs no further buffer. Law: no error is
//! made about an ICMP error or a redirect, a fragment other than the first, or a packet from or to several hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::FromBytes;

use crate::bits::low16;
use crate::drop::DropReason;
use crate::frame::FrameBuf;
use crate::wire::checksum;
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6::{self, Ipv6};

/// ICMP error to be sent to the sender of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpError {
    /// TTL or hop limit exceeded.
    TimeExceeded,
    /// No route to the destination.
    NoRoute,
    /// Host unreachable.
    HostUnreachable,
    /// Communication administratively prohibited.
    Prohibited,
    /// Packet too big for the next link, whose MTU in bytes this is.
    TooBig(u16),
}

impl IcmpError {
    /// Returns the error about a packet that is dropped for this reason; `None` if no error is sent. `mtu` is that of the port
    /// it would leave by.
    #[must_use]
    pub const fn about(reason: DropReason, mtu: u16) -> Option<IcmpError> {
        match reason {
            DropReason::TtlExpired => Some(IcmpError::TimeExceeded),
            DropReason::NoRoute => Some(IcmpError::NoRoute),
            DropReason::Unreachable => Some(IcmpError::HostUnreachable),
            DropReason::Prohibited => Some(IcmpError::Prohibited),
            DropReason::MtuExceeded => Some(IcmpError::TooBig(mtu)),
            _ => None,
        }
    }

    /// Returns ICMP type and code, and the word after the checksum.
    const fn v4(self) -> ([u8; 2], u32) {
        match self {
            IcmpError::TimeExceeded => ([11, 0], 0),
            IcmpError::NoRoute => ([3, 0], 0),
            IcmpError::HostUnreachable => ([3, 1], 0),
            IcmpError::Prohibited => ([3, 13], 0),
            IcmpError::TooBig(mtu) => ([3, 4], mtu as u32),
        }
    }

    /// Returns ICMPv6 type and code, and the word after the checksum.
    const fn v6(self) -> ([u8; 2], u32) {
        match self {
            IcmpError::TimeExceeded => ([3, 0], 0),
            IcmpError::NoRoute => ([1, 0], 0),
            IcmpError::HostUnreachable => ([1, 3], 0),
            IcmpError::Prohibited => ([1, 1], 0),
            IcmpError::TooBig(mtu) => ([2, 0], mtu as u32),
        }
    }
}

/// Length of the longest IPv4 error, header included (RFC 1812 section 4.3.2.3).
const LONGEST_V4: usize = 576;
/// Length of the longest IPv6 error: the minimum MTU of every link (RFC 4443 section 2.4).
const LONGEST_V6: usize = 1280;
/// Length of the ICMP header.
const HEADER_LEN: usize = 8;
/// IP protocol numbers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// TTL or hop limit of the errors.
const TTL: u8 = 64;
/// TOS of the errors: DSCP CS6, as in routers' own messages (RFC 1812 section 4.3.2.5).
pub const TOS: u8 = 48 << 2;

/// Returns the sender of an IP packet, if an error may be sent about it.
#[must_use]
pub fn sender(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => sender_v4(packet).map(IpAddr::V4),
        6 => sender_v6(packet).map(IpAddr::V6),
        _ => None,
    }
}

fn sender_v4(packet: &[u8]) -> Option<Ipv4Addr> {
    let (header, _) = Ipv4::ref_from_prefix(packet).ok()?;
    let is_first = header.flags_fragment.get() & 0x1fff == 0;
    let kind = packet.get(header.header_len());
    // ICMP errors and redirect: unreachable, source quench, redirect, time exceeded, parameter problem.
    let is_error = header.protocol == ICMP && matches!(kind, None | Some(3 | 4 | 5 | 11 | 12));
    let (src, dst) = (Ipv4Addr::from(header.src), Ipv4Addr::from(header.dst));
    (is_first && !is_error && is_one_v4(src) && is_one_v4(dst)).then_some(src)
}

/// Returns true if the address is that of a single host.
fn is_one_v4(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    first != 0 && first != 127 && first < 224
}

fn sender_v6(packet: &[u8]) -> Option<Ipv6Addr> {
    let (header, _) = Ipv6::ref_from_prefix(packet).ok()?;
    let (src, dst) = (Ipv6Addr::from(header.src), Ipv6Addr::from(header.dst));
    let is_one = |address: Ipv6Addr| {
        !address.is_unspecified() && !address.is_loopback() && !address.is_multicast()
    };
    if !is_one(src) || !is_one(dst) || src.is_unicast_link_local() {
        return None;
    }
    may_tell_v6(packet, header.next_header).then_some(src)
}

/// Returns true if an IPv6 packet is neither a later fragment nor an ICMP error or redirect. One that cannot be read might be.
fn may_tell_v6(packet: &[u8], first: u8) -> bool {
    let (mut next, mut off) = (first, ipv6::HEADER_LEN);
    for _ in 0..=ipv6::MAX_EXTENSIONS {
        let fixed = packet.get(off..).and_then(<[u8]>::first_chunk::<8>);
        match (next, fixed) {
            (ICMPV6, Some([kind, ..])) => return *kind >= 128 && *kind != 137,
            (ICMPV6, None) => return false,
            (ipv6::FRAGMENT, Some([after, _, high, low, ..])) => {
                if u16::from_be_bytes([*high, *low]) & 0xfff8 != 0 {
                    return false;
                }
                (next, off) = (*after, off + 8);
            }
            (_, Some([after, len, ..])) if ipv6::is_option_like(next) => {
                (next, off) = (*after, off + (usize::from(*len) + 1) * 8);
            }
            (ipv6::FRAGMENT, None) => return false,
            (_, None) if ipv6::is_option_like(next) => return false,
            _ => return true,
        }
    }
    false
}

/// Makes an error from `source` about the frame in `buf`, whose packet of `len` bytes starts at `l3_off`: the buffer is then
/// an IP packet without an Ethernet header, of `mtu` bytes at most. Returns false if the buffer has no room; the frame can
/// then only be dropped.
#[must_use]
pub fn make<B: FrameBuf>(
    buf: &mut B,
    (l3_off, len): (usize, usize),
    error: IcmpError,
    (source, mtu): (IpAddr, u16),
) -> bool {
    let (before, longest) = match source {
        IpAddr::V4(_) => (ipv4::MIN_LEN + HEADER_LEN, LONGEST_V4),
        IpAddr::V6(_) => (ipv6::HEADER_LEN + HEADER_LEN, LONGEST_V6),
    };
    let longest = longest.min(mtu.into());
    let quoted = len.min(longest.saturating_sub(before));
    if !buf.trim_front(l3_off) || !buf.truncate(quoted) || !buf.prepend(before) {
        return false;
    }
    match source {
        IpAddr::V4(source) => write_v4(buf.data_mut(), error, source).is_some(),
        IpAddr::V6(source) => write_v6(buf.data_mut(), error, source).is_some(),
    }
}

/// Writes the IPv4 and ICMP headers before the quoted packet; `None` if there is no room for them.
fn write_v4(packet: &mut [u8], error: IcmpError, source: Ipv4Addr) -> Option<()> {
    let len = low16(packet.len());
    let (header, icmp) = packet.split_first_chunk_mut::<{ ipv4::MIN_LEN }>()?;
    let (about, _) = Ipv4::ref_from_prefix(icmp.get(HEADER_LEN..)?).ok()?;
    let dst = about.src;
    write_icmp(icmp, error.v4(), 0)?;
    let [high, low] = len.to_be_bytes();
    let [a, b, c, d] = source.octets();
    let [e, f, g, h] = dst;
    // It must not be fragmented, so the identification means nothing (RFC 6864).
    *header = [
        0x45, TOS, high, low, 0, 0, 0x40, 0, TTL, ICMP, 0, 0, a, b, c, d, e, f, g, h,
    ];
    let [high, low] = (!checksum::sum(header)).to_be_bytes();
    let [.., x, y, _, _, _, _, _, _, _, _] = header;
    (*x, *y) = (high, low);
    Some(())
}

fn write_v6(packet: &mut [u8], error: IcmpError, source: Ipv6Addr) -> Option<()> {
    let (header, icmp) = packet.split_first_chunk_mut::<{ ipv6::HEADER_LEN }>()?;
    let (about, _) = Ipv6::ref_from_prefix(icmp.get(HEADER_LEN..)?).ok()?;
    let (src, dst) = (source.octets(), about.src);
    let len = low16(icmp.len());
    // Sum of the pseudo-header (RFC 8200 section 8.1).
    let pseudo = [checksum::sum(&src), checksum::sum(&dst), len, ICMPV6.into()];
    let pseudo = pseudo.into_iter().fold(0, checksum::add);
    write_icmp(icmp, error.v6(), pseudo)?;
    let (fixed, addresses) = header.split_first_chunk_mut::<8>()?;
    let [high, low] = len.to_be_bytes();
    // Version 6, the traffic class across two octets, no flow label.
    *fixed = [0x60 | TOS >> 4, TOS << 4, 0, 0, high, low, ICMPV6, TTL];
    let (from, to) = addresses.split_at_mut_checked(src.len())?;
    from.copy_from_slice(&src);
    to.copy_from_slice(&dst);
    Some(())
}

/// Writes the ICMP header; `pseudo` is added to the checksum.
fn write_icmp(icmp: &mut [u8], ([kind, code], word): ([u8; 2], u32), pseudo: u16) -> Option<()> {
    let [a, b, c, d] = word.to_be_bytes();
    *icmp.first_chunk_mut::<HEADER_LEN>()? = [kind, code, 0, 0, a, b, c, d];
    let check = !checksum::add(checksum::sum(icmp), pseudo);
    let [high, low] = check.to_be_bytes();
    let place = icmp.get_mut(2..)?.first_chunk_mut::<2>()?;
    *place = [high, low];
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::HeapFrame;

    #[test]
    fn an_error_fits_the_mtu_it_leaves_by() {
        let mut packet = [0; 1_500];
        (packet[0], packet[9]) = (0x45, 17);
        let source = [10, 0, 1, 1].into();
        for (mtu, length) in [(296, 296), (1_500, LONGEST_V4)] {
            let mut buf = HeapFrame::new(&packet);
            let about = (0, packet.len());
            assert!(make(&mut buf, about, IcmpError::NoRoute, (source, mtu)));
            assert_eq!(buf.data().len(), length);
        }
    }
}

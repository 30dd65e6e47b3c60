//! Tests of what a sender from afar, a fragment or a long frame can pretend to be.

use super::*;

/// Largest hop limit of a packet that a router has forwarded.
const FORWARDED: u8 = NEAR - 1;

/// A frame to us with this packet.
fn frame(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(packet);
    frame
}

/// An IPv4 packet from 10.0.1.2 to 10.0.1.1.
fn v4(protocol: u8, ttl: u8, flags_fragment: u16, payload: &[u8]) -> Vec<u8> {
    let [high, low] = flags_fragment.to_be_bytes();
    let len = u8::try_from(20 + payload.len()).unwrap();
    let mut packet = vec![0x45, 0, 0, len, 0, 0, high, low, ttl, protocol, 0, 0];
    packet.extend([10, 0, 1, 2, 10, 0, 1, 1]);
    packet.extend(payload);
    frame(ethernet::IPV4, &packet)
}

/// An IPv6 packet from 2001:db8::2 to 2001:db8::1.
fn v6(next: u8, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).unwrap();
    let mut packet = vec![0x60, 0, 0, 0, 0, len, next, hop_limit];
    for host in [2, 1] {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    packet.extend(payload);
    frame(ethernet::IPV6, &packet)
}

fn class(frame: &[u8]) -> Result<PuntClass, DropReason> {
    let layer2 = Layer2 {
        is_group: false,
        vlan: 0,
        ethertype: u16::from_be_bytes([frame[12], frame[13]]),
        l3_off: 14,
        longest: 9014,
    };
    let ports = PuntPort::default();
    let found = classify(&layer2, frame, &ports, |_| true, DropReason::NoRoute);
    found.map(|found| found.class)
}

/// Source and destination port, and enough behind them.
fn ports(dst: u16) -> Vec<u8> {
    let [high, low] = dst.to_be_bytes();
    [&[0xc0, 0, high, low][..], &[0; 16]].concat()
}

/// Law: classes of neighbours' protocols are for packets that no router has forwarded.
#[test]
fn a_packet_from_afar_is_in_no_class_of_neighbours() {
    let solicitation = [135, 0, 0, 0, 0, 0, 0, 0];
    for (ttl, nd, bfd) in [
        (NEAR, PuntClass::ArpNd, PuntClass::Bfd),
        (FORWARDED, PuntClass::ToUs, PuntClass::ToUs),
    ] {
        assert_eq!(class(&v6(protocol::ICMPV6, ttl, &solicitation)), Ok(nd));
        assert_eq!(class(&v6(udp::PROTOCOL, ttl, &ports(port::BFD))), Ok(bfd));
        assert_eq!(
            class(&v4(udp::PROTOCOL, ttl, 0, &ports(port::BFD))),
            Ok(bfd)
        );
        let several_hops = v4(udp::PROTOCOL, ttl, 0, &ports(port::BFD_MULTIHOP));
        assert_eq!(class(&several_hops), Ok(PuntClass::Bfd));
    }
}

/// Law: ports are read of whole packets only.
#[test]
fn a_fragment_is_of_no_protocols_class() {
    for (flags_fragment, expected) in [
        (0, PuntClass::Routing),
        (0x2000, PuntClass::ToUs),
        (0x2010, PuntClass::ToUs),
        (0x0010, PuntClass::ToUs),
    ] {
        let packet = v4(protocol::TCP, 64, flags_fragment, &ports(port::BGP));
        assert_eq!(class(&packet), Ok(expected), "{flags_fragment:#x}");
    }
    let first = [&[protocol::TCP, 0, 0, 1, 0, 0, 0, 7][..], &ports(port::BGP)].concat();
    assert_eq!(class(&v6(ipv6::FRAGMENT, 64, &first)), Ok(PuntClass::ToUs));
}

/// Law: a fragment that begins with an extension header may hide a routing header, and is refused.
#[test]
fn a_fragment_hides_no_routing_header() {
    for (next, expected) in [
        (protocol::TCP, Ok(PuntClass::ToUs)),
        (ipv6::ROUTING, Err(DropReason::SourceRoute)),
        (ipv6::DESTINATION, Err(DropReason::SourceRoute)),
    ] {
        let first = [&[next, 0, 0, 1, 0, 0, 0, 7][..], &[0; 16]].concat();
        assert_eq!(class(&v6(ipv6::FRAGMENT, 64, &first)), expected, "{next}");
    }
}

/// Law: the type field of IS-IS is a length, or that of long LLC frames; the frame is as long as the port's MTU allows.
#[test]
fn is_is_is_known_by_address_and_llc_header_and_is_as_long_as_the_mtu() {
    let of = |to: [u8; 6], ethertype, llc: [u8; 3], len: usize| {
        let mut hello = frame(ethertype, &[&llc[..], &vec![0; len - 17]].concat());
        hello[..6].copy_from_slice(&to);
        class(&hello)
    };
    let (all, llc) = (IS_IS[0], [0xfe, 0xfe, 3]);
    for to in IS_IS {
        assert_eq!(of(to, 1500, llc, 1514), Ok(PuntClass::Routing));
    }
    assert_eq!(
        of(all, ethernet::LONG_LLC, llc, 9014),
        Ok(PuntClass::Routing)
    );
    assert_eq!(
        of(all, ethernet::LONG_LLC, llc, 9015),
        Err(DropReason::Oversize)
    );
    let refused = Err(DropReason::NoRoute);
    assert_eq!(of(all, 1501, llc, 1514), refused, "an EtherType");
    assert_eq!(of(all, 38, [0x42, 0x42, 3], 60), refused, "spanning tree");
    assert_eq!(of([1, 0x80, 0xc2, 0, 0, 0], 38, llc, 60), refused);
}

#[test]
fn a_frame_that_is_not_ip_fits_its_interface() {
    for (packet, expected) in [
        (LONGEST - 14, Ok(PuntClass::Lldp)),
        (LONGEST - 13, Err(DropReason::Oversize)),
    ] {
        let lldp = frame(ethernet::LLDP, &vec![0; packet]);
        assert_eq!(class(&lldp), expected);
    }
}

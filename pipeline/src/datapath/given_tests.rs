//! Tests of which frames Linux is given, and which not.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::punted_rig::*;
use super::*;
use crate::punt::PuntClass;

/// Beginning of an IS-IS hello: LLC header, and the discriminator of the protocol.
const IS_IS: [u8; 60] = {
    let mut hello = [0; 60];
    (hello[0], hello[1], hello[2], hello[3]) = (0xfe, 0xfe, 3, 0x83);
    hello
};

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn each_frame_for_linux_has_its_class() {
    use PuntClass::{ArpNd, Bfd, Dhcp, Lldp, Ptp, Routing, ToUs};
    let us = mac(0);
    let v6 = |src, dst, kind, ttl| packet((src, dst), (58, ttl), &[], &[kind; 24]);
    let to_us = |ports: Vec<u8>, protocol, ttl| {
        ip(
            us,
            &packet(("10.0.1.3", "10.0.1.1"), (protocol, ttl), &[], &ports),
        )
    };
    let to_group = |group: &str, protocol, bytes: Vec<u8>| {
        ip(
            OSPF_MAC,
            &packet(("10.0.1.3", group), (protocol, 1), &[], &bytes),
        )
    };
    let cases: Vec<(&str, Vec<u8>, PuntClass)> = vec![
        (
            "an ARP request",
            ethernet(ALL_HOSTS, &[], 0x0806, &[1; 28]),
            ArpNd,
        ),
        ("an ARP reply", ethernet(us, &[], 0x0806, &[1; 28]), ArpNd),
        ("LLDP", ethernet(LLDP_MAC, &[], 0x88cc, &[2; 200]), Lldp),
        (
            "a router solicitation",
            ip(NODES, &v6("::", "ff02::2", 133, 255)),
            ArpNd,
        ),
        (
            "a router advertisement",
            ip(NODES, &v6("fe80::9", "ff02::1", 134, 255)),
            ArpNd,
        ),
        (
            "a neighbour solicitation",
            ip(NODES, &v6("2001:db8:1::3", "ff02::1:ff00:1", 135, 255)),
            ArpNd,
        ),
        (
            "one from afar",
            ip(NODES, &v6("fe80::9", "ff02::1:ff00:1", 135, 254)),
            ToUs,
        ),
        (
            "an advertisement to us",
            ip(us, &v6("fe80::9", "2001:db8:1::1", 136, 255)),
            ArpNd,
        ),
        (
            "one to our link-local address",
            ip(us, &v6("fe80::9", LINK_LOCAL, 136, 255)),
            ArpNd,
        ),
        (
            "one to it from a global address",
            ip(us, &v6("2001:db8:1::3", LINK_LOCAL, 136, 255)),
            ArpNd,
        ),
        (
            "multicast listeners",
            ip(
                NODES,
                &packet(("fe80::9", "ff02::16"), (0, 1), &HOP_BY_HOP, &[143; 24]),
            ),
            ToUs,
        ),
        (
            "OSPF hello",
            to_group("224.0.0.5", 89, vec![2; 44]),
            Routing,
        ),
        (
            "OSPF to the designated router",
            to_group("224.0.0.6", 89, vec![2; 44]),
            Routing,
        ),
        ("OSPF to us", to_us(vec![2; 44], 89, 1), Routing),
        (
            "OSPFv3",
            ip(
                NODES,
                &packet(("fe80::9", "ff02::5"), (89, 1), &[], &[3; 44]),
            ),
            Routing,
        ),
        ("PIM", to_group("224.0.0.13", 103, vec![2; 44]), Routing),
        ("RIP", to_group("224.0.0.9", 17, ports(520, 520)), Routing),
        ("IGMP", to_group("224.0.0.22", 2, vec![2; 44]), ToUs),
        ("mDNS", to_group("224.0.0.251", 17, ports(5353, 5353)), ToUs),
        ("BFD", to_us(ports(49_152, 3784), 17, 255), Bfd),
        ("BFD echo", to_us(ports(49_152, 3785), 17, 255), Bfd),
        ("BFD from afar", to_us(ports(49_152, 3784), 17, 254), ToUs),
        ("BFD over hops", to_us(ports(49_152, 4784), 17, 12), Bfd),
        (
            "BFD over IPv6",
            ip(
                us,
                &packet(
                    ("fe80::9", LINK_LOCAL),
                    (17, 255),
                    &[],
                    &ports(49_152, 3784),
                ),
            ),
            Bfd,
        ),
        (
            "IS-IS of level 1",
            ethernet(Mac([1, 0x80, 0xc2, 0, 0, 0x14]), &[], 1497, &IS_IS),
            Routing,
        ),
        (
            "IS-IS between two",
            ethernet(Mac([9, 0, 0x2b, 0, 0, 5]), &[], 0x8870, &IS_IS),
            Routing,
        ),
        (
            "DHCP of a host without an address",
            ip(
                ALL_HOSTS,
                &packet(
                    ("0.0.0.0", "255.255.255.255"),
                    (17, 64),
                    &[],
                    &ports(68, 67),
                ),
            ),
            Dhcp,
        ),
        (
            "DHCP to all hosts",
            ip(
                ALL_HOSTS,
                &packet(
                    ("10.0.1.3", "255.255.255.255"),
                    (17, 64),
                    &[],
                    &ports(67, 68),
                ),
            ),
            Dhcp,
        ),
        (
            "DHCP to the broadcast address of a subnet",
            ip(
                ALL_HOSTS,
                &packet(("10.0.1.3", "10.0.1.255"), (17, 64), &[], &ports(67, 67)),
            ),
            Dhcp,
        ),
        ("DHCP to a relay", to_us(ports(67, 67), 17, 64), Dhcp),
        (
            "DHCPv6",
            ip(
                NODES,
                &packet(("fe80::9", "ff02::1:2"), (17, 1), &[], &ports(546, 547)),
            ),
            Dhcp,
        ),
        (
            "PTP over UDP",
            to_group("224.0.1.129", 17, ports(319, 319)),
            Ptp,
        ),
        (
            "PTP between neighbours",
            to_group("224.0.0.107", 17, ports(319, 319)),
            Ptp,
        ),
        (
            "PTP over UDP and IPv6",
            ip(
                NODES,
                &packet(("fe80::9", "ff0e::181"), (17, 1), &[], &ports(320, 320)),
            ),
            Ptp,
        ),
        (
            "PTP over Ethernet",
            ethernet(Mac([1, 0x1b, 0x19, 0, 0, 0]), &[], 0x88f7, &[2; 44]),
            Ptp,
        ),
        (
            "PTP of the link",
            ethernet(Mac([1, 0x80, 0xc2, 0, 0, 0x0e]), &[], 0x88f7, &[2; 54]),
            Ptp,
        ),
        ("BGP to us", to_us(ports(40_000, 179), 6, 1), Routing),
        (
            "BGP that answers us",
            to_us(ports(179, 40_000), 6, 64),
            Routing,
        ),
        (
            "BGP unnumbered",
            ip(
                us,
                &packet(("fe80::9", LINK_LOCAL), (6, 255), &[], &ports(40_000, 179)),
            ),
            Routing,
        ),
        ("a ping", to_us(vec![8; 64], 1, 64), ToUs),
        (
            "a ping to another port's address",
            ip(
                us,
                &packet(("10.0.1.3", "10.0.12.1"), (1, 64), &[], &[8; 64]),
            ),
            ToUs,
        ),
        (
            "a ping of six",
            ip(us, &v6("2001:db8:1::3", "2001:db8:1::1", 128, 64)),
            ToUs,
        ),
        ("ssh with TTL 1", to_us(ports(40_000, 22), 6, 1), ToUs),
        (
            "a link-local address of ours of four",
            ip(
                us,
                &packet(("169.254.9.2", "169.254.9.1"), (6, 64), &[], &ports(179, 1)),
            ),
            Routing,
        ),
        (
            "with options that say nothing of the way",
            ip(
                us,
                &packet(
                    ("10.0.1.3", "10.0.1.1"),
                    (1, 64),
                    &[1, 148, 4, 0, 0],
                    &[8; 64],
                ),
            ),
            ToUs,
        ),
    ];
    for class in PuntClass::ALL {
        let has_one = cases.iter().any(|(_, _, found)| *found == class);
        assert!(has_one, "no frame of class {}", class.name());
    }
    for (what, frame, class) in cases {
        let (mut path, mut host) = linux();
        push(&mut path, DC, &frame, 0);
        let came = given(&mut host);
        assert_eq!(drops(&path, DC), [], "{what}");
        assert_eq!(came.len(), 1, "{what}");
        let (found, place, bytes) = &came[0];
        assert_eq!((*found, place.port, place.vlan), (class, DC, 0), "{what}");
        assert_eq!(*bytes, frame[..bytes.len()], "{what}");
        let counters = &path.counters().punt.classes[class.index()];
        assert_eq!(counters.punted.packets.get(), 1);
        assert_whole(&path);
        // A frame of a VLAN the port carries arrives without its tag; a frame of another VLAN does not arrive.
        let retagged = |tci| {
            [
                &frame[..12],
                &[0x81, 0],
                &u16::to_be_bytes(tci),
                &frame[12..],
            ]
            .concat()
        };
        push(&mut path, DC, &retagged(5 << 13 | 100), 1);
        let came = given(&mut host);
        let to_port_100 = came
            .first()
            .map(|(_, place, bytes)| (place.vlan, bytes.clone()));
        assert_eq!(to_port_100, Some((100, bytes.clone())), "{what}, tagged");
        push(&mut path, DC, &retagged(101), 2);
        assert_eq!(given(&mut host), [], "{what}, of another VLAN");
        let mut others = frame.clone();
        others[..6].copy_from_slice(&[2, 9, 9, 9, 9, 9]);
        push(&mut path, DC, &others, 3);
        assert_eq!(given(&mut host), [], "{what}, to somebody else");
        assert_whole(&path);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn what_linux_could_forward_is_not_given() {
    let us = mac(0);
    let routing = |left| [17, 0, 4, left, 0, 0, 0, 0];
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "a loose source route",
            ip(
                us,
                &packet(
                    ("10.0.1.3", "10.0.1.1"),
                    (17, 64),
                    &[131, 7, 4, 10, 0, 2, 2],
                    &ports(1, 2),
                ),
            ),
            "source_route",
        ),
        (
            "a strict one behind others",
            ip(
                us,
                &packet(
                    ("10.0.1.3", "10.0.1.1"),
                    (17, 64),
                    &[1, 1, 137, 7, 4, 10, 0, 2, 2],
                    &ports(1, 2),
                ),
            ),
            "source_route",
        ),
        (
            "options that cannot be read",
            ip(
                us,
                &packet(
                    ("10.0.1.3", "10.0.1.1"),
                    (17, 64),
                    &[68, 1, 1, 1],
                    &ports(1, 2),
                ),
            ),
            "source_route",
        ),
        (
            "a routing header",
            ip(
                us,
                &packet(
                    ("2001:db8:1::3", "2001:db8:1::1"),
                    (43, 64),
                    &routing(1),
                    &ports(1, 2),
                ),
            ),
            "source_route",
        ),
        (
            "a routing header in a first fragment",
            ip(
                us,
                &packet(
                    ("2001:db8:1::3", "2001:db8:1::1"),
                    (44, 64),
                    &[&[43, 0, 0, 1, 0, 0, 0, 7][..], &routing(1)].concat(),
                    &ports(1, 2),
                ),
            ),
            "source_route",
        ),
        (
            "a later fragment of a packet with options",
            ip(
                us,
                &packet(
                    ("2001:db8:1::3", "2001:db8:1::1"),
                    (44, 64),
                    &[60, 0, 0, 8, 0, 0, 0, 7],
                    &ports(1, 2),
                ),
            ),
            "source_route",
        ),
        (
            "a group that routers forward",
            ip(
                OSPF_MAC,
                &packet(("10.0.1.3", "239.1.1.1"), (17, 64), &[], &ports(1, 2)),
            ),
            "multicast",
        ),
        (
            "DHCP of loopback",
            ip(
                ALL_HOSTS,
                &packet(
                    ("127.0.0.1", "255.255.255.255"),
                    (17, 64),
                    &[],
                    &ports(68, 67),
                ),
            ),
            "martian",
        ),
        (
            "another protocol in PTP's group",
            ip(
                OSPF_MAC,
                &packet(("10.0.1.3", "224.0.1.129"), (17, 64), &[], &ports(1, 2)),
            ),
            "multicast",
        ),
        (
            "spanning tree",
            ethernet(Mac([1, 0x80, 0xc2, 0, 0, 0]), &[], 38, &[0x42; 46]),
            "not_ip",
        ),
        (
            "broadcast",
            ip(
                ALL_HOSTS,
                &packet(
                    ("0.0.0.0", "255.255.255.255"),
                    (17, 64),
                    &[],
                    &ports(68, 69),
                ),
            ),
            "multicast",
        ),
        (
            "one host by broadcast",
            ip(
                ALL_HOSTS,
                &packet(("10.0.1.3", "10.0.1.1"), (17, 64), &[], &ports(1, 2)),
            ),
            "multicast",
        ),
        (
            "a neighbour's link-local address from afar",
            ip(
                us,
                &packet(("2001:db8:1::3", "fe80::99"), (58, 64), &[], &[128; 24]),
            ),
            "martian",
        ),
        (
            "a site's group",
            ip(
                NODES,
                &packet(("fe80::9", "ff05::2"), (58, 64), &[], &[128; 24]),
            ),
            "multicast",
        ),
        (
            "from loopback",
            ip(
                us,
                &packet(("127.0.0.1", "10.0.1.1"), (17, 64), &[], &ports(1, 2)),
            ),
            "martian",
        ),
        ("IPX", ethernet(ALL_HOSTS, &[], 0x8137, &[0; 60]), "not_ip"),
        (
            "LACP",
            ethernet(Mac([1, 0x80, 0xc2, 0, 0, 2]), &[], 0x8809, &[0; 110]),
            "not_ip",
        ),
        (
            "ARP of a frame's length",
            ethernet(ALL_HOSTS, &[], 0x0806, &[0; 3000]),
            "oversize",
        ),
    ];
    for (what, frame, reason) in cases {
        let (mut path, mut host) = linux();
        push(&mut path, DC, &frame, 0);
        assert_eq!(given(&mut host), [], "{what}");
        assert_eq!(drops(&path, DC), [(reason, 1)], "{what}");
        assert_whole(&path);
    }
    // A routing header that is at its end has no effect any more.
    let (mut path, mut host) = linux();
    let frame = packet(
        ("2001:db8:1::3", "2001:db8:1::1"),
        (43, 64),
        &routing(0),
        &ports(1, 2),
    );
    push(&mut path, DC, &ip(us, &frame), 0);
    assert_eq!(given(&mut host).len(), 1);
    // A neighbour that provokes redirects: both addresses are link-local.
    let frame = packet(("fe80::9", "fe80::99"), (58, 64), &[], &[128; 24]);
    push(&mut path, DC, &ip(us, &frame), 1);
    assert_eq!(
        given(&mut host).len(),
        1,
        "Linux never forwards from a link-local address"
    );
}

/// Returns true if another parser finds that Linux could forward the frame a second time. `None` if it is not IP.
fn could_forward(frame: &[u8]) -> Option<bool> {
    let sliced = SlicedPacket::from_ethernet(frame).ok()?;
    let is_ours = |address: IpAddr| OURS.iter().any(|ours| v4(ours) == address);
    match sliced.net? {
        NetSlice::Ipv4(packet) => {
            let header = packet.header();
            let dst = header.destination_addr();
            let options = header.options();
            let by_a_way = options.contains(&131) || options.contains(&137);
            let ours = is_ours(dst.into()) && !by_a_way;
            Some(!(ours || dst.octets()[..3] == [224, 0, 0]))
        }
        NetSlice::Ipv6(packet) => {
            let header = packet.header();
            let (src, dst) = (header.source_addr(), header.destination_addr());
            let own = [mac(0), mac(1)].map(crate::punt::interface::link_local);
            let link =
                dst.is_unicast_link_local() && (own.contains(&dst) || src.is_unicast_link_local());
            let group = dst.is_multicast() && dst.octets()[1] & 15 == 2;
            Some(!(is_ours(dst.into()) || link || group))
        }
        NetSlice::Arp(_) => None,
    }
}

fn address_v4() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "10.0.1.3",
        "10.0.1.1",
        "10.0.12.1",
        "10.0.2.2",
        "10.0.3.7",
        "10.0.4.1",
        "192.0.2.1",
        "169.254.9.1",
        "169.254.9.2",
        "224.0.0.5",
        "224.0.1.5",
        "239.1.1.1",
        "255.255.255.255",
        "127.0.0.1",
        "0.0.0.0",
    ])
}

fn address_v6() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "2001:db8:1::3",
        "2001:db8:1::1",
        "2001:db8:9::1",
        "2001:db8:3::1",
        "fe80::9",
        LINK_LOCAL,
        "ff02::1",
        "ff02::5",
        "ff12::1",
        "ff05::2",
        "ff0e::1",
        "::",
        "::1",
        "2a00::1",
    ])
}

prop_compose! {
    fn odd_frame()(
        six in any::<bool>(),
        four in (address_v4(), address_v4()),
        addresses in (address_v6(), address_v6()),
        dst_mac in prop::sample::select(vec![mac(0), mac(0), mac(0), ALL_HOSTS, NODES, OSPF_MAC, Mac([2, 9, 9, 9, 9, 9])]),
        protocol in prop::sample::select(vec![1u8, 2, 6, 17, 43, 44, 58, 60, 89, 112, 253]),
        ttl in prop::sample::select(vec![0u8, 1, 2, 64, 255]),
        port in prop::sample::select(vec![22u16, 179, 520, 3784, 4784, 4791]),
        more in prop::sample::select(vec![vec![], vec![131, 7, 4, 10, 0, 2, 2], vec![148, 4, 0, 0], HOP_BY_HOP.to_vec(), ROUTING.to_vec()]),
        length in 0usize..2_000,
        tags in prop::sample::select(vec![vec![], vec![100], vec![0], vec![101], vec![100, 100]]),
        ethertype in prop::sample::select(vec![None, None, None, Some(0x0806), Some(0x88cc), Some(0x8809), Some(0x88a8)]),
        damage in prop::option::weighted(0.3, (12usize..80, any::<u8>())),
        cut in prop::option::weighted(0.1, 0usize..80),
    ) -> Vec<u8> {
        let mut payload = ports(port, port);
        payload.resize(length.max(4), 0x11);
        let more = if six && more.len() != 8 { vec![] } else { more };
        let packet = packet(if six { addresses } else { four }, (protocol, ttl), &more, &payload);
        let family = if six { 0x86dd } else { 0x0800 };
        let mut frame = ethernet(dst_mac, &tags, ethertype.unwrap_or(family), &packet);
        if let Some((at, value)) = damage && let Some(byte) = frame.get_mut(at) {
            *byte = value;
        }
        frame.truncate(cut.unwrap_or(usize::MAX));
        frame
    }
}

proptest! {
    #![proptest_config(crate::cases::cases(2_000))]

    /// All frames are counted, Linux gets nothing that it could forward a second time, and no ICMP error is about an error,
    /// whatever arrives.
    #[test]
    fn linux_is_given_nothing_twice(frames in prop::collection::vec(odd_frame(), 1..8)) {
        let (mut path, mut host) = linux();
        for (step, frame) in frames.iter().enumerate() {
            push(&mut path, DC, frame, step as u64);
            assert_whole(&path);
        }
        for (_, place, frame) in given(&mut host) {
            prop_assert!([0, 100].contains(&place.vlan));
            prop_assert!(frame[..6] == mac(0).0 || frame[0] & 1 == 1);
            prop_assert_ne!(could_forward(&frame), Some(true), "{:02x?}", frame);
        }
        for port in [DC, WAN] {
            for out in pull(&mut path, port, 1_000_000) {
                let bytes = out.buf.data();
                // A frame with the TOS of our errors is one, whoever made it, by another parser too.
                let is_error = bytes[14] >> 4 == 4 && bytes[15] == 48 << 2;
                if is_error {
                    let sliced = SlicedPacket::from_ethernet(bytes).unwrap();
                    let is_icmp = matches!(sliced.transport, Some(TransportSlice::Icmpv4(_)));
                    prop_assert!(is_icmp, "{:02x?}", bytes);
                }
            }
            assert_whole(&path);
        }
    }
}

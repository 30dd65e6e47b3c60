//! Tests of the ICMP errors sent to senders, read by another parser.

use etherparse::{Icmpv4Type, Icmpv6Type, NetSlice, SlicedPacket, TransportSlice, icmpv4, icmpv6};

use super::punted_rig::*;
use super::*;

/// Returns the ICMP error that leaves by `port`: source, destination, type, quoted packet. Checked by another parser.
pub(super) fn reported(
    path: &mut Path,
    port: PortId,
    at: u64,
) -> Vec<(IpAddr, IpAddr, String, Vec<u8>)> {
    let mut all = Vec::new();
    for out in pull(path, port, at) {
        let frame = out.buf.data();
        let sliced = SlicedPacket::from_ethernet(frame).unwrap();
        let (src, dst): (IpAddr, IpAddr) = match sliced.net.as_ref().unwrap() {
            NetSlice::Ipv4(packet) => {
                let header = packet.header();
                assert_eq!(
                    header.to_header().calc_header_checksum(),
                    header.header_checksum()
                );
                assert_eq!(
                    (header.ttl(), header.dcp().value(), header.options().len()),
                    (64, 48, 0)
                );
                assert!(usize::from(header.total_len()) <= 576);
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                )
            }
            NetSlice::Ipv6(packet) => {
                let header = packet.header();
                assert_eq!((header.hop_limit(), header.dscp().value()), (64, 48));
                assert!(header.payload_length() <= 1240);
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                )
            }
            NetSlice::Arp(_) => panic!("ARP"),
        };
        let (kind, quoted) = match sliced.transport.unwrap() {
            TransportSlice::Icmpv4(icmp) => {
                assert_eq!(checksum::sum(icmp.slice()), 0xffff);
                (format!("{:?}", icmp.icmp_type()), icmp.payload().to_vec())
            }
            TransportSlice::Icmpv6(icmp) => {
                let (IpAddr::V6(src), IpAddr::V6(dst)) = (src, dst) else {
                    panic!()
                };
                let sum =
                    icmp.icmp_type()
                        .calc_checksum(src.octets(), dst.octets(), icmp.payload());
                assert_eq!(sum.unwrap(), icmp.checksum());
                (format!("{:?}", icmp.icmp_type()), icmp.payload().to_vec())
            }
            other => panic!("{other:?}"),
        };
        all.push((src, dst, kind, quoted));
    }
    all
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn a_sender_gets_the_icmp_error_of_its_reason() {
    type Change = fn(&mut Craft);
    let v4_type = |kind: Icmpv4Type| format!("{kind:?}");
    let v6_type = |kind: Icmpv6Type| format!("{kind:?}");
    let unreachable = |header| v4_type(Icmpv4Type::DestinationUnreachable(header));
    let cases: Vec<(&str, Change, String)> = vec![
        (
            "10.0.2.2",
            |c| c.ttl = 1,
            v4_type(Icmpv4Type::TimeExceeded(
                icmpv4::TimeExceededCode::TtlExceededInTransit,
            )),
        ),
        (
            "192.0.2.1",
            |_| (),
            unreachable(icmpv4::DestUnreachableHeader::Network),
        ),
        (
            "10.0.4.9",
            |_| (),
            unreachable(icmpv4::DestUnreachableHeader::Host),
        ),
        (
            "10.0.5.9",
            |_| (),
            unreachable(icmpv4::DestUnreachableHeader::FilterProhibited),
        ),
        (
            "10.0.2.2",
            |c| c.payload = vec![0; 1600],
            unreachable(icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1500 }),
        ),
        (
            "2001:db8:2::2",
            |c| c.ttl = 1,
            v6_type(Icmpv6Type::TimeExceeded(
                icmpv6::TimeExceededCode::HopLimitExceeded,
            )),
        ),
        (
            "2a00::1",
            |_| (),
            v6_type(Icmpv6Type::DestinationUnreachable(
                icmpv6::DestUnreachableCode::NoRoute,
            )),
        ),
        (
            "2001:db8:4::1",
            |_| (),
            v6_type(Icmpv6Type::DestinationUnreachable(
                icmpv6::DestUnreachableCode::Address,
            )),
        ),
        (
            "2001:db8:2::2",
            |c| c.payload = vec![0; 1600],
            v6_type(Icmpv6Type::PacketTooBig { mtu: 1500 }),
        ),
        // The port's MTU would let them pass: the route's decides.
        (
            "10.0.7.2",
            |c| c.payload = vec![0; 1300],
            unreachable(icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 }),
        ),
        (
            "2001:db8:7::2",
            |c| c.payload = vec![0; 1300],
            v6_type(Icmpv6Type::PacketTooBig { mtu: 1300 }),
        ),
    ];
    for (dst, change, kind) in cases {
        for tags in [vec![], vec![0], vec![100]] {
            let (mut path, _host) = linux();
            let mut craft = data(dst);
            change(&mut craft);
            craft.tags.clone_from(&tags);
            let frame = craft.frame();
            push(&mut path, DC, &frame, 0);
            assert_whole(&path);
            let out = reported(&mut path, DC, 10_000);
            assert_eq!(out.len(), 1, "{dst}");
            let (src, to, found, quoted) = &out[0];
            let is_v6 = dst.contains(':');
            let ours = match (is_v6, tags.as_slice()) {
                (false, [100]) => "10.0.100.1",
                (false, _) => "10.0.1.1",
                // If the VLAN has no address of that family, any of ours is the source.
                (true, _) => "2001:db8:1::1",
            };
            assert_eq!((*src, *to, found), (v4(ours), craft.src, &kind), "{dst}");
            let packet = &frame[14 + 4 * tags.len()..];
            let most = if is_v6 { 1280 - 48 } else { 576 - 28 };
            assert_eq!(*quoted, packet[..packet.len().min(most)], "as it came");
            let counters = path.counters();
            assert_eq!(counters.port(0).unwrap().originated.packets.get(), 1);
            assert_whole(&path);
            path.shut_down();
            assert_eq!(path.buffer().used().frames, 0);
        }
    }
}

/// Traceroute with packets as large as the path was so far: the TTL is tested first, and errors leave in the order of the
/// packets.
#[test]
fn a_large_packet_on_its_last_hop_has_run_out_of_hops_and_errors_keep_their_order() {
    let (mut path, _host) = linux();
    let mut burst = FrameVec::default();
    for (dst, ttl, len) in [
        ("10.0.2.2", 1, 1_600),
        ("10.0.2.3", 64, 1_600),
        ("10.0.2.4", 64, 64),
        ("10.0.2.5", 1, 64),
    ] {
        let craft = Craft {
            ttl,
            payload: vec![0; len],
            ..data(dst)
        };
        burst.push(HeapFrame::new(&craft.frame()));
    }
    path.ingress(DC, &mut burst, Nanos(0));
    assert_eq!(drops(&path, DC), [("ttl_expired", 2), ("mtu_exceeded", 1)]);
    let reported = reported(&mut path, DC, 10_000);
    let kinds: Vec<&str> = reported.iter().map(|error| &error.2[..8]).collect();
    assert_eq!(kinds, ["TimeExce", "Destinat", "TimeExce"]);
    assert_eq!([reported[0].3[19], reported[2].3[19]], [2, 5]);
    assert_whole(&path);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn no_icmp_error_is_made_of_these() {
    let us = mac(0);
    let to = |protocol, more: &[u8], payload: &[u8]| {
        ip(
            us,
            &packet(("10.0.1.3", "10.0.2.2"), (protocol, 1), more, payload),
        )
    };
    let six = |protocol, more: &[u8], payload: &[u8]| {
        ip(
            us,
            &packet(
                ("2001:db8:1::3", "2001:db8:9::1"),
                (protocol, 1),
                more,
                payload,
            ),
        )
    };
    let fragment = |high, low| [58, 0, high, low, 0, 0, 0, 1];
    let mut later = packet(("10.0.1.3", "10.0.2.2"), (17, 1), &[], &[0; 40]);
    later[7] = 1;
    let sum = u16::from_be_bytes([later[10], later[11]]);
    later[10..12].copy_from_slice(&(sum - 1).to_be_bytes());
    let cases = [
        ("an ICMP error", to(1, &[], &[11; 40])),
        ("a redirect", to(1, &[], &[5; 40])),
        ("ICMP cut off", to(1, &[], &[])),
        ("a later fragment", ip(us, &later)),
        ("an ICMPv6 error", six(58, &[], &[1; 40])),
        ("one behind options", six(0, &HOP_BY_HOP, &[3; 40])),
        (
            "one behind a first fragment's header",
            six(44, &fragment(0, 1), &[3; 40]),
        ),
        (
            "a later fragment of six",
            six(44, &fragment(0, 9), &[128; 40]),
        ),
        ("a redirect of six", six(58, &[], &[137; 40])),
        (
            "a sender that is ours",
            ip(
                us,
                &packet(("10.0.12.1", "10.0.2.2"), (17, 1), &[], &[0; 40]),
            ),
        ),
        (
            "a sender nobody knows the way to",
            ip(
                us,
                &packet(("192.0.2.9", "10.0.2.2"), (17, 1), &[], &[0; 40]),
            ),
        ),
        (
            "a sender that is not resolved",
            ip(
                us,
                &packet(("10.0.3.3", "10.0.2.2"), (17, 1), &[], &[0; 40]),
            ),
        ),
    ];
    for (what, frame) in cases {
        let (mut path, _host) = linux();
        push(&mut path, DC, &frame, 0);
        assert_eq!(drops(&path, DC), [("ttl_expired", 1)], "{what}");
        let reported: usize = [DC, WAN]
            .map(|port| pull(&mut path, port, 10_000).len())
            .iter()
            .sum();
        assert_eq!(reported, 0, "{what}");
        assert_eq!(path.counters().punt.icmp_unfit.get(), 1, "{what}");
        assert_whole(&path);
    }
    // A ping, a first fragment, and a blackhole route, about which no error is sent.
    for (what, frame, errors) in [
        ("a ping", to(1, &[], &[8; 40]), 1),
        ("a ping of six", six(58, &[], &[128; 40]), 1),
        ("a first fragment", six(44, &fragment(0, 1), &[128; 40]), 1),
        ("a blackhole", data("10.0.6.1").frame(), 0),
    ] {
        let (mut path, _host) = linux();
        push(&mut path, DC, &frame, 0);
        assert_eq!(pull(&mut path, DC, 10_000).len(), errors, "{what}");
    }
}

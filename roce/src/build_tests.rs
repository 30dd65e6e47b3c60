use super::*;
use npcc_pipeline::icrc;
use npcc_pipeline::parse::parse;
use npcc_pipeline::wire::bth::RoceClass;
use npcc_pipeline::wire::checksum;
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Frame captured on a ConnectX-4 Lx (scapy, test/contrib/roce.uts).
pub(crate) fn v1_frame() -> Vec<u8> {
    hex("e41d2dab2bc2 7cfe90643b32 0800 45c2003c718c4000401191610a0011010a001201 0000 12b7 0028 0000
         8100ffff 40000118 00000000 00000000000000000000000000000000 82fd002a")
}

fn spec(receiver: &str, sender: &str, qpn: u32) -> CnpSpec {
    let [receiver, sender] = [receiver, sender].map(|text| text.parse().unwrap());
    CnpSpec {
        flow: FlowKey::new(sender, receiver, Qpn::new(0xabc)),
        sender_qpn: Qpn::new(qpn),
        dst_mac: Mac([0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2]),
        src_mac: Mac([0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32]),
        vlan: None,
        ip_id: 0,
        header: CnpHeader::default(),
    }
}

#[test]
fn a_captured_nic_cnp_is_rebuilt_to_the_byte() {
    let v1 = CnpSpec {
        ip_id: 0x718c,
        ..spec("10.0.17.1", "10.0.18.1", 0x118)
    };
    assert_eq!(v1.build().bytes(), v1_frame());
}

#[test]
fn a_captured_frame_verifies_and_a_broken_one_does_not() {
    let mut frame = v1_frame();
    let parsed = parse(&frame).unwrap();
    assert_eq!(icrc::verify(&frame, &parsed), Some(true));
    frame[49] ^= 1;
    assert_eq!(icrc::verify(&frame, &parsed), Some(false));
    icrc::seal(&mut frame);
    assert_eq!(icrc::verify(&frame, &parsed), Some(true));
}

#[test]
fn parameters_of_libconntrack_give_its_icrc() {
    let mut v2 = spec("22.22.22.8", "22.22.22.7", 0xd2);
    v2.ip_id = 0x98c6;
    v2.header = CnpHeader {
        tos: 0x89,
        ttl: 0x20,
        udp_source_port: 56238,
    };
    assert_eq!(v2.build().bytes()[70..], [0xda, 0xfc, 0x1b, 0xef]);
}

#[test]
fn our_ipv4_vector() {
    let v3 = spec("192.168.20.27", "192.168.10.29", 156_243).build();
    let packet = hex(
        "45c2003c0000400040119a66c0a8141bc0a80a1d000012b7002800008100ffff40026253
         0000000000000000000000000000000000000000 0c46b9e0",
    );
    assert_eq!(v3.bytes()[14..], packet);
}

#[test]
fn our_ipv6_vector() {
    let v4 = spec("2001:db8:1::2", "2001:db8:2::3", 156_243).build();
    let packet = hex(
        "6c2000000028114020010db800010000000000000000000220010db8000200000000000000000003
         000012b7002865b58100ffff40026253 0000000000000000000000000000000000000000 260fe252",
    );
    assert_eq!(v4.bytes()[14..], packet);
}

/// One frame in 65,536 has a UDP checksum of zero, which over IPv6 means that there is none: it is sent as all ones. These two ports make such frames.
#[test]
fn a_checksum_of_zero_over_ipv6_is_sent_as_all_ones() {
    for udp_source_port in [47_763, 61_618] {
        let spec = CnpSpec {
            header: CnpHeader {
                udp_source_port,
                ..CnpHeader::default()
            },
            ..spec("2001:db8:1::2", "2001:db8:2::3", 156_243)
        };
        let frame = spec.build();
        let segment = &frame.bytes()[14 + 40..];
        assert_eq!(segment[6..8], [0xff, 0xff]);
        let mut others = frame.bytes()[14 + 8..].to_vec();
        others[32 + 6..32 + 8].fill(0);
        let total = checksum::add(checksum::sum(&others), UDP_LEN + 17);
        assert_eq!(!total, 0, "the sum itself");
    }
}

proptest! {
    #[test]
    fn every_cnp_parses_back_and_its_icrc_holds(
        receiver in any::<[u8; 16]>(), sender in any::<[u8; 16]>(), v6 in any::<bool>(), qpn in 2u32..1 << 24,
        vlan in prop::option::of((1u16..4095, 0u8..8)), dscp in 0u8..64, ttl in 1u8.., id in any::<u16>(), port in any::<u16>(),
    ) {
        let host = |mut octets: [u8; 16]| -> std::net::IpAddr {
            octets[0] = 0x20;
            if v6 { octets.into() } else { [10, octets[1], octets[2], octets[3]].into() }
        };
        let spec = CnpSpec {
            flow: FlowKey::new(host(sender), host(receiver), Qpn::new(1)),
            sender_qpn: Qpn::new(qpn),
            dst_mac: Mac([2, 0, 0, 0, 0, 1]),
            src_mac: Mac([2, 0, 0, 0, 0, 2]),
            vlan: vlan.map(|(id, pcp)| Vlan { id, pcp: Priority::new(pcp) }),
            ip_id: id,
            header: CnpHeader { ttl, udp_source_port: port, ..CnpHeader::with_dscp(dscp) },
        };
        let frame = spec.build();
        let parsed = parse(frame.bytes()).unwrap();
        prop_assert_eq!(parsed.tci, spec.vlan.map(|vlan| u16::from(vlan.pcp.get()) << 13 | vlan.id));
        prop_assert_eq!((parsed.dscp(), parsed.ecn()), (dscp, 2));
        prop_assert_eq!(parsed.roce.map(|roce| roce.class), Some(RoceClass::Cnp));
        prop_assert_eq!(npcc_pipeline::icrc::verify(frame.bytes(), &parsed), Some(true));
        let back = FlowKey::of_packet(frame.bytes(), &parsed, Qpn::new(qpn)).unwrap();
        prop_assert_eq!(back, spec.flow.reversed(Qpn::new(qpn)));
        if v6 {
            // The checksum over pseudo header and segment, checksum field included, is all ones.
            let start = usize::from(parsed.l3_off);
            let total = checksum::sum(&frame.bytes()[start + 8..]);
            prop_assert_eq!(checksum::add(total, UDP_LEN + 17), 0xffff);
        }
    }
}

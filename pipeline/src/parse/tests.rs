use std::net::IpAddr;

use super::*;
use crate::craft::Craft;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

fn v4(a: u8) -> IpAddr {
    IpAddr::from([10, 0, 1, a])
}

fn v6(a: u16) -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, a])
}

fn parse_craft(craft: &Craft) -> Result<Parsed, DropReason> {
    parse(&craft.frame())
}

#[test]
fn plain_ipv4_rocev2() {
    let parsed = parse_craft(&Craft::roce(v4(3), v4(2), 0x0a, 0x11, 64)).unwrap();
    assert_eq!(parsed.kind, Kind::Routed(L3::V4));
    assert_eq!((parsed.l3_off, parsed.l4_off), (14, 34));
    assert_eq!((parsed.dscp(), parsed.ecn()), (26, 2));
    assert_eq!(
        parsed.roce.map(|roce| (roce.bth_off, roce.class)),
        Some((42, RoceClass::Data))
    );
}

#[test]
fn tags_shift_the_offsets_and_a_third_is_refused() {
    for (tags, l3_off) in [(vec![100], 18), (vec![7, 100], 22)] {
        let craft = Craft {
            tags: tags.clone(),
            ..Craft::roce(v6(3), v6(2), 0x11, 0x18, 4)
        };
        let parsed = parse_craft(&craft).unwrap();
        assert_eq!(parsed.l3_off, l3_off);
        assert_eq!(parsed.tci, tags.first().copied());
        assert_eq!(
            parsed.roce.map(|roce| (roce.bth_off, roce.class)),
            Some((u16::from(l3_off) + 48, RoceClass::Ack))
        );
    }
    let craft = Craft {
        tags: vec![1, 2, 3],
        ..Craft::roce(v4(3), v4(2), 0x0a, 0x11, 64)
    };
    assert_eq!(parse_craft(&craft), Err(DropReason::VlanDepth));
}

/// Each case: description, the damage done to a good 1,082-byte-class frame, the drop reason expected.
#[test]
fn malformed_frames_have_their_reason() {
    type Damage = fn(&mut Vec<u8>);
    let cases: &[(&str, Damage, DropReason)] = &[
        (
            "shorter than Ethernet",
            |f| f.truncate(13),
            DropReason::Runt,
        ),
        ("no IP header", |f| f.truncate(20), DropReason::Runt),
        (
            "cut inside the packet",
            |f| f.truncate(60),
            DropReason::IpTruncated,
        ),
        ("IP version 5", |f| f[14] = 0x55, DropReason::IpHeader),
        ("header length 16", |f| f[14] = 0x44, DropReason::IpHeader),
        (
            "total length below the header",
            |f| f[16..18].copy_from_slice(&[0, 19]),
            DropReason::IpHeader,
        ),
        (
            "checksum off by one",
            |f| f[25] ^= 1,
            DropReason::IpChecksum,
        ),
        (
            "unknown EtherType",
            |f| f[12..14].copy_from_slice(&[0x08, 0x06]),
            DropReason::NotIp,
        ),
        (
            "source 0.0.0.0 with its checksum",
            |f| set_src(f, [0, 0, 0, 0]),
            DropReason::Martian,
        ),
        (
            "source 127.0.0.1",
            |f| set_src(f, [127, 0, 0, 1]),
            DropReason::Martian,
        ),
        (
            "source 224.0.0.5",
            |f| set_src(f, [224, 0, 0, 5]),
            DropReason::Martian,
        ),
        (
            "source 169.254.1.1",
            |f| set_src(f, [169, 254, 1, 1]),
            DropReason::Martian,
        ),
    ];
    for (what, damage, reason) in cases {
        let mut frame = Craft::roce(v4(3), v4(2), 0x0a, 0x11, 64).frame();
        damage(&mut frame);
        assert_eq!(parse(&frame), Err(*reason), "{what}");
    }
}

fn set_src(frame: &mut [u8], src: [u8; 4]) {
    frame[26..30].copy_from_slice(&src);
    mend_checksum(frame);
}

pub(crate) fn mend_checksum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let check = !checksum::sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&check.to_be_bytes());
}

#[test]
fn a_fragment_is_known_by_its_addresses_only() {
    for flags in [[0x20, 0], [0, 1], [0x20, 185]] {
        let mut frame = Craft::roce(v4(3), v4(2), 0x0a, 0x11, 64).frame();
        frame[20..22].copy_from_slice(&flags);
        mend_checksum(&mut frame);
        let parsed = parse(&frame).unwrap();
        assert_eq!((parsed.l4_off, parsed.roce), (0, None), "{flags:?}");
    }
}

/// Returns an IPv6 packet with these extension headers before its UDP.
fn with_extensions(headers: &[(u8, &[u8])]) -> Vec<u8> {
    let mut frame = Craft::roce(v6(3), v6(2), 0x0a, 0x11, 64).frame();
    let udp = frame.split_off(54);
    let mut chain = Vec::new();
    let kinds: Vec<u8> = headers
        .iter()
        .map(|(kind, _)| *kind)
        .chain([udp::PROTOCOL])
        .collect();
    for (index, (_, body)) in headers.iter().enumerate() {
        chain.push(kinds[index + 1]);
        chain.extend_from_slice(body);
    }
    frame[20] = kinds[0];
    frame[18..20].copy_from_slice(&((chain.len() + udp.len()) as u16).to_be_bytes());
    frame.extend(chain);
    frame.extend(udp);
    frame
}

#[test]
fn extension_headers_are_stepped_over() {
    let options: &[u8] = &[0; 7];
    let frame = with_extensions(&[(ipv6::HOP_BY_HOP, options), (ipv6::DESTINATION, options)]);
    assert_eq!(
        parse(&frame)
            .unwrap()
            .roce
            .map(|roce| (roce.bth_off, roce.class)),
        Some((54 + 16 + 8, RoceClass::Data))
    );
    let fragment = with_extensions(&[(ipv6::FRAGMENT, &[0, 0, 1, 0, 0, 0, 9])]);
    assert_eq!(parse(&fragment).unwrap().roce, None);
    let atomic = with_extensions(&[(ipv6::FRAGMENT, &[0, 0, 0, 0, 0, 0, 9])]);
    assert!(parse(&atomic).unwrap().roce.is_some());
    let routed = |left| with_extensions(&[(ipv6::ROUTING, &[0, 4, left, 0, 0, 0, 0])]);
    assert!(parse(&routed(0)).unwrap().roce.is_some());
    // Regression: the flow cache counted such packets as those of a flow to the segment's address.
    assert_eq!(parse(&routed(1)).unwrap().roce, None);
    let endless = with_extensions(&[(ipv6::HOP_BY_HOP, options); 10]);
    assert_eq!(parse(&endless), Err(DropReason::IpHeader));
    let beyond = with_extensions(&[(ipv6::HOP_BY_HOP, &[255, 0, 0, 0, 0, 0, 0])]);
    assert_eq!(parse(&beyond), Err(DropReason::IpHeader));
}

#[test]
fn what_only_looks_like_rocev2_is_not_read() {
    let other_port = Craft {
        dst_port: 4792,
        ..Craft::roce(v4(3), v4(2), 0x0a, 0x11, 64)
    };
    assert_eq!(parse_craft(&other_port).unwrap().roce, None);
    let no_room_for_icrc = Craft {
        bth: None,
        payload: vec![0; 15],
        ..Craft::roce(v4(3), v4(2), 0x0a, 0x11, 0)
    };
    assert_eq!(parse_craft(&no_room_for_icrc).unwrap().roce, None);
    let mut wrong_udp_len = Craft::roce(v4(3), v4(2), 0x0a, 0x11, 64).frame();
    wrong_udp_len[39] -= 1;
    assert_eq!(parse(&wrong_udp_len).unwrap().roce, None);
}

#[test]
fn mac_control_is_never_tagged() {
    let mut frame = vec![0u8; 60];
    frame[12..14].copy_from_slice(&[0x88, 0x08]);
    assert_eq!(parse(&frame).unwrap().kind, Kind::MacControl);
    frame[12..14].copy_from_slice(&[0x81, 0]);
    frame[16..18].copy_from_slice(&[0x88, 0x08]);
    assert_eq!(parse(&frame), Err(DropReason::NotIp));
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&frame);
    }

    /// A good frame with a few octets changed and a cut somewhere never causes a panic, and offsets always lie inside.
    #[test]
    fn damaged_frames_keep_offsets_inside(v6_frame in any::<bool>(), tags in prop::collection::vec(any::<u16>(), 0..3),
                                          changes in prop::collection::vec((0usize..120, any::<u8>()), 0..6), cut in 0usize..300) {
        let (src, dst) = if v6_frame { (v6(3), v6(2)) } else { (v4(3), v4(2)) };
        let mut frame = Craft { tags, ..Craft::roce(src, dst, 0x0a, 0x11, 64) }.frame();
        for (at, value) in changes {
            if let Some(byte) = frame.get_mut(at) { *byte = value; }
        }
        frame.truncate(cut);
        if let Ok(parsed) = parse(&frame) {
            prop_assert!(usize::from(parsed.l3_off) + usize::from(parsed.ip_len) <= frame.len());
            if let Some(roce) = parsed.roce {
                prop_assert!(usize::from(roce.bth_off) + bth::HEADER_LEN + bth::ICRC_LEN <= frame.len());
            }
        }
    }

    /// Both parsers agree on UDP: where etherparse accepts a frame as UDP we find the same offsets, and where we do it agrees.
    #[test]
    fn agrees_with_another_parser(v6_frame in any::<bool>(), tags in prop::collection::vec(any::<u16>(), 0..3), tos in any::<u8>(),
                                  payload in 0usize..300) {
        let (src, dst) = if v6_frame { (v6(3), v6(2)) } else { (v4(3), v4(2)) };
        let craft = Craft { tags, tos, ..Craft::roce(src, dst, 0x04, 0x11, payload) };
        let frame = craft.frame();
        let parsed = parse(&frame).unwrap();
        let theirs = SlicedPacket::from_ethernet(&frame).unwrap();
        let (their_tos, their_src) = match theirs.net.as_ref().unwrap() {
            NetSlice::Ipv4(ip) => (ip.header().dcp().value() << 2 | ip.header().ecn().value(), IpAddr::V4(ip.header().source_addr())),
            NetSlice::Ipv6(ip) => (ip.header().traffic_class(), IpAddr::V6(ip.header().source_addr())),
            NetSlice::Arp(_) => unreachable!(),
        };
        prop_assert_eq!(parsed.tos, their_tos);
        prop_assert_eq!(src, their_src);
        let Some(TransportSlice::Udp(udp)) = theirs.transport else { panic!("no UDP") };
        let bth = usize::from(parsed.roce.unwrap().bth_off);
        prop_assert_eq!(udp.payload(), &frame[bth..]);
    }
}

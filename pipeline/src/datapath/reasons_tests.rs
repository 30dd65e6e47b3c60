//! Frames by name, and the drop reason of each: the table in docs/state.md is the test's.

use super::punted_rig::*;
use super::*;
use crate::punt::PuntClass;

const GUIDE: &str = include_str!("../../../docs/state.md");
const HEADER: &str = "| frame | dropped as | with `linux.integrate` |";

/// Returns the frame of this name, as it arrives on the port `dc` with an MTU of 4,200 octets.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn frame(name: &str) -> Vec<u8> {
    let us = mac(0);
    let udp = |ends: (&str, &str), to: u16| packet(ends, (17, 64), &[], &ports(49_152, to));
    let v4 = |src, dst| udp((src, dst), 4791);
    let routed = |src, dst| ip(us, &v4(src, dst));
    let with = |dst, change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = data(dst).frame();
        change(&mut frame);
        frame
    };
    let tagged = |ethertype: u16, tci: u16| {
        let mut frame = data("10.0.2.2").frame();
        let tag = u32::from(ethertype) << 16 | u32::from(tci);
        frame.splice(12..12, tag.to_be_bytes());
        frame
    };
    let to_all = |ends, to| ip(ALL_HOSTS, &udp(ends, to));
    let to_group = |ends, to| ip(OSPF_MAC, &udp(ends, to));
    let hops = |dst| {
        let mut craft = data(dst);
        craft.ttl = 1;
        craft.frame()
    };
    let sized = |len: usize| {
        let packet = packet(("10.0.1.3", "10.0.2.2"), (17, 64), &[], &vec![7; len - 20]);
        ip(us, &packet)
    };
    match name {
        "shorter than an Ethernet header" => vec![2; 13],
        "cut in the IPv4 header" => with("10.0.2.2", &|f| f.truncate(30)),
        "IPv4 length beyond the frame" => with("10.0.2.2", &|f| f.truncate(100)),
        "IPv6 length beyond the frame" => with("2001:db8:2::2", &|f| f.truncate(100)),
        "packet larger than the port's MTU" => sized(4201),
        "packet larger than the port's MTU, cut by the ring of the driver" => {
            let mut frame = sized(9000);
            frame.truncate(4300);
            frame
        }
        "IPv4 of version 5" => with("10.0.2.2", &|f| f[14] = 0x55),
        "IPv4 header length of 16" => with("10.0.2.2", &|f| f[14] = 0x44),
        "wrong IPv4 header checksum" => with("10.0.2.2", &|f| f[25] ^= 1),
        "IPv6 of version 4" => with("2001:db8:2::2", &|f| f[14] = 0x40),
        "chain of nine IPv6 extension headers" => {
            let mut chain = [60, 0, 0, 0, 0, 0, 0, 0].repeat(8);
            chain.extend([17, 0, 0, 0, 0, 0, 0, 0]);
            let ends = ("2001:db8:1::3", "2001:db8:2::2");
            ip(us, &packet(ends, (60, 64), &chain, &ports(1, 2)))
        }
        "two VLAN tags" => {
            let mut frame = tagged(0x8100, 100);
            frame.splice(12..12, [0x81, 0, 0, 100]);
            frame
        }
        "VLAN that the port does not carry" => tagged(0x8100, 101),
        "service tag (IEEE 802.1ad)" => tagged(0x88a8, 100),
        "to another station's MAC address" => with("10.0.2.2", &|f| f[5] ^= 0x40),
        "IPv4 of one host in a broadcast frame" => ip(ALL_HOSTS, &v4("10.0.1.3", "10.0.2.2")),
        "IPv4 of one host in a multicast frame" => ip(OSPF_MAC, &v4("10.0.1.3", "10.0.2.2")),
        "IPv4 to 255.255.255.255, UDP 69" => to_all(("10.0.1.3", "255.255.255.255"), 69),
        "DHCP of a host without an address" => to_all(("0.0.0.0", "255.255.255.255"), 67),
        "IPv4 to the broadcast address of a subnet" => to_all(("10.0.1.3", "10.0.1.255"), 69),
        "DHCP to the broadcast address of a subnet" => to_all(("10.0.1.3", "10.0.1.255"), 67),
        "PTP to 224.0.1.129, UDP 319" => to_group(("10.0.1.3", "224.0.1.129"), 319),
        "mDNS to 224.0.0.251" => to_group(("10.0.1.3", "224.0.0.251"), 5353),
        "IPv4 multicast to 239.1.1.1" => to_group(("10.0.1.3", "239.1.1.1"), 5004),
        "OSPF to 224.0.0.5" => {
            let hello = packet(("10.0.1.3", "224.0.0.5"), (89, 1), &[], &[2; 44]);
            ip(OSPF_MAC, &hello)
        }
        "IPv6 multicast to ff05::2" => ip(NODES, &udp(("fe80::9", "ff05::2"), 5004)),
        "DHCPv6 to ff02::1:2" => ip(NODES, &udp(("fe80::9", "ff02::1:2"), 547)),
        "IPv6 router solicitation" => ip(
            NODES,
            &packet(("::", "ff02::2"), (58, 255), &[], &[133; 24]),
        ),
        "source 127.0.0.1" => routed("127.0.0.1", "10.0.2.2"),
        "source 0.0.0.0 to one host" => routed("0.0.0.0", "10.0.2.2"),
        "source 224.0.0.5" => routed("224.0.0.5", "10.0.2.2"),
        "source 169.254.1.1" => routed("169.254.1.1", "10.0.2.2"),
        "destination 127.0.0.1" => routed("10.0.1.3", "127.0.0.1"),
        "destination 240.0.0.1" => routed("10.0.1.3", "240.0.0.1"),
        "source 127.0.0.1 to 255.255.255.255" => to_all(("127.0.0.1", "255.255.255.255"), 67),
        "source ::1" => routed("::1", "2001:db8:2::2"),
        "source ff02::1" => routed("ff02::1", "2001:db8:2::2"),
        "another host's link-local address" => routed("2001:db8:1::3", "fe80::99"),
        "ARP request" => ethernet(ALL_HOSTS, &[], 0x0806, &[1; 28]),
        "LLDP" => ethernet(LLDP_MAC, &[], 0x88cc, &[2; 200]),
        "IS-IS hello" => {
            let llc = [[0xfe, 0xfe, 3, 0x83]; 15].concat();
            ethernet(Mac([1, 0x80, 0xc2, 0, 0, 0x15]), &[], 1497, &llc)
        }
        "PTP over Ethernet" => ethernet(Mac([1, 0x1b, 0x19, 0, 0, 0]), &[], 0x88f7, &[2; 44]),
        "spanning tree" => ethernet(Mac([1, 0x80, 0xc2, 0, 0, 0]), &[], 38, &[0x42; 46]),
        "LACP" => ethernet(Mac([1, 0x80, 0xc2, 0, 0, 2]), &[], 0x8809, &[0; 110]),
        "MPLS" => ethernet(us, &[], 0x8847, &[0; 60]),
        "unknown EtherType (IPX)" => ethernet(ALL_HOSTS, &[], 0x8137, &[0; 60]),
        "ARP longer than 1,514 bytes" => ethernet(ALL_HOSTS, &[], 0x0806, &[0; 3000]),
        "TTL of 1" => hops("10.0.2.2"),
        "hop limit of 1" => hops("2001:db8:2::2"),
        "no route" => routed("10.0.1.3", "11.0.0.1"),
        "to a blackhole route" => routed("10.0.1.3", "10.0.6.2"),
        "to an unreachable route" => routed("10.0.1.3", "10.0.4.2"),
        "to a prohibited route" => routed("10.0.1.3", "10.0.5.2"),
        "next hop without a MAC address" => routed("10.0.1.3", "10.0.3.2"),
        "larger than the egress port's MTU" => sized(2000),
        "ping to the switch" => {
            let ping = packet(("10.0.1.3", "10.0.1.1"), (1, 64), &[], &[8; 64]);
            ip(us, &ping)
        }
        "to the switch with a loose source route" => {
            let options = [131, 7, 4, 10, 0, 2, 2];
            let ends = ("10.0.1.3", "10.0.1.1");
            ip(us, &packet(ends, (17, 64), &options, &ports(1, 2)))
        }
        other => panic!("docs/state.md has a frame {other:?} that this test does not know"),
    }
}

/// Returns what became of a frame, as the table writes it.
fn outcome(frame: &[u8], is_integrated: bool) -> String {
    let (mut path, mut host) = linux();
    if !is_integrated {
        path.punt = None;
    }
    push(&mut path, DC, frame, 0);
    let lost = [DC, WAN].map(|port| drops(&path, port)).concat();
    let came: Vec<PuntClass> = given(&mut host).iter().map(|(class, ..)| *class).collect();
    assert_whole(&path);
    match (&lost[..], &came[..]) {
        ([(reason, 1)], []) => format!("`{reason}`"),
        ([], [class]) => format!("goes to Linux, `{}`", class.name()),
        other => panic!("{other:?}"),
    }
}

/// Law: a drop reason blames the one whose fault it is. Earlier defects: DHCP and PTP were `martian`, a packet that the driver had cut was
/// `ip_truncated`.
#[test]
fn each_frame_of_the_guide_is_dropped_for_the_reason_that_it_says() {
    let rows = GUIDE.lines().skip_while(|line| *line != HEADER).skip(2);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 40, "{} rows", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, without, with] = cells[..] else {
            panic!("{row}");
        };
        let frame = frame(name);
        let found = [false, true].map(|is_integrated| outcome(&frame, is_integrated));
        assert_eq!(found, [without, with], "{name}");
    }
}

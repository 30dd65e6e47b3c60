//! Test rig: a path with Linux, and frames for it.

use super::*;
use crate::handoff::{WorkerPlan, links};
use crate::punt::{Place, PuntClass, PuntConfig, PuntHost, PuntInterface, PuntPort, PuntRates};

/// Addresses that routes lead to us.
pub(super) const OURS: [&str; 4] = ["10.0.1.1", "10.0.12.1", "169.254.9.1", "2001:db8:1::1"];

pub(super) const PLENTY: PuntRates = PuntRates {
    classes: [1_000_000; PuntClass::COUNT],
    asks: 1_000_000,
    icmp_errors: 1_000_000,
};

pub(super) fn interfaces(port: u8) -> PuntPort {
    let of = |vlan, v4: &str, v6: &str| PuntInterface {
        v4: v4.parse().ok(),
        v6: v6.parse().ok(),
        ..PuntInterface::new(vlan, mac(port))
    };
    let all = match port {
        0 => vec![
            of(0, "10.0.1.1", "2001:db8:1::1"),
            of(100, "10.0.100.1", ""),
        ],
        _ => vec![of(0, "10.0.12.1", "")],
    };
    PuntPort {
        interfaces: all,
        macs: vec![],
    }
}

/// Returns the path of [`path`], with Linux and a few more routes.
pub(super) fn with_linux(pool: PoolConfig, rates: PuntRates) -> (Path, PuntHost) {
    workers_with_linux(1, pool, rates).remove(0)
}

/// Returns such a path for each of so many workers, each of which owns one port.
pub(super) fn workers_with_linux(
    workers: u8,
    pool: PoolConfig,
    rates: PuntRates,
) -> Vec<(Path, PuntHost)> {
    let capacity = RouteCapacity {
        ipv4_routes: 64,
        ipv6_routes: 64,
        adjacencies: 64,
        groups: 64,
    };
    let (mut writer, readers) = RouteWriter::new(capacity, workers.into());
    let mut add = |text: &str, adjacency| {
        let (address, len) = text.split_once('/').unwrap();
        let prefix = Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap();
        writer.insert(prefix, &[adjacency]).unwrap();
    };
    let unresolved = Adjacency {
        port: WAN,
        vlan: 100,
        ..Adjacency::unusable(Kind::Unresolved)
    };
    let allowing = |mtu| Adjacency {
        mtu,
        ..forward(WAN, 2, 0)
    };
    for (text, adjacency) in [
        ("10.0.1.0/24", forward(DC, 3, 0)),
        ("10.0.0.0/8", forward(WAN, 2, 0)),
        ("10.0.100.0/24", forward(WAN, 2, 100)),
        ("10.0.3.0/24", unresolved),
        ("10.0.4.0/24", Adjacency::unusable(Kind::Unreachable)),
        ("10.0.5.0/24", Adjacency::unusable(Kind::Prohibited)),
        ("10.0.6.0/24", Adjacency::unusable(Kind::Blackhole)),
        ("10.0.7.0/24", allowing(1280)),
        ("2001:db8:1::/64", forward(DC, 3, 0)),
        ("2001:db8:7::/48", allowing(1300)),
        ("2001:db8::/32", forward(WAN, 2, 0)),
        ("2001:db8:3::/48", unresolved),
        ("2001:db8:4::/48", Adjacency::unusable(Kind::Unreachable)),
    ] {
        add(text, adjacency);
    }
    for address in OURS {
        let len = if address.contains(':') { 128 } else { 32 };
        add(
            &format!("{address}/{len}"),
            Adjacency::unusable(Kind::Local),
        );
    }
    writer.commit();
    let mut ports = vec![port(0, None), port(1, Some(RATE))];
    // Larger packets may arrive than leave.
    ports[1].intake.mtu = 1500;
    let assignment = WorkerPlan {
        workers,
        owners: vec![WorkerId(0), WorkerId(workers - 1)],
        ..WorkerPlan::alone(2)
    };
    let one = |(fib, seat)| {
        let (punt, host) = Punt::new(
            PuntConfig {
                rates,
                ports: (0..2).map(interfaces).collect(),
                control: Priority::new(6),
                ordinary: Priority::new(0),
            },
            7,
        );
        let path = Datapath::new(ports.clone(), pool, fib, NoTap, 1).with_punt(punt);
        let mut path: Path = path.with_links(seat);
        path.refresh();
        (path, host)
    };
    readers
        .into_iter()
        .zip(links(assignment))
        .map(one)
        .collect()
}

pub(super) fn linux() -> (Path, PuntHost) {
    with_linux(AMPLE, PLENTY)
}

/// Asserts the conservation law.
pub(super) fn assert_whole(path: &Path) {
    path.publish_held();
    assert_conserved(path);
}

/// Returns the frames given to Linux, class by class.
pub(super) fn given(host: &mut PuntHost) -> Vec<(PuntClass, Place, Vec<u8>)> {
    let (mut all, mut frame) = (Vec::new(), [0; 16 << 10]);
    for (class, queue) in PuntClass::ALL.into_iter().zip(&mut host.classes) {
        while let Some((place, bytes)) = queue.pop(&mut frame) {
            all.push((class, place, bytes.to_vec()));
        }
    }
    all
}

/// Returns a frame of any EtherType.
pub(super) fn ethernet(dst: Mac, tags: &[u16], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [dst.0, [2, 0, 0, 0, 9, 3]].concat();
    for tci in tags {
        frame.extend([0x81, 0]);
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Returns an IP packet: addresses, protocol, TTL, options or extension headers, and payload.
pub(super) fn packet(
    (src, dst): (&str, &str),
    (protocol, ttl): (u8, u8),
    more: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    match (v4(src), v4(dst)) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut options = more.to_vec();
            options.resize(options.len().next_multiple_of(4), 0);
            let len = (20 + options.len() + payload.len()) as u16;
            let mut header = vec![0x40 | (5 + options.len() / 4) as u8, 0];
            header.extend(len.to_be_bytes());
            header.extend([0, 0, 0, 0, ttl, protocol, 0, 0]);
            header.extend(src.octets());
            header.extend(dst.octets());
            header.extend(options);
            let check = !checksum::sum(&header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
            [header, payload.to_vec()].concat()
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut header = vec![0x60, 0, 0, 0];
            header.extend(((more.len() + payload.len()) as u16).to_be_bytes());
            header.extend([protocol, ttl]);
            header.extend(src.octets());
            header.extend(dst.octets());
            [header, more.to_vec(), payload.to_vec()].concat()
        }
        _ => panic!("two families"),
    }
}

pub(super) fn ports(src: u16, dst: u16) -> Vec<u8> {
    let mut out = [src.to_be_bytes(), dst.to_be_bytes()].concat();
    out.extend([0, 24, 0, 0]);
    out.resize(24, 7);
    out
}

pub(super) const ALL_HOSTS: Mac = Mac([0xff; 6]);
pub(super) const NODES: Mac = Mac([0x33, 0x33, 0, 0, 0, 1]);
pub(super) const OSPF_MAC: Mac = Mac([1, 0, 0x5e, 0, 0, 5]);
pub(super) const LLDP_MAC: Mac = Mac([1, 0x80, 0xc2, 0, 0, 0x0e]);
pub(super) const LINK_LOCAL: &str = "fe80::ff:fe00:101";

pub(super) fn ip(dst: Mac, packet: &[u8]) -> Vec<u8> {
    let ethertype = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    ethernet(dst, &[], ethertype, packet)
}

/// IPv6 extension headers for tests.
pub(super) const HOP_BY_HOP: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];
pub(super) const ROUTING: [u8; 8] = [17, 0, 4, 1, 0, 0, 0, 0];

//! Traffic mixes by name: the frames that each port receives, and the routes that forward them.
//!
//! Shuffled means an order drawn once from a fixed seed, so that two builds walk the same frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::{Mac, PortId};
use npcc_pipeline::wire::checksum;

use crate::two_ports::{DC, OURS, WAN};

/// Second egress port, in mixes that have one.
pub const WAN2: PortId = PortId(2);
/// VLAN ID of tagged frames.
pub const VLAN: u16 = 100;

const DATA: u8 = 0x0a;
const ACK: u8 = 0x11;
/// Offset of the IPv4 protocol field in an untagged Ethernet frame.
const PROTOCOL: usize = 23;
const TCP: u8 = 6;

/// A next hop of a route: its port, the VLAN tag frames leave with, the last octet of its MAC address.
#[derive(Debug, Clone, Copy)]
pub struct Hop {
    /// Egress port.
    pub port: PortId,
    /// VLAN tag; 0 for none.
    pub vlan: u16,
    /// Last octet of its MAC address.
    pub mac: u8,
}

/// A traffic mix: its ports, routes and frames.
#[derive(Debug, Clone)]
pub struct Mix {
    /// Ports of the switch.
    pub ports: u8,
    /// Routes: prefix, its length, next hops.
    pub routes: Vec<(IpAddr, u8, Vec<Hop>)>,
    /// Receiving ports and their frames, which repeat in this order.
    pub traffic: Vec<(PortId, Vec<Vec<u8>>)>,
}

/// Mixes that [`Mix::named`] knows, in the order of docs/measurements.md.
pub const NAMES: [&str; 12] = [
    "data-62",
    "data-1082",
    "data-acks",
    "three-classes",
    "four-ecn",
    "two-ports",
    "ecmp-4",
    "ipv6",
    "vlan",
    "two-way-62-acks",
    "two-way-1082-acks",
    "two-way-1082-data",
];

/// Number of flows of each mix.
const FLOWS: u16 = 64;

impl Mix {
    /// Returns the mix of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Mix> {
        one_way(name).or_else(|| two_way(name))
    }
}

/// Next hop of most mixes: frames come in by the first port and leave by the second, untagged.
const HOP: Hop = Hop {
    port: WAN,
    vlan: 0,
    mac: 9,
};

fn routes(hops: &[Hop]) -> Vec<(IpAddr, u8, Vec<Hop>)> {
    vec![(IpAddr::from([10, 0, 2, 0]), 24, hops.to_vec())]
}

fn plain(frames: Vec<Vec<u8>>) -> Mix {
    Mix {
        ports: 2,
        routes: routes(&[HOP]),
        traffic: vec![(DC, frames)],
    }
}

fn one_way(name: &str) -> Option<Mix> {
    Some(match name {
        "data-62" => plain(frames(FLOWS, |flow| data(flow, 4).frame())),
        "data-1082" => plain(frames(FLOWS, |flow| data(flow, 1024).frame())),
        "data-acks" => plain(shuffled(frames(2 * FLOWS, |n| match n % 2 {
            0 => data(n / 2, 4).frame(),
            _ => with_opcode(data(n / 2, 4), ACK).frame(),
        }))),
        "three-classes" => plain(shuffled(frames(3 * FLOWS, |n| match n % 3 {
            0 => data(n / 3, 4).frame(),
            1 => tcp(n / 3),
            _ => control(n / 3).frame(),
        }))),
        "four-ecn" => plain(shuffled(frames(4 * FLOWS, |n| {
            let mut craft = data(n / 4, 4);
            craft.tos = craft.tos & !3 | u8::try_from(n % 4).unwrap_or_default();
            craft.frame()
        }))),
        "two-ports" => two_ports(),
        "ecmp-4" => Mix {
            routes: routes(&[9, 10, 11, 12].map(|mac| Hop { mac, ..HOP })),
            ..plain(shuffled(frames(4 * FLOWS, |flow| data(flow, 4).frame())))
        },
        "ipv6" => Mix {
            routes: vec![(v6(2, 0), 64, vec![HOP])],
            ..plain(frames(FLOWS, |flow| {
                let mut craft = data(flow, 4);
                (craft.src, craft.dst) = (v6(1, 3), v6(2, flow + 1));
                craft.frame()
            }))
        },
        "vlan" => Mix {
            routes: routes(&[Hop { vlan: VLAN, ..HOP }]),
            ..plain(frames(FLOWS, |flow| {
                let mut craft = data(flow, 4);
                craft.tags = vec![VLAN];
                craft.frame()
            }))
        },
        _ => return None,
    })
}

/// Builds a mix in which half of the flows leave by a third port.
fn two_ports() -> Mix {
    let half = |low, port| (IpAddr::from([10, 0, 2, low]), 25, vec![Hop { port, ..HOP }]);
    let frames = frames(2 * FLOWS, |n| {
        let low = u8::try_from(n / 2).unwrap_or_default();
        let half = if n % 2 == 0 { 0 } else { 128 };
        let mut craft = data(n, 4);
        craft.dst = IpAddr::from([10, 0, 2, half + low]);
        craft.frame()
    });
    Mix {
        ports: 3,
        routes: vec![half(0, WAN), half(128, WAN2)],
        ..plain(shuffled(frames))
    }
}

fn two_way(name: &str) -> Option<Mix> {
    let (forth, opcode, back) = match name {
        "two-way-62-acks" => (4, ACK, 4),
        "two-way-1082-acks" => (1024, ACK, 4),
        "two-way-1082-data" => (1024, DATA, 1024),
        _ => return None,
    };
    let mut mix = plain(frames(FLOWS, |flow| data(flow, forth).frame()));
    let home = Hop {
        port: DC,
        vlan: 0,
        mac: 3,
    };
    mix.routes
        .push((IpAddr::from([10, 0, 1, 0]), 24, vec![home]));
    let frames = frames(FLOWS, |flow| reverse(flow, opcode, back).frame());
    mix.traffic.push((WAN, frames));
    Some(mix)
}

fn frames(count: u16, frame: impl Fn(u16) -> Vec<u8>) -> Vec<Vec<u8>> {
    (0..count).map(frame).collect()
}

/// Builds a data packet of a flow, from 10.0.1.3 to an address of its own.
fn data(flow: u16, payload: usize) -> Craft {
    let low = u8::try_from(flow % 255).unwrap_or_default();
    let dst = IpAddr::V4(Ipv4Addr::new(10, 0, 2, low + 1));
    Craft {
        dst_mac: OURS,
        src_port: 49_152 + flow,
        ..Craft::roce(
            IpAddr::from([10, 0, 1, 3]),
            dst,
            DATA,
            u32::from(flow) + 0x11,
            payload,
        )
    }
}

fn with_opcode(mut craft: Craft, opcode: u8) -> Craft {
    if let Some(bth) = &mut craft.bth {
        bth.opcode = opcode;
    }
    craft
}

/// Builds a packet that the receiver of a flow sends back.
fn reverse(flow: u16, opcode: u8, payload: usize) -> Craft {
    let forth = data(flow, payload);
    Craft {
        src_mac: Mac([2, 0, 0, 0, 9, 9]),
        src: forth.dst,
        dst: forth.src,
        ..with_opcode(data(flow + 0x100, payload), opcode)
    }
}

/// Builds a frame of 62 bytes with a TCP segment, of the lossy class.
fn tcp(flow: u16) -> Vec<u8> {
    let craft = Craft {
        tos: 0,
        dst_port: 443,
        bth: None,
        payload: vec![0x50; 20],
        ..data(flow, 4)
    };
    let mut frame = craft.frame();
    if let Some(protocol) = frame.get_mut(PROTOCOL) {
        *protocol = TCP;
    }
    if let Some(header) = frame.get_mut(14..34) {
        header[10..12].fill(0);
        let check = !checksum::sum(header);
        header[10..12].copy_from_slice(&check.to_be_bytes());
    }
    frame
}

/// Builds a control frame of 62 bytes: DSCP 48, a strict queue.
fn control(flow: u16) -> Craft {
    Craft {
        tos: 48 << 2,
        dst_port: 3784,
        bth: None,
        payload: vec![0; 20],
        ..data(flow, 4)
    }
}

fn v6(net: u16, host: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host))
}

/// Shuffles the frames into an order drawn from a fixed seed (Fisher and Yates, xorshift).
fn shuffled(mut frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for last in (1..frames.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let other = usize::try_from(state >> 33).unwrap_or_default() % (last + 1);
        frames.swap(last, other);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_mix_of_the_length_it_says() {
        for name in NAMES {
            let mix = Mix::named(name).unwrap();
            let forth = &mix.traffic[0].1;
            let length = match name {
                "ipv6" => 82,
                "vlan" => 66,
                _ if name.contains("1082") => 1082,
                _ => 62,
            };
            assert!(forth.iter().all(|frame| frame.len() == length), "{name}");
            assert!(forth.len() >= usize::from(FLOWS));
        }
        assert!(Mix::named("none").is_none());
    }
}

//! Connections between two hosts, through the real parser, flow cache and control core.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use npcc_cnp::control::config::ControlConfig;
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::{BitRate, Nanos};
use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;
use npcc_roce::pair::port_hash::port_of;
use npcc_testkit::npcc::{self, TICK, World};

const RATE: BitRate = BitRate(100_000_000_000);
/// Time of a round, in which each connection sends once, in ns.
const ROUND: u64 = 500_000;
/// Number of rounds: 60 ms and 120 packets, more than evidence `port` needs.
const ROUNDS: u32 = 120;

/// Manner of traffic: set-up of connections, their numbers, their operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Manner {
    Cm,
    Nccl,
    RandomPsn,
    RandomPsnAsymmetric,
    Read,
    Both,
    Uc,
    OwnPorts,
    Asymmetric,
    AsymmetricBoth,
}

impl Manner {
    pub(crate) const ALL: [Manner; 10] = [
        Manner::Cm,
        Manner::Nccl,
        Manner::RandomPsn,
        Manner::RandomPsnAsymmetric,
        Manner::Read,
        Manner::Both,
        Manner::Uc,
        Manner::OwnPorts,
        Manner::Asymmetric,
        Manner::AsymmetricBoth,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Manner::Cm => "CM, ports by flow label",
            Manner::Nccl => "NCCL-like: all PSN 0, flow label 0",
            Manner::RandomPsn => "random PSN, one port for all",
            Manner::RandomPsnAsymmetric => {
                "the same, a quarter of data, a quarter of answers by another path"
            }
            Manner::Read => "READ, flow label 0",
            Manner::Both => "both directions, flow label 0",
            Manner::Uc => "UC, flow label 0",
            Manner::OwnPorts => "ports by own QPN, all PSN 0",
            Manner::Asymmetric => "every other answer by another path",
            Manner::AsymmetricBoth => "a quarter of data, a quarter of answers by another path",
        }
    }

    /// UDP source ports of both directions.
    pub(crate) fn ports(self, a: u32, b: u32) -> (u16, u16) {
        let same = |port: u16| (port, port);
        let own = |qpn: u32| 0xc000 + (qpn.wrapping_mul(0x61c8_8647) >> 18) as u16;
        match self {
            Manner::Cm => {
                same(0xc000 + ((a ^ b.rotate_left(9)).wrapping_mul(0x85eb_ca6b) >> 18) as u16)
            }
            Manner::RandomPsn | Manner::RandomPsnAsymmetric => same(0xd000),
            Manner::OwnPorts => (own(a), own(b)),
            _ => same(port_of(Qpn::new(a), Qpn::new(b))),
        }
    }
}

/// Result of one manner with one number of connections.
pub(crate) struct Cell {
    pub(crate) wrong: usize,
    paired: usize,
    of: u32,
    evidence: BTreeSet<&'static str>,
    /// Median number of packets of data until a flow was paired.
    pub(crate) packets: Option<u32>,
}

impl Cell {
    pub(crate) fn recall(&self) -> usize {
        self.paired * 100 / self.of as usize
    }

    pub(crate) fn evidence(&self) -> String {
        let names: Vec<_> = self.evidence.iter().copied().collect();
        names.join(" and ")
    }
}

fn address(last: u8) -> IpAddr {
    [10, 0, last, last].into()
}

pub(crate) fn packet(to_b: bool, port: u16, opcode: u8, qpn: u32, psn: u32) -> Vec<u8> {
    let (src, dst) = if to_b { (1, 2) } else { (2, 1) };
    let payload = if opcode == 0x11 || opcode == 0x0c {
        16
    } else {
        1_024
    };
    let mut craft = Craft::roce(address(src), address(dst), opcode, qpn, payload);
    craft.src_port = port;
    if let Some(fields) = &mut craft.bth {
        (fields.psn, fields.ack_req) = (psn & 0xff_ffff, true);
    }
    craft.frame()
}

/// Frame with a REQ or REP.
fn message(to_b: bool, attribute: u8, fields: &[(usize, u32)]) -> Vec<u8> {
    let (src, dst) = if to_b { (1, 2) } else { (2, 1) };
    let mut craft = Craft::roce(address(src), address(dst), 0x64, 1, 264);
    let payload = &mut craft.payload;
    payload[..8].copy_from_slice(&[0x80, 1, 0, 0, 0, 0, 0, 1]);
    payload[8..12].copy_from_slice(&[1, 7, 2, 3]);
    payload[25] = attribute;
    for (offset, value) in fields {
        payload[32 + offset..36 + offset].copy_from_slice(&value.to_be_bytes());
    }
    craft.frame()
}

/// Sets up connection `n` by the connection manager; no host sets up more than a million connections a second.
fn set_up(world: &mut World, n: u32, (a, b): (u32, u32)) {
    world.now += Nanos::from_micros(1);
    let (local, remote) = (0x100 + n, 0x9_0000 + n);
    world.pass(
        &message(true, 0x10, &[(0, local), (32, a << 8), (88, 0x1234_5000)]),
        true,
    );
    world.pass(
        &message(false, 0x13, &[(0, remote), (4, local), (12, b << 8)]),
        false,
    );
    world.tick(0, |_| {});
}

/// Queue pairs of both endpoints of connection `n`: no order, no number on both sides.
pub(crate) fn numbers(n: u32) -> (u32, u32) {
    let scramble = |x: u32| x.wrapping_mul(0x9e37_79b1) >> 9;
    (scramble(n + 1) | 2, scramble(n + 1_000_000) | 0x80_0002)
}

/// A number that looks random.
pub(crate) fn scatter(n: u32) -> u32 {
    let mixed = (n + 1).wrapping_mul(0x85eb_ca6b);
    let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    (mixed ^ mixed >> 16) >> 8
}

/// Passes one packet of data and its answer, in this round.
fn exchange(world: &mut World, manner: Manner, n: u32, round: u32) {
    let (a, b) = numbers(n);
    let (forth, back) = manner.ports(a, b);
    let psn = match manner {
        Manner::RandomPsn | Manner::RandomPsnAsymmetric | Manner::Cm => scatter(n),
        _ => 0,
    } + round;
    match manner {
        Manner::Read => {
            world.pass(&packet(false, back, 0x0c, a, psn), false);
            world.pass(&packet(true, forth, 0x10, b, psn), true);
        }
        Manner::Uc => world.pass(&packet(true, forth, 0x2a, b, psn), true),
        Manner::Both => {
            world.pass(&packet(true, forth, 0x0a, b, psn), true);
            world.pass(&packet(false, back, 0x0a, a, psn), false);
            world.pass(&packet(true, forth, 0x11, b, psn), true);
            world.pass(&packet(false, back, 0x11, a, psn), false);
        }
        _ => {
            let (data, answer) = match manner {
                Manner::Asymmetric => (true, n.is_multiple_of(2)),
                Manner::AsymmetricBoth | Manner::RandomPsnAsymmetric => (n % 4 != 1, n % 4 != 2),
                _ => (true, true),
            };
            if data {
                world.pass(&packet(true, forth, 0x0a, b, psn), true);
            }
            if answer {
                world.pass(&packet(false, back, 0x11, a, psn), false);
            }
        }
    }
}

/// Runs 60 ms of traffic over `count` connections through a queue that stays deep and rises.
pub(crate) fn run(manner: Manner, count: u32) -> Cell {
    let depths = [375_000, 1_500_000, 3_000_000];
    let settings = npcc::settings(depths, RATE, PolicyName::Npcc.defaults());
    let mut world = World::new(settings, ControlConfig::default().flows);
    let truth: HashMap<u32, u32> = (0..count)
        .map(|n| {
            let (a, b) = numbers(n);
            (b, a)
        })
        .collect();
    assert_eq!(truth.len(), count as usize);
    if manner == Manner::Cm {
        (0..count).for_each(|n| set_up(&mut world, n, numbers(n)));
    }
    let mut cell = Cell {
        wrong: 0,
        paired: 0,
        of: count,
        evidence: BTreeSet::new(),
        packets: None,
    };
    let mut paired: HashMap<u32, u32> = HashMap::new();
    for round in 0..ROUNDS {
        for step in 0..ROUND / TICK.0 {
            // Connections do not move all at once.
            let phase = u32::try_from(ROUND / TICK.0).unwrap();
            let mine = (0..count).filter(|n| u64::from(n % phase) == step);
            mine.for_each(|n| exchange(&mut world, manner, n, round));
            world.now += TICK;
            let depth = 1_600_000 + u64::from(round) * 5_000 + step * 100;
            world.tick(depth, |order| {
                let qpn = order.flow.dest_qp().get();
                cell.wrong += usize::from(truth[&qpn] != order.sender_qpn.get());
                cell.evidence.insert(order.evidence.name());
            });
        }
        for flow in world.core.flows().flows() {
            let qpn = flow.flow.key.dest_qp().get();
            if flow.evidence >= Evidence::Port {
                cell.wrong += usize::from(truth[&qpn] != flow.sender_qpn.get());
                paired.entry(qpn).or_insert(round + 1);
            }
        }
    }
    cell.paired = paired.len();
    let mut packets: Vec<_> = paired.into_values().collect();
    packets.sort_unstable();
    cell.packets = packets.get(packets.len() / 2).copied();
    cell
}

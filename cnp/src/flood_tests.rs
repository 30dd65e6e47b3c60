//! Floods of made-up flows and requests, with right ICRCs: a new connection that comes by another port, or from another source by the
//! same port, is signalled as if they did not come. Work is counted, not timed.

use std::collections::BTreeSet;

use npcc_pipeline::frame::HeapFrame;
use npcc_pipeline::units::{Nanos, PortId};

use crate::control::config::{ControlConfig, Settings};
use crate::safety_tests::message;
use crate::traffic_tests::rig::{DC, Packet, RATE, Rig, WAN, with};
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;

const TICK: Nanos = Nanos::from_micros(20);
/// Port of the honest host; the flood comes by [`DC`].
const OTHER: PortId = PortId(2);
const RECEIVER: u32 = 0x11;
/// Number of new flows per tick: two million a second.
const FLOOD: u32 = 40;
/// Number of sources of a flood from many; the flood also has more names than there is room for.
const SOURCES: u32 = 10_000;
const NAMES: u32 = 400_000;

/// A rig with tables of the default sizes.
fn flooded_rig() -> Rig {
    let defaults = ControlConfig::default();
    let ports = |settings: &mut Settings| settings.port_rates = vec![RATE; 3];
    Rig::new(&ControlConfig {
        flows: defaults.flows,
        ends: defaults.ends,
        new_flows: u64::MAX,
        new_flows_burst: u64::MAX,
        ..with(TICK, ports)
    })
}

/// Packet `n` of a flood from this many sources.
fn made_up(sources: u32, n: u32) -> Packet {
    let [.., high, low] = (n % sources).to_be_bytes();
    Packet {
        src: [10, 9, high, low],
        dst: [10, 0, 2, 2],
        port: 50_000,
        opcode: 0x0a,
        qpn: 0x1000 + n,
        psn: 7,
        payload: 8,
    }
}

/// Data of honest connection `n`.
fn data(n: u32) -> Packet {
    Packet {
        src: [10, 0, 1, 3],
        dst: [10, 0, 2, 2],
        port: port_of(Qpn::new(0x8000 + n), Qpn::new(RECEIVER + n)),
        opcode: 0x0a,
        qpn: RECEIVER + n,
        psn: 0,
        payload: 1_024,
    }
}

/// The answer to the data of connection `n`.
fn ack(n: u32) -> Packet {
    Packet {
        src: data(n).dst,
        dst: data(n).src,
        opcode: 0x11,
        qpn: 0x8000 + n,
        payload: 0,
        ..data(n)
    }
}

/// A flood, and the queue that it fills.
struct Flood {
    rig: Rig,
    sources: u32,
    sent: u32,
}

impl Flood {
    /// Makes a flood that has lasted 150 ms.
    fn lasting(sources: u32) -> Flood {
        let mut flood = Flood {
            rig: flooded_rig(),
            sources,
            sent: 0,
        };
        for _ in 0..7_500 {
            flood.tick(0);
        }
        flood
    }

    /// Runs one tick; returns the queue pairs that were signalled in it.
    fn tick(&mut self, depth: u64) -> Vec<u32> {
        for _ in 0..FLOOD {
            let packet = made_up(self.sources, self.sent % NAMES);
            self.rig.pass(&packet, DC, WAN);
            self.sent += 1;
        }
        let before = self.rig.sent.len();
        self.rig.tick(TICK, depth);
        let new = self.rig.sent.iter().skip(before);
        new.map(|order| order.sender_qpn.get()).collect()
    }

    /// Ticks from the first shown packet of a new connection to its first CNP, its answer coming in the tick of its first packet.
    fn ticks_until_signalled(&mut self, n: u32, port: PortId) -> Option<u32> {
        self.rig.pass(&data(n), port, WAN);
        self.rig.pass(&ack(n), WAN, port);
        (1..=50).find(|_| {
            let signalled = self.tick(900_000).contains(&(0x8000 + n));
            self.rig.pass(&data(n), port, WAN);
            signalled
        })
    }

    /// Asserts that each of `count` connections, which begin `gap` ticks apart, has its first CNP within two ticks.
    fn signals_new_connections(&mut self, count: u32, gap: u32, port: PortId) {
        for n in 0..count {
            let ticks = self.ticks_until_signalled(n, port);
            let sources = self.sources;
            assert!(
                ticks.is_some_and(|ticks| ticks <= 2),
                "{sources}, {n}: {ticks:?}"
            );
            for _ in 0..gap {
                self.tick(0);
            }
        }
    }
}

/// Regression: new connections got no CNP at all while a flood of new flows lasted.
#[test]
fn a_flood_of_new_flows_holds_up_no_new_connection_of_another_port() {
    for sources in [1, 8, SOURCES] {
        Flood::lasting(sources).signals_new_connections(6, 500, OTHER);
    }
}

/// Regression: records that came at once stood before every later one: 20,000 of them for 6 ms.
#[test]
fn the_beginning_of_a_flood_holds_up_no_new_connection_of_another_port() {
    let mut flood = Flood {
        rig: flooded_rig(),
        sources: SOURCES,
        sent: 20_000,
    };
    for n in 0..20_000 {
        flood.rig.pass(&made_up(SOURCES, n), DC, WAN);
    }
    flood.signals_new_connections(6, 0, OTHER);
}

/// Law: a new connection by the same port is not held up by a flood from few sources; a flood from many can use any address there.
#[test]
fn a_flood_of_few_sources_holds_up_no_new_connection_of_its_port() {
    for sources in [1, 8] {
        Flood::lasting(sources).signals_new_connections(6, 500, DC);
    }
}

fn request(from: [u8; 4], id: u32, qpn: u32) -> HeapFrame {
    let to = data(0).dst;
    message(
        from,
        to,
        0x10,
        &[(0, id), (32, qpn << 8), (88, 0x1234_5000)],
        true,
    )
}

/// The REP to connection `n`, whose REQ has this number.
fn grant(n: u32, id: u32) -> HeapFrame {
    let (a, b) = (data(n).src, data(n).dst);
    let granted = [(0, 9 + n), (4, id), (12, (RECEIVER + n) << 8)];
    message(b, a, 0x13, &granted, true)
}

/// Regression: a connection whose REP came 30 ms after its REQ was never paired while others sent 820,000 requests a second.
#[test]
fn a_flood_of_requests_pushes_out_no_request_of_another_port_or_source() {
    for (sources, port) in [(SOURCES, OTHER), (1, OTHER), (1, DC)] {
        let mut rig = flooded_rig();
        rig.pass_frame(&request(data(0).src, 7, 0x8000), port, WAN);
        // 30 ms of them, 16 a tick.
        for tick in 0..1_500 {
            for n in tick * 16..(tick + 1) * 16 {
                let from = made_up(sources, n).src;
                rig.pass_frame(&request(from, 0x100 + n, 0x1000 + n), DC, WAN);
            }
            rig.tick(TICK, 0);
        }
        rig.pass_frame(&grant(0, 7), WAN, port);
        rig.tick(TICK, 0);
        let labelled = Packet {
            port: 50_001,
            ..data(0)
        };
        rig.pass(&labelled, port, WAN);
        rig.tick(TICK, 0);
        rig.pass(&labelled, port, WAN);
        rig.tick(TICK, 900_000);
        let signalled: Vec<u32> = rig
            .sent
            .iter()
            .map(|order| order.sender_qpn.get())
            .collect();
        assert_eq!(signalled, [0x8000], "{sources} {port:?}");
    }
}

/// Regression: one ring held the messages of all ports, so a flood that filled it while the control core was away lost those of the others.
#[test]
fn a_flood_of_requests_while_the_control_core_is_away_takes_no_message_of_another_port() {
    const CONNECTIONS: u32 = 50;
    const FLOOD: u32 = 80;
    let mut rig = flooded_rig();
    // 5 ms without a tick, 800,000 requests a second by the flood's port.
    for n in 0..CONNECTIONS {
        for other in n * FLOOD..(n + 1) * FLOOD {
            let from = made_up(SOURCES, other).src;
            rig.pass_frame(&request(from, 0x1000 + other, 0x1000 + other), DC, WAN);
        }
        rig.pass_frame(&request(data(n).src, 7 + n, 0x8000 + n), OTHER, WAN);
        rig.now += Nanos::from_micros(50);
        rig.pass_frame(&grant(n, 7 + n), WAN, OTHER);
        rig.now += Nanos::from_micros(50);
    }
    let lost = [DC, OTHER, WAN].map(|port| rig.messages_lost_by(port));
    assert!(lost[0] > u64::from(CONNECTIONS * FLOOD) / 2, "{lost:?}");
    assert_eq!(
        lost[1..],
        [0, 0],
        "messages lost by the honest hosts' ports"
    );
    // All that wait are read within as many ticks, the oldest first.
    for _ in 0..20 {
        rig.tick(TICK, 0);
    }
    let labelled = |n| Packet {
        port: 50_001,
        ..data(n)
    };
    let mut signalled = BTreeSet::new();
    for _ in 0..4 {
        for n in 0..CONNECTIONS {
            rig.pass(&labelled(n), OTHER, WAN);
        }
        rig.tick(TICK, 900_000);
        signalled.extend(rig.sent.iter().map(|order| order.sender_qpn.get()));
    }
    assert_eq!(signalled, (0x8000..0x8000 + CONNECTIONS).collect());
}

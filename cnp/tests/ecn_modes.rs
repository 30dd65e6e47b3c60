//! The four `ecn` modes from frame in to frame out: real bytes through the packet path, the flow cache and the control core,
//! whose only word to the packet path is until when a flow counts as told.
//!
//! The queue marks everything that leaves another behind. Half of the frames come marked by a switch upstream. Checksums are
//! computed anew by `etherparse`. What this does not show: how long is good (`sim`), and that a NIC agrees with the ICRC,
//! which masks the field (`captures.rs`, the soft-RoCE guests).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]

use std::net::IpAddr;

use etherparse::{NetHeaders, PacketHeaders};
use npcc_cnp::action::Action;
use npcc_cnp::build::{CnpSpec, CnpStyle};
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::command::Command;
use npcc_cnp::control::config::{ControlConfig, EcnMode as Mode, QueueConfig as Watched, Settings};
use npcc_cnp::detector::DetectorConfig;
use npcc_cnp::flow_cache::FlowCache;
use npcc_cnp::host_rules::HostRules;
use npcc_cnp::key::{FlowKey, Qpn};
use npcc_cnp::pair::port_hash::port_of;
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::datapath::{Datapath, Outgoing, PortConfig};
use npcc_pipeline::egress::ecn::Red;
use npcc_pipeline::egress::port::{EcnMode, EgressConfig, QueueConfig};
use npcc_pipeline::frame::{FrameBuf, FrameVec, HeapFrame};
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::units::{BitRate, Mac, Nanos, PortId, Priority};

const DC: PortId = PortId(0);
const WAN: PortId = PortId(1);
const QUEUE: Priority = Priority::new(3);
const MAC: Mac = Mac([2, 0, 0, 0, 1, 1]);
const TICK: Nanos = Nanos::from_micros(20);
const ECT: u8 = 2;
const CE: u8 = 3;
/// Queue pairs at the sender and the receiver of who is told, and of who is not.
const TOLD: (u32, u32) = (0x1_0018, 0x11);
const OTHER: (u32, u32) = (0x1_0019, 0x12);

struct Switch {
    path: Datapath<HeapFrame, FlowCache>,
    core: ControlCore,
    now: Nanos,
    hosts: (IpAddr, IpAddr),
    /// Keeps the routes.
    _routes: RouteWriter,
}

fn port(mode: Mode, hard: u64) -> PortConfig {
    let always = Red {
        kmin: 0,
        kmax: 0,
        pmax: 0,
    };
    let queue = QueueConfig {
        ecn: (mode != Mode::Off).then_some(always),
        watch: [u64::MAX, hard],
        ..QueueConfig::default()
    };
    PortConfig {
        intake: IngressConfig {
            mac: MAC,
            mtu: 4_200,
            vlans: Box::new([]),
            classifier: Classifier::all(QUEUE),
        },
        egress: EgressConfig {
            rate: None,
            max_frame: 4_222,
            away: Nanos::ZERO,
            queues: std::array::from_fn(|_| queue.clone()),
        },
        // As switch/src/wiring/path.rs has it.
        ecn: match mode {
            Mode::MarkUnlessNotified => EcnMode::MarkUnlessNotified,
            Mode::ClearAfterCnp => EcnMode::ClearAfterCnp,
            Mode::Mark | Mode::Off => EcnMode::Mark,
        },
    }
}

fn settings(mode: Mode) -> Settings {
    let drain = BitRate(10_000_000_000);
    let detector = DetectorConfig {
        shallow: 100_000,
        deep: 400_000,
        hard: 800_000,
        hysteresis: 20,
        filter: 2,
        tick: TICK,
        drain,
        mtu: 4_200,
    };
    let policy = PolicyName::Npcc.defaults();
    Settings {
        queues: vec![Watched::new((WAN, QUEUE), detector, policy)],
        port_rates: vec![drain, drain],
        ecn: mode,
        hosts: HostRules::all_answer(),
        ..Settings::default()
    }
}

fn core(mode: Mode) -> ControlCore {
    ControlCore::new(&ControlConfig {
        settings: settings(mode),
        tick: TICK,
        ..ControlConfig::default()
    })
}

impl Switch {
    fn new(mode: Mode, ipv6: bool, hard: u64) -> Switch {
        let capacity = RouteCapacity {
            ipv4_routes: 16,
            ipv6_routes: 16,
            adjacencies: 16,
            groups: 16,
        };
        let (mut routes, mut readers) = RouteWriter::new(capacity, 1);
        let hosts: (IpAddr, IpAddr) = if ipv6 {
            (
                "2001:db8:1::3".parse().unwrap(),
                "2001:db8:2::2".parse().unwrap(),
            )
        } else {
            ([10, 0, 1, 3].into(), [10, 0, 2, 2].into())
        };
        for (host, port) in [(hosts.0, DC), (hosts.1, WAN)] {
            let path = Adjacency {
                kind: Kind::Forward,
                port,
                vlan: 0,
                dst: Mac([2, 0, 0, 0, 9, 9]),
                src: MAC,
            };
            let prefix = Prefix::new(host, if ipv6 { 64 } else { 24 }).unwrap();
            routes.insert(prefix, &[path]).unwrap();
        }
        routes.commit();
        let (cache, reader) = FlowCache::new(64, WAN.bit(), 64, 1);
        let mut core = core(mode);
        assert!(core.attach(reader));
        let pool = PoolConfig {
            bytes: 1 << 22,
            frames: 4_096,
            alpha_256: 256,
        };
        let path = Datapath::new(
            vec![port(mode, hard), port(mode, hard)],
            pool,
            readers.remove(0),
            cache,
            1,
        );
        Switch {
            path,
            core,
            now: Nanos::from_millis(1),
            hosts,
            _routes: routes,
        }
    }

    /// Data of a connection with this ECN field.
    fn data(&self, (a, b): (u32, u32), ecn: u8) -> Vec<u8> {
        let mut craft = Craft::roce(self.hosts.0, self.hosts.1, 0x0a, b, 1_024);
        craft.tos = 26 << 2 | ecn;
        craft.src_port = port_of(Qpn::new(a), Qpn::new(b));
        craft.frame()
    }

    fn ack(&self, (a, b): (u32, u32)) -> Vec<u8> {
        let mut craft = Craft::roce(self.hosts.1, self.hosts.0, 0x11, a, 4);
        craft.src_port = port_of(Qpn::new(a), Qpn::new(b));
        craft.frame()
    }

    /// The CNP with which the receiver tells the sender itself.
    fn cnp(&self, (a, b): (u32, u32)) -> Vec<u8> {
        let spec = CnpSpec {
            flow: FlowKey::new(self.hosts.0, self.hosts.1, Qpn::new(b)),
            sender_qpn: Qpn::new(a),
            dst_mac: Mac([2, 0, 0, 0, 1, 1]),
            src_mac: Mac([2, 0, 0, 0, 1, 3]),
            vlan: None,
            ip_id: 0,
            style: CnpStyle::default(),
        };
        spec.build().bytes().to_vec()
    }

    /// What the sender answers to the receiver's own data.
    fn near_ack(&self) -> Vec<u8> {
        let mut craft = Craft::roce(self.hosts.0, self.hosts.1, 0x11, TOLD.1, 4);
        craft.src_port = port_of(Qpn::new(TOLD.0), Qpn::new(TOLD.1));
        craft.frame()
    }

    fn enter(&mut self, port: PortId, frames: &[Vec<u8>]) {
        let mut burst = FrameVec::default();
        burst.extend(frames.iter().map(|frame| HeapFrame::new(frame)));
        self.path.refresh();
        self.path.ingress(port, &mut burst, self.now);
    }

    fn leave(&mut self, port: PortId) -> Vec<Vec<u8>> {
        let mut out = Outgoing::new();
        self.path.egress(port, &mut out, self.now);
        out.iter().map(|frame| frame.buf.data().to_vec()).collect()
    }

    fn tick(&mut self, depth: u64) -> usize {
        self.tick_after(TICK, depth)
    }

    fn tick_after(&mut self, time: Nanos, depth: u64) -> usize {
        let mut told = 0;
        self.now += time;
        self.core.tick(self.now, |_, _| depth, &mut |order| {
            assert_eq!(order.sender_qpn.get(), TOLD.0);
            told += 1;
            Ok(())
        });
        told
    }

    /// Sends one frame with each field of each connection, and says with which they left: told ECT and CE, other ECT and CE.
    fn fields(&mut self) -> [u8; 4] {
        let sent = [(TOLD, ECT), (TOLD, CE), (OTHER, ECT), (OTHER, CE)];
        let mut frames: Vec<_> = sent
            .iter()
            .map(|(who, ecn)| self.data(*who, *ecn))
            .collect();
        // One stays behind, so that those before it leave a queue that is not empty.
        frames.push(self.near_ack());
        self.enter(DC, &frames);
        let out = self.leave(WAN);
        assert_eq!(out.len(), 5);
        let fields: Vec<_> = out.iter().map(|frame| field(frame)).collect();
        // An ACK is never marked.
        assert_eq!(fields.last(), Some(&ECT));
        std::array::from_fn(|at| fields.get(at).copied().unwrap())
    }
}

/// The ECN field of a frame whose header is right.
fn field(frame: &[u8]) -> u8 {
    let headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
    match headers.net.unwrap() {
        NetHeaders::Ipv4(header, _) => {
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(header.dscp.value(), 26);
            header.ecn.value()
        }
        NetHeaders::Ipv6(header, _) => {
            assert_eq!(header.traffic_class >> 2, 26);
            header.traffic_class & 3
        }
        NetHeaders::Arp(_) => panic!("not IP"),
    }
}

/// What leaves before anybody is told, while one is, and when the time is over.
fn run(mode: Mode, ipv6: bool, hard: u64) -> [[u8; 4]; 3] {
    let mut switch = Switch::new(mode, ipv6, hard);
    let (data, ack) = (switch.data(TOLD, ECT), switch.ack(TOLD));
    switch.enter(DC, &[data]);
    switch.enter(WAN, &[ack]);
    switch.leave(WAN);
    switch.leave(DC);
    assert_eq!(switch.tick(0), 0);
    let before = switch.fields();
    assert_eq!(switch.tick(900_000), 1);
    let told = switch.fields();
    switch.now += Nanos::from_millis(1);
    [before, told, switch.fields()]
}

/// Whoever is only observed is marked as ECN alone marks, in every mode: by a decision of ours and by a CNP of its receiver that
/// passes. Marks are spared again from the first CNP that leaves.
#[test]
fn whoever_is_only_observed_is_marked_as_without_npcc() {
    for mode in [Mode::Mark, Mode::MarkUnlessNotified, Mode::ClearAfterCnp] {
        let mut switch = Switch::new(mode, false, u64::MAX);
        let act = |switch: &mut Switch, action| {
            let settings = Settings {
                action,
                ..settings(mode)
            };
            let configure = Command::Configure(Box::new(settings));
            switch.core.obey(&configure, switch.now).unwrap();
        };
        act(&mut switch, Action::Observe);
        let (data, ack) = (switch.data(TOLD, ECT), switch.ack(TOLD));
        switch.enter(DC, &[data]);
        switch.enter(WAN, &[ack]);
        switch.leave(WAN);
        switch.leave(DC);
        assert_eq!(switch.tick(0), 0);
        for tick in 0..10 {
            switch.fields();
            assert_eq!(switch.tick(900_000 + 50_000 * tick), 0);
            assert_eq!(switch.fields(), [CE; 4], "{mode:?}");
        }
        let status = switch.core.status();
        assert!(status.would_send() >= 10, "{}", status.would_send());
        act(&mut switch, Action::Send);
        switch.now += Nanos::from_millis(1);
        switch.fields();
        assert_eq!(switch.tick(900_000), 1);
        let spared = mode != Mode::Mark;
        assert_eq!(switch.fields() != [CE; 4], spared, "{mode:?}");
        act(&mut switch, Action::Observe);
        switch.now += Nanos::from_millis(30);
        switch.fields();
        let passed = status.cnps_passed.get();
        let cnp = switch.cnp(TOLD);
        switch.enter(WAN, &[cnp]);
        // Well within the feedback delay for which that counts.
        switch.tick_after(Nanos::from_micros(4), 0);
        assert_eq!(status.cnps_passed.get(), passed + 1);
        assert_eq!(switch.fields(), [CE; 4], "{mode:?}");
    }
}

/// The same in both families.
fn both(mode: Mode) -> [[u8; 4]; 3] {
    let [v4, v6] = [false, true].map(|ipv6| run(mode, ipv6, u64::MAX));
    assert_eq!(v4, v6, "{mode:?}");
    v4
}

#[test]
fn mark_marks_whoever_was_told() {
    assert_eq!(both(Mode::Mark), [[CE; 4]; 3]);
}

#[test]
fn mark_unless_notified_spares_the_told_and_keeps_marks_of_upstream() {
    let told = [ECT, CE, CE, CE];
    assert_eq!(both(Mode::MarkUnlessNotified), [[CE; 4], told, [CE; 4]]);
}

#[test]
fn clear_after_cnp_takes_marks_of_upstream_back_while_the_flow_counts_as_told() {
    let told = [ECT, ECT, CE, CE];
    assert_eq!(both(Mode::ClearAfterCnp), [[CE; 4], told, [CE; 4]]);
}

/// The second watched depth is one that every frame but the last leaves behind.
#[test]
fn a_queue_at_hard_marks_whoever_was_told_and_keeps_all_marks() {
    for mode in [Mode::MarkUnlessNotified, Mode::ClearAfterCnp] {
        assert_eq!(run(mode, false, 1), [[CE; 4]; 3], "{mode:?}");
    }
}

#[test]
fn off_leaves_the_field_as_it_came() {
    assert_eq!(both(Mode::Off), [[ECT, CE, ECT, CE]; 3]);
}

/// To the 4 us in which the word counts: 60 us after the CNP, `min_cnp_interval`, and not a moment longer.
#[test]
fn marks_are_cleared_until_the_end_of_the_interval_and_no_longer() {
    let mut switch = Switch::new(Mode::ClearAfterCnp, false, u64::MAX);
    let (data, ack) = (switch.data(TOLD, ECT), switch.ack(TOLD));
    switch.enter(DC, &[data]);
    switch.enter(WAN, &[ack]);
    switch.leave(WAN);
    switch.tick(0);
    switch.fields();
    assert_eq!(switch.tick(900_000), 1);
    let at = switch.now;
    let mut cleared = |us| {
        switch.now = at + Nanos::from_micros(us);
        switch.fields() == [ECT, ECT, CE, CE]
    };
    assert!(cleared(0) && cleared(30) && cleared(55));
    assert!(!cleared(66) && !cleared(1_000));
}

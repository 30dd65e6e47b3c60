//! ECN modes (`ecn`) from frame in to frame out: real bytes through the packet path, the flow cache and the control core.
//!
//! The queue strikes every frame that leaves another behind. Half of the frames come marked by a switch upstream. Checksums are
//! computed anew by `etherparse`. Not shown here: which mode is good (`sim`), and that a NIC agrees with the ICRC,
//! which masks the field (`captures.rs`, the soft-RoCE guests).

use std::net::IpAddr;

use etherparse::{NetHeaders, PacketHeaders};
use npcc_cnp::action::Action;
use npcc_cnp::admission::Suppressed;
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::command::ControlCommand;
use npcc_cnp::control::config::{ControlConfig, Settings};
use npcc_cnp::flow_cache::FlowCache;
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::datapath::{Datapath, Outgoing, PortConfig};
use npcc_pipeline::egress::ecn::Red;
use npcc_pipeline::egress::port::{
    EcnConfig, EcnMode, EgressConfig, EgressQueueConfig, UpstreamCe,
};
use npcc_pipeline::frame::{FrameBuf, FrameVec, HeapFrame};
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::units::{BitRate, Mac, Nanos, PortId};
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;
use npcc_testkit::npcc::{self, DC, QUEUE, TICK, WAN};

const MAC: Mac = Mac([2, 0, 0, 0, 1, 1]);
const ECT: u8 = 2;
const CE: u8 = 3;
/// Queue pairs at the sender and the receiver: of a connection whose sender is known, and of one whose sender is not.
const KNOWN: (u32, u32) = (0x1_0018, 0x11);
const OTHER: (u32, u32) = (0x1_0019, 0x12);
const ANSWER: EcnConfig = EcnConfig {
    mode: EcnMode::Divert,
    upstream_ce: UpstreamCe::Answer,
};
const LEAVE: EcnConfig = EcnConfig {
    upstream_ce: UpstreamCe::Leave,
    ..ANSWER
};

struct Switch {
    path: Datapath<HeapFrame, FlowCache>,
    core: ControlCore,
    now: Nanos,
    hosts: (IpAddr, IpAddr),
    /// Writer of the routes, kept alive.
    _routes: RouteWriter,
}

fn port(ecn: EcnConfig, hard: u64) -> PortConfig {
    let always = Red {
        kmin: 0,
        kmax: 0,
        pmax: 0,
    };
    let queue = EgressQueueConfig {
        ecn: (ecn.mode != EcnMode::Off).then_some(always),
        watched_depths: [u64::MAX, hard],
        ..EgressQueueConfig::default()
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
            max_absence: Nanos::ZERO,
            queues: std::array::from_fn(|_| queue.clone()),
        },
        ecn,
    }
}

fn settings(mode: EcnMode) -> Settings {
    let depths = [100_000, 400_000, 800_000];
    let drain = BitRate(10_000_000_000);
    Settings {
        ecn: mode,
        earned: 0,
        ..npcc::settings(depths, drain, PolicyName::Npcc.defaults())
    }
}

impl Switch {
    fn new(ecn: EcnConfig, ipv6: bool, hard: u64) -> Switch {
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
                mtu: 0,
            };
            let prefix = Prefix::new(host, if ipv6 { 64 } else { 24 }).unwrap();
            routes.insert(prefix, &[path]).unwrap();
        }
        routes.commit();
        let (cache, reader) = FlowCache::new(64, WAN.bit(), 64, 1);
        let mut core = ControlCore::new(&ControlConfig {
            settings: settings(ecn.mode),
            tick: TICK,
            ..ControlConfig::default()
        });
        assert!(core.attach(reader));
        let pool = PoolConfig {
            bytes: 1 << 22,
            frames: 4_096,
            alpha_256: 256,
        };
        let path = Datapath::new(
            vec![port(ecn, hard), port(ecn, hard)],
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

    /// ACK of the sender to the receiver's own data.
    fn near_ack(&self) -> Vec<u8> {
        let mut craft = Craft::roce(self.hosts.0, self.hosts.1, 0x11, KNOWN.1, 4);
        craft.src_port = port_of(Qpn::new(KNOWN.0), Qpn::new(KNOWN.1));
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

    /// Runs a tick of an idle queue; returns the number of CNPs, all of which go to the known sender.
    fn tick(&mut self) -> usize {
        let mut sent = 0;
        self.now += TICK;
        self.core.run_call(self.now, |_, _| 0u64, &mut |order| {
            assert_eq!(order.sender_qpn.get(), KNOWN.0);
            sent += 1;
            Ok(())
        });
        sent
    }

    /// Sends one frame with each field of each connection; returns the fields with which they left: known ECT and CE, other ECT and CE.
    fn fields(&mut self) -> [u8; 4] {
        let sent = [(KNOWN, ECT), (KNOWN, CE), (OTHER, ECT), (OTHER, CE)];
        let mut frames: Vec<_> = sent
            .iter()
            .map(|(who, ecn)| self.data(*who, *ecn))
            .collect();
        // One stays behind, so that the frames before it leave a queue that is not empty.
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

/// ECN field of a frame whose header is right.
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

/// A switch that knows one of two senders.
fn warm(ecn: EcnConfig, ipv6: bool, hard: u64) -> Switch {
    let mut switch = Switch::new(ecn, ipv6, hard);
    let (data, ack) = (switch.data(KNOWN, ECT), switch.ack(KNOWN));
    switch.enter(DC, &[data]);
    switch.enter(WAN, &[ack]);
    switch.leave(WAN);
    switch.leave(DC);
    assert_eq!(switch.tick(), 0);
    switch
}

/// Fields of the frames that leave, and the number of CNPs that follow; equal in both families.
fn run(ecn: EcnConfig, hard: u64) -> ([u8; 4], usize) {
    let [v4, v6] = [false, true].map(|ipv6| {
        let mut switch = warm(ecn, ipv6, hard);
        (switch.fields(), switch.tick())
    });
    assert_eq!(v4, v6, "{ecn:?}");
    v4
}

#[test]
fn mark_marks_every_frame() {
    assert_eq!(run(EcnConfig::MARK, u64::MAX), ([CE; 4], 0));
}

/// Law: both marks of the known sender are one CNP, as a receiver would send; that of an unknown sender stays on the frame.
#[test]
fn divert_sends_a_cnp_for_the_marks_of_a_known_sender_and_takes_them_off() {
    assert_eq!(run(ANSWER, u64::MAX), ([ECT, ECT, CE, CE], 1));
}

#[test]
fn marks_of_upstream_go_on_where_they_are_left() {
    assert_eq!(run(LEAVE, u64::MAX), ([ECT, CE, CE, CE], 1));
}

/// Every frame but the last leaves behind a depth of at least the second watched one; a host of which nothing is known is believed to respond.
#[test]
fn a_queue_at_hard_diverts_the_marks_of_hosts_that_are_believed() {
    assert_eq!(run(ANSWER, 1), ([ECT, ECT, CE, CE], 1));
}

#[test]
fn off_leaves_the_field_as_it_came() {
    assert_eq!(run(EcnConfig::OFF, u64::MAX), ([ECT, CE, ECT, CE], 0));
}

/// Law: a host that is only observed is marked as ECN alone marks, from the change on.
#[test]
fn whoever_is_only_observed_is_marked_as_without_npcc() {
    let mut switch = warm(ANSWER, false, u64::MAX);
    let act = |switch: &mut Switch, action| {
        let settings = Settings {
            action,
            ..settings(EcnMode::Divert)
        };
        let configure = ControlCommand::Configure(Box::new(settings));
        switch.core.execute(&configure, switch.now).unwrap();
        switch.now += Nanos::from_millis(11);
        switch.fields();
        switch.tick();
    };
    act(&mut switch, Action::Observe);
    assert_eq!((switch.fields(), switch.tick()), ([CE; 4], 0));
    act(&mut switch, Action::Send);
    switch.now += Nanos::from_millis(11);
    switch.fields();
    switch.tick();
    assert_eq!((switch.fields(), switch.tick()), ([ECT, ECT, CE, CE], 1));
}

/// Law: a CNP that cannot leave gives its mark back: the sender's next frame carries it.
#[test]
fn a_mark_that_cannot_be_paid_is_written_on_the_next_frame() {
    let mut switch = warm(LEAVE, false, u64::MAX);
    let alone = |switch: &mut Switch| {
        let data = switch.data(KNOWN, ECT);
        switch.enter(DC, &[data]);
        field(switch.leave(WAN).first().unwrap())
    };
    assert_eq!(alone(&mut switch), ECT, "it leaves nothing behind");
    assert_eq!(switch.fields(), [ECT, CE, CE, CE]);
    switch.now += TICK;
    switch.core.run_call(switch.now, |_, _| 0u64, &mut |_| {
        Err(Suppressed::NoNeighbor)
    });
    assert_eq!([alone(&mut switch), alone(&mut switch)], [CE, ECT]);
}

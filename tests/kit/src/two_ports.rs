//! Two ports and the routes from the first to the second, for benches and tests of the packet path on heap frames.

use std::net::IpAddr;

use npcc_pipeline::classify::Classifier;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::egress::port::{
    EcnConfig, EcnMode, EgressConfig, EgressQueueConfig, UpstreamCe,
};
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::units::{BitRate, Mac, Nanos, PRIORITIES, PortId};

/// The switch's address, on both ports.
pub const OURS: Mac = Mac([2, 0, 0, 0, 1, 1]);
/// Port where frames come in.
pub const DC: PortId = PortId(0);
/// Port where frames leave.
pub const WAN: PortId = PortId(1);

/// Installs routes for these prefixes (address, bits) to one next hop behind [`WAN`]; returns a reader for each of `workers`, already
/// refreshed.
///
/// # Panics
/// When one is not a prefix, or there are over 1,024 of a family.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "a test or a bench says what is wrong by panicking"
)]
pub fn routes(prefixes: &[(IpAddr, u8)], workers: usize) -> (RouteWriter, Vec<FibReader>) {
    let capacity = RouteCapacity {
        ipv4_routes: 1024,
        ipv6_routes: 1024,
        adjacencies: 64,
        groups: 64,
    };
    let (mut writer, mut readers) = RouteWriter::new(capacity, workers);
    let path = Adjacency {
        kind: Kind::Forward,
        port: WAN,
        vlan: 0,
        dst: Mac([2, 0, 0, 0, 9, 9]),
        src: OURS,
        mtu: 0,
    };
    for (address, len) in prefixes {
        let prefix = Prefix::new(*address, *len).expect("a prefix");
        writer.insert(prefix, &[path]).expect("room for a route");
    }
    writer.commit();
    for reader in &mut readers {
        reader.refresh();
    }
    (writer, readers)
}

/// Returns a port of MTU 4,200 with these queues, which marks a frame unless NPCC has signalled its flow.
#[must_use]
pub fn port(
    classifier: Classifier,
    rate: Option<BitRate>,
    queues: [EgressQueueConfig; PRIORITIES],
) -> PortConfig {
    PortConfig {
        intake: IngressConfig {
            mac: OURS,
            mtu: 4200,
            vlans: Box::new([]),
            classifier,
        },
        egress: EgressConfig {
            rate,
            max_frame: 4222,
            max_absence: Nanos::ZERO,
            queues,
        },
        ecn: EcnConfig {
            mode: EcnMode::Divert,
            upstream_ce: UpstreamCe::Answer,
        },
    }
}

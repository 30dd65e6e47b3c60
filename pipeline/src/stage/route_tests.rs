//! Tests of flows over the paths of switches in series.

use proptest::prelude::*;

use super::*;
use crate::route::fib::FibReader;
use crate::route::nexthop::{Adjacency, Kind};
use crate::route::prefix::Prefix;
use crate::route::writer::{RouteCapacity, RouteWriter};
use crate::units::PortId;

const PATHS: usize = 4;

/// Returns a switch with a default route of four paths.
fn switch(seed: FlowSeed) -> FibReader {
    let capacity = RouteCapacity {
        ipv4_routes: 1,
        ipv6_routes: 1,
        adjacencies: 8,
        groups: 2,
    };
    let (mut writer, mut readers) = RouteWriter::with_seed(capacity, 1, seed);
    let paths = [0, 1, 2, 3].map(|port| Adjacency {
        port: PortId(port),
        ..Adjacency::unusable(Kind::Forward)
    });
    let all = Prefix::new([0; 4].into(), 0).unwrap();
    writer.insert(all, &paths).unwrap();
    writer.commit();
    let mut reader = readers.remove(0);
    reader.refresh();
    reader
}

fn port(switch: &FibReader, flow: FlowWords) -> usize {
    let path = switch.resolve(0, || flow.hash(switch.seed()));
    path.port().index()
}

/// Returns RoCEv2 flows between two racks, as they occur: consecutive addresses, queue pairs and source ports.
fn flows() -> impl Iterator<Item = FlowWords> {
    (0..32_768u64).map(|n| {
        let (src, dst, pair) = (n % 16, n / 16 % 16, n / 256);
        FlowWords {
            addresses: (0x0a00_0100 + src) << 32 | (0x0a00_0200 + dst),
            upper: (0x11 + pair) << 40 | 17 << 32 | (0xc000 + pair) << 16 | 4791,
        }
    })
}

/// Returns, for each path of the second switch, the number of flows on it of those that the first switch sends by its path 0.
fn in_series(first: FlowSeed, second: FlowSeed) -> [u32; PATHS] {
    let (first, second) = (switch(first), switch(second));
    let mut used = [0; PATHS];
    for flow in flows().filter(|flow| port(&first, *flow) == 0) {
        used[port(&second, flow)] += 1;
    }
    used
}

#[test]
fn switches_with_one_seed_polarise() {
    let [first, others @ ..] = in_series(FlowSeed::new(7), FlowSeed::new(7));
    assert!(first > 7_000 && others == [0; 3], "{first} {others:?}");
}

proptest! {
    #![proptest_config(crate::cases::cases(16))]

    /// Switches with their own seeds spread flows evenly. Earlier defect: the hash of every switch was the same.
    #[test]
    fn switches_with_seeds_of_their_own_spread_evenly(first in any::<u64>(), separate in 1u64..100) {
        let used = in_series(FlowSeed::new(first), FlowSeed::new(first.wrapping_add(separate)));
        let even = f64::from(used.iter().sum::<u32>()) / PATHS as f64;
        prop_assert!(even > 1_800.0, "{used:?}");
        for share in used {
            // Ten per cent is four standard deviations of chance.
            prop_assert!((f64::from(share) / even - 1.0).abs() < 0.1, "{used:?}");
        }
    }
}

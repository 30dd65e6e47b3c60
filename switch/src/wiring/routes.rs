//! Conversion of the configured routes to the pipeline's table: connected subnets, our own addresses, neighbours, static routes.

use std::net::IpAddr;

use anyhow::anyhow;
use npcc_config::Config;
use npcc_config::ipnet::IpNet;
use npcc_config::model::EcmpSeed;
use npcc_config::resolved::NextHop;
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::nexthop::{Adjacency, Kind, UNTAGGED};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::seed::FlowSeed;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::units::{Mac, PortId};

use crate::wiring::live_routes::{LiveRoutes, Table};

/// Returns the table capacity for a configuration.
#[must_use]
pub fn capacity(config: &Config) -> RouteCapacity {
    // The kernel's neighbours are next hops, one for each host of an attached subnet; ids have 16 bits, of which three values are reserved.
    let next_hops = if config.linux.integrate {
        65_533
    } else {
        16_384
    };
    RouteCapacity {
        ipv4_routes: config.routing.ipv4_routes.size(),
        ipv6_routes: config.routing.ipv6_routes.size(),
        adjacencies: next_hops,
        groups: next_hops,
    }
}

/// Returns the seed of this switch's ECMP hash; `macs` are the ports' addresses.
#[must_use]
pub fn seed(config: &Config, macs: &[Mac]) -> FlowSeed {
    match config.routing.ecmp_seed {
        EcmpSeed::Auto => FlowSeed::of_addresses(macs.iter().copied()),
        EcmpSeed::Number(number) => FlowSeed::new(number),
    }
}

/// Writer of a route table, and its readers.
#[derive(Debug)]
pub struct Readers {
    /// The writer.
    pub writer: RouteWriter,
    /// Reader of each worker.
    pub workers: Vec<FibReader>,
    /// Reader of the control core, for its CNPs.
    pub control: FibReader,
    /// Reader of the control core, to locate sources.
    pub sources: FibReader,
}

/// Makes an empty route table, with a reader for each worker and two for the control core.
///
/// # Errors
/// Fails if the table has too few readers, which is a defect.
pub fn readers(config: &Config, macs: &[Mac]) -> anyhow::Result<Readers> {
    let count = config.cores.workers.len() + 2;
    let (writer, mut workers) = RouteWriter::with_seed(capacity(config), count, seed(config, macs));
    let mut reader = || {
        let last = workers.pop();
        last.ok_or_else(|| anyhow!("the route table has no readers"))
    };
    let (control, sources) = (reader()?, reader()?);
    Ok(Readers {
        writer,
        workers,
        control,
        sources,
    })
}

/// Fills a table with the routes of the file and those of `more`, dealt to the neighbours of the last port.
///
/// # Errors
/// Fails with the first route that was refused.
pub fn by_file(
    writer: RouteWriter,
    config: &Config,
    macs: &[Mac],
    more: &[IpNet],
) -> anyhow::Result<LiveRoutes> {
    let mut live = LiveRoutes::new(writer);
    let mut table = table(config, macs);
    deal(config, macs, more, &mut table);
    live.become_of(table)?;
    Ok(live)
}

/// Returns every prefix with its paths; `macs` are the ports' addresses.
#[must_use]
pub fn table(config: &Config, macs: &[Mac]) -> Table {
    let mut table = Table::new();
    let mut put = |prefix: Option<Prefix>, paths: &[Adjacency]| {
        if let Some(prefix) = prefix {
            table.insert(prefix, paths.to_vec());
        }
    };
    for (index, port) in config.ports.iter().enumerate() {
        let id = port_id(index);
        for interface in port.interfaces() {
            let at = Adjacency {
                port: id,
                vlan: interface.vlan.unwrap_or(UNTAGGED),
                ..Adjacency::unusable(Kind::Unresolved)
            };
            for address in interface.addresses {
                put(prefix(address), &[at]);
            }
        }
    }
    for (index, port) in config.ports.iter().enumerate() {
        let local = Adjacency {
            port: port_id(index),
            ..Adjacency::unusable(Kind::Local)
        };
        for address in port.interfaces().flat_map(|interface| interface.addresses) {
            put(Some(Prefix::host(address.addr())), &[local]);
        }
    }
    for neighbor in &config.neighbors {
        let hop = NextHop {
            address: neighbor.address,
            port: neighbor.port,
            vlan: neighbor.vlan,
        };
        put(
            Some(Prefix::host(neighbor.address)),
            &[path(config, macs, &hop)],
        );
    }
    for route in &config.routes {
        let paths: Vec<Adjacency> = route
            .via
            .iter()
            .map(|hop| path(config, macs, hop))
            .collect();
        put(prefix(&route.prefix), &paths);
    }
    table
}

/// Adds routes for `prefixes`, distributed over the neighbours of the last port in turn.
pub fn deal(config: &Config, macs: &[Mac], prefixes: &[IpNet], table: &mut Table) {
    let last = config.ports.len().saturating_sub(1);
    let hops: Vec<Adjacency> = config
        .neighbors
        .iter()
        .filter(|neighbor| neighbor.port == last)
        .map(|neighbor| {
            let hop = NextHop {
                address: neighbor.address,
                port: neighbor.port,
                vlan: neighbor.vlan,
            };
            path(config, macs, &hop)
        })
        .collect();
    for (net, hop) in prefixes.iter().zip(hops.iter().cycle()) {
        if let Some(prefix) = prefix(net) {
            table.entry(prefix).or_insert_with(|| vec![*hop]);
        }
    }
}

fn prefix(net: &IpNet) -> Option<Prefix> {
    Prefix::new(net.addr(), net.prefix_len())
}

fn port_id(index: usize) -> PortId {
    // The configuration bounds the number of ports to 32.
    PortId(u8::try_from(index).unwrap_or(u8::MAX))
}

/// Returns the path by a next hop: forwarding if its MAC address is known.
fn path(config: &Config, macs: &[Mac], hop: &NextHop) -> Adjacency {
    let vlan = hop.vlan.unwrap_or(UNTAGGED);
    let port = port_id(hop.port);
    match (mac_of(config, hop.address), macs.get(hop.port)) {
        (Some(dst), Some(src)) => Adjacency {
            kind: Kind::Forward,
            port,
            vlan,
            dst,
            src: *src,
            mtu: 0,
        },
        _ => Adjacency {
            port,
            vlan,
            ..Adjacency::unusable(Kind::Unresolved)
        },
    }
}

fn mac_of(config: &Config, address: IpAddr) -> Option<Mac> {
    let neighbor = config
        .neighbors
        .iter()
        .find(|neighbor| neighbor.address == address);
    neighbor.map(|neighbor| neighbor.mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_route_leads_where_it_should() {
        let text = "version: 1
ports:
  - { name: dc0, device: net_null0, addresses: [10.0.1.1/24, '2001:db8:1::1/64'], vlans: [{ id: 100, addresses: [10.0.100.1/24] }] }
  - { name: wan0, device: net_null1, addresses: [10.0.12.1/24] }
routes:
  - { prefix: 10.0.2.0/24, via: 10.0.12.2 }
  - { prefix: 10.0.3.0/24, via: 10.0.12.9 }
neighbors:
  - { address: 10.0.12.2, port: wan0, mac: '02:00:00:00:02:01' }
  - { address: 10.0.100.7, port: dc0, mac: '02:00:00:00:07:07' }
";
        let config = npcc_config::parse("t.yaml", text).unwrap().config;
        let macs = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
        let (writer, mut readers) = RouteWriter::new(capacity(&config), 1);
        let mut live = LiveRoutes::new(writer);
        live.become_of(table(&config, &macs)).unwrap();
        let mut reader = readers.remove(0);
        reader.refresh();
        let at = |text: &str| reader.paths(text.parse().unwrap()).next().unwrap();
        assert_eq!(at("10.0.1.9").kind, Kind::Unresolved);
        assert_eq!(at("10.0.1.1").kind, Kind::Local);
        assert_eq!(at("2001:db8:1::1").kind, Kind::Local);
        assert_eq!(at("192.0.2.1").kind, Kind::NoRoute);
        assert_eq!(
            at("10.0.3.3").kind,
            Kind::Unresolved,
            "a next hop without a MAC address"
        );
        let remote = at("10.0.2.200");
        assert_eq!(
            (remote.kind, remote.port, remote.dst, remote.src),
            (Kind::Forward, PortId(1), Mac([2, 0, 0, 0, 2, 1]), macs[1])
        );
        let tagged = at("10.0.100.7");
        assert_eq!(
            (tagged.kind, tagged.vlan, tagged.port),
            (Kind::Forward, 100, PortId(0))
        );
    }
}

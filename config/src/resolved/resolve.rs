//! Resolution of the checked model to the validated configuration.

use std::collections::BTreeMap;

use ipnet::IpNet;
use npcc_cnp::policy::Parameter;

use super::{
    Config, Cores, Device, Neighbor, NextHop, Port, ResolvedPortNpcc, ResolvedQos, Route,
    Thresholds, Vlan,
};
use crate::model::{self, Action, ConfigFile};
use crate::subnets::Subnets;
use crate::units::Interface;

impl Config {
    /// Resolves a model that the checks have passed.
    pub(crate) fn resolve(file: ConfigFile) -> Self {
        let subnets = Subnets::new(&file);
        let port_index = |name: &str| file.ports.iter().position(|p| p.name == name);
        let trusted = file.npcc.trusted_ports.iter();
        let trusted_ports = trusted.filter_map(|name| port_index(name)).collect();
        let ports = file
            .ports
            .iter()
            .zip(owners(&file))
            .filter_map(|(port, worker)| self::port(port, worker, &file))
            .collect();
        let routes = routes(&file, &subnets);
        let neighbors = file
            .neighbors
            .iter()
            .filter_map(|n| {
                let port = port_index(&n.port)?;
                let vlan = subnets.on_port(port, n.address.0).and_then(|s| s.vlan);
                Some(Neighbor {
                    address: n.address.0,
                    port,
                    vlan,
                    mac: n.mac,
                })
            })
            .collect();
        Self {
            cores: Cores {
                control: file.cores.control.index(),
                workers: file.cores.workers.iter().map(|c| c.index()).collect(),
                housekeeping: file.cores.housekeeping.written().map(|c| c.index()),
                idle: file.cores.idle,
            },
            ports,
            routes,
            neighbors,
            trusted_ports,
            npcc: file.npcc,
            routing: file.routing,
            dpdk: file.dpdk,
            buffer: file.buffer,
            pfc: file.pfc,
            linux: file.linux,
            telemetry: file.telemetry,
            sandbox: file.sandbox,
            user: file.user,
            time_scale: file.time_scale,
        }
    }
}

fn nets(addresses: &[Interface]) -> Vec<IpNet> {
    addresses.iter().map(|a| a.0).collect()
}

fn port(port: &model::Port, worker: usize, file: &ConfigFile) -> Option<Port> {
    let general = &file.npcc;
    let npcc = port
        .npcc
        .as_ref()
        .filter(|n| n.enable)
        .map(|own| ResolvedPortNpcc {
            queues: own.queues.iter().fold(0, |mask, p| mask | 1 << p.get()),
            actions: std::array::from_fn(|priority| {
                let queues = own.queue_actions.iter();
                let own_of = queues.filter(|(queue, _)| queue.index() == priority);
                own_of
                    .map(|(_, action)| *action)
                    .fold(own.action, Action::min)
            }),
            policies: std::array::from_fn(|priority| own.policy_of(priority)),
            parameters: std::array::from_fn(|priority| {
                let of_queue = own.parameters.iter();
                let mut of_queue = of_queue.filter(|(queue, _)| queue.index() == priority);
                let Some((_, written)) = of_queue.next() else {
                    return Vec::new();
                };
                let policy = own.policy_of(priority);
                let declared = policy.new_policy(&general.queue()).parameters();
                let value = |one: &Parameter| {
                    let text = &written.get(one.name)?.0;
                    Some((one.name, one.unit.parse(text).ok()?))
                };
                declared.iter().filter_map(value).collect()
            }),
            upstream_ce: own.upstream_ce,
            thresholds: Thresholds::merge(general, Some(own)),
        });
    Some(Port {
        name: port.name.clone(),
        device: Device::parse(&port.device)?,
        mac: port.mac,
        mtu: port.mtu.short(),
        addresses: nets(&port.addresses),
        vlans: port
            .vlans
            .iter()
            .map(|v| Vlan {
                id: v.id.short(),
                addresses: nets(&v.addresses),
            })
            .collect(),
        worker,
        speed: port.speed,
        link_speed: port.link_speed.written(),
        rx_descriptors: port.rx_descriptors.written().map(|count| count.short()),
        tx_outstanding: port.tx_outstanding,
        cable: port.cable,
        peer_response: port.peer_response,
        pfc: port.pfc,
        qos: ResolvedQos::new(&file.qos),
        npcc,
    })
}

/// Returns the worker of each port: the configured one, or the one with the fewest ports so far, the first of equals.
fn owners(file: &ConfigFile) -> Vec<usize> {
    let workers = &file.cores.workers;
    let mut load = vec![0usize; workers.len()];
    let named = |port: &model::Port| workers.iter().position(|core| Some(*core) == port.worker);
    for owner in file.ports.iter().filter_map(named) {
        if let Some(ports) = load.get_mut(owner) {
            *ports += 1;
        }
    }
    let mut next = || {
        let fewest = load.iter().enumerate().min_by_key(|(_, ports)| **ports);
        let owner = fewest.map_or(0, |(owner, _)| owner);
        if let Some(ports) = load.get_mut(owner) {
            *ports += 1;
        }
        owner
    };
    file.ports
        .iter()
        .map(|port| named(port).unwrap_or_else(&mut next))
        .collect()
}

/// Returns the routes by prefix; lines of the same prefix become equal-cost paths.
fn routes(file: &ConfigFile, subnets: &Subnets) -> Vec<Route> {
    let mut order: Vec<IpNet> = Vec::new();
    let mut paths: BTreeMap<IpNet, Vec<NextHop>> = BTreeMap::new();
    for route in &file.routes {
        let via = paths.entry(route.prefix.0).or_insert_with(|| {
            order.push(route.prefix.0);
            Vec::new()
        });
        for address in &route.via.0 {
            if let Some((port, vlan)) = subnets.leads_to(address.0) {
                via.push(NextHop {
                    address: address.0,
                    port,
                    vlan,
                });
            }
        }
    }
    order
        .into_iter()
        .filter_map(|prefix| paths.remove(&prefix).map(|via| Route { prefix, via }))
        .collect()
}

#[cfg(test)]
mod tests {
    fn owners(text: &str) -> Vec<usize> {
        let config = crate::parse("t", text).unwrap().config;
        config.ports.iter().map(|port| port.worker).collect()
    }

    #[test]
    fn ports_go_to_the_worker_with_the_fewest() {
        let ports = |named: [&str; 4]| {
            let port = |(n, worker): (usize, &str)| {
                format!("  - {{ name: p{n}, device: net_null{n}{worker} }}\n")
            };
            let ports: String = named.into_iter().enumerate().map(port).collect();
            format!("cores: {{ workers: [2, 5] }}\nports:\n{ports}qos: {{ profile: lossy }}\n")
        };
        assert_eq!(owners(&ports(["", "", "", ""])), [0, 1, 0, 1]);
        assert_eq!(
            owners(&ports(["", ", worker: 2", ", worker: 2", ""])),
            [1, 0, 0, 1]
        );
        assert_eq!(owners(&ports([", worker: 5", "", "", ""])), [1, 0, 0, 1]);
    }
}

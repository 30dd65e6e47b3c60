//! From the checked model to the plan.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::{
    Cnp, Config, Cores, Device, EffectiveQos, Neighbor, NextHop, Npcc, Port, PortNpcc, Route,
    Routing, Thresholds, Vlan,
};
use crate::model::{self, File};
use crate::subnets::Subnets;
use crate::units::{Count, Interface};

impl Config {
    /// Resolves a model that the checks have passed.
    pub(crate) fn resolve(file: File) -> Self {
        let subnets = Subnets::new(&file);
        let port_index = |name: &str| file.ports.iter().position(|p| p.name == name);
        let trusted = |npcc: &model::Npcc| {
            npcc.trusted_ports
                .iter()
                .filter_map(|name| port_index(name))
                .collect()
        };
        let ports = file
            .ports
            .iter()
            .filter_map(|p| port(p, &file.npcc))
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
                idle: file.cores.idle,
            },
            ports,
            routes,
            neighbors,
            routing: Routing {
                ipv4_routes: size(file.routing.ipv4_routes),
                ipv6_routes: size(file.routing.ipv6_routes),
            },
            qos: EffectiveQos::new(&file.qos),
            npcc: npcc(&file.npcc, trusted(&file.npcc)),
            dpdk: file.dpdk,
            buffer: file.buffer,
            pfc: file.pfc,
            linux: file.linux,
            telemetry: file.telemetry,
            time_scale: file.time_scale,
        }
    }
}

fn size(count: Count) -> usize {
    usize::try_from(count.0).unwrap_or(usize::MAX)
}

fn nets(addresses: &[Interface]) -> Vec<IpNet> {
    addresses.iter().map(|a| a.0).collect()
}

fn port(port: &model::Port, general: &model::Npcc) -> Option<Port> {
    let npcc = port.npcc.as_ref().filter(|n| n.enable).map(|own| PortNpcc {
        queues: own.queues.iter().fold(0, |mask, p| mask | 1 << p.get()),
        policy: own.policy,
        mode: own.mode,
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
        speed: port.speed,
        tx_outstanding: port.tx_outstanding,
        cable: port.cable,
        peer_response: port.peer_response,
        pfc: port.pfc,
        npcc,
    })
}

/// Routes by prefix; lines of the same prefix become equal-cost paths.
fn routes(file: &File, subnets: &Subnets) -> Vec<Route> {
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

fn npcc(npcc: &model::Npcc, trusted_ports: Vec<usize>) -> Npcc {
    Npcc {
        tick: npcc.tick,
        flows: size(npcc.flows),
        evidence: npcc.evidence,
        unpaired: npcc.unpaired,
        ecn: npcc.ecn,
        thresholds: Thresholds::merge(npcc, None),
        hysteresis: npcc.hysteresis,
        filter: npcc.filter.get(),
        recovery: npcc.recovery,
        min_cnp_interval: npcc.min_cnp_interval,
        feedback: npcc.feedback,
        trusted_ports,
        cnp: Cnp {
            priority: npcc.cnp.priority.byte(),
            dscp: npcc.cnp.dscp.byte(),
            udp_source_port: npcc.cnp.udp_source_port.short(),
            ttl: npcc.cnp.ttl.byte(),
            via: npcc.cnp.via,
            cap: npcc.cnp.cap,
        },
    }
}

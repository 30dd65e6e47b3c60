//! Routes and neighbours, resolved to ports.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::units::Mac;

/// Static route, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Destination prefix; no host bits.
    pub prefix: IpNet,
    /// Equal-cost next hops; at least one, all different.
    pub via: Vec<NextHop>,
}

/// Next hop and the interface that leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// Address of the next hop, of the prefix's family.
    pub address: IpAddr,
    /// Index of the port.
    pub port: usize,
    /// VLAN on that port; `None` is untagged.
    pub vlan: Option<u16>,
}

/// Static neighbour entry: an IP address on an interface and its MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbor {
    /// IP address of the neighbour.
    pub address: IpAddr,
    /// Index of the port.
    pub port: usize,
    /// VLAN on that port; `None` is untagged.
    pub vlan: Option<u16>,
    /// MAC address of the neighbour.
    pub mac: Mac,
}

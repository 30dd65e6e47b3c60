//! Routes and neighbours, resolved to ports.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::units::Mac;

/// A static route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Destinations; no host bits.
    pub prefix: IpNet,
    /// Equal-cost next hops; at least one, all different.
    pub via: Vec<NextHop>,
}

/// A next hop and the interface that leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// Its address, of the prefix's family.
    pub address: IpAddr,
    /// Index of the port.
    pub port: usize,
    /// VLAN on that port; `None` is untagged.
    pub vlan: Option<u16>,
}

/// Who has an address on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbor {
    /// Its IP address.
    pub address: IpAddr,
    /// Index of the port.
    pub port: usize,
    /// VLAN on that port; `None` is untagged.
    pub vlan: Option<u16>,
    /// Its Ethernet address.
    pub mac: Mac,
}

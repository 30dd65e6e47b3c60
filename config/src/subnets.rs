//! Interface lookup by address: the connected subnets, and static neighbours beyond them.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::ConfigFile;
use crate::tree::Path;

/// Address of the switch with its subnet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subnet {
    /// Index of the port.
    pub(crate) port: usize,
    /// VLAN ID; `None` is untagged.
    pub(crate) vlan: Option<u16>,
    /// Index into the port's VLANs, when tagged.
    slot: Option<usize>,
    /// Index into the interface's addresses.
    index: usize,
    /// Address of the switch with the subnet's prefix length.
    pub(crate) net: IpNet,
}

impl Subnet {
    /// Returns the path at which the address is written.
    pub(crate) fn path(&self) -> Path {
        let port = Path::root("ports").index(self.port);
        let interface = match self.slot {
            Some(slot) => port.key("vlans").index(slot),
            None => port,
        };
        interface.key("addresses").index(self.index)
    }
}

/// All connected subnets, and the static neighbours by address.
pub(crate) struct Subnets {
    all: Vec<Subnet>,
    neighbors: HashMap<IpAddr, usize>,
}

impl Subnets {
    pub(crate) fn new(file: &ConfigFile) -> Self {
        let mut all = Vec::new();
        for (port, p) in file.ports.iter().enumerate() {
            for (index, address) in p.addresses.iter().enumerate() {
                all.push(Subnet {
                    port,
                    vlan: None,
                    slot: None,
                    index,
                    net: address.0,
                });
            }
            for (v, vlan) in p.vlans.iter().enumerate() {
                let (id, slot) = (Some(vlan.id.short()), Some(v));
                for (index, address) in vlan.addresses.iter().enumerate() {
                    all.push(Subnet {
                        port,
                        vlan: id,
                        slot,
                        index,
                        net: address.0,
                    });
                }
            }
        }
        let port_of = |name: &str| file.ports.iter().position(|p| p.name == name);
        let neighbors = file
            .neighbors
            .iter()
            .filter_map(|n| port_of(&n.port).map(|port| (n.address.0, port)))
            .collect();
        Self { all, neighbors }
    }

    pub(crate) fn all(&self) -> &[Subnet] {
        &self.all
    }

    /// Returns the most specific subnet that contains `address`.
    pub(crate) fn holding(&self, address: IpAddr) -> Option<&Subnet> {
        self.all
            .iter()
            .filter(|s| s.net.contains(&address))
            .max_by_key(|s| s.net.prefix_len())
    }

    /// Returns the most specific subnet of a port that contains `address`.
    pub(crate) fn on_port(&self, port: usize, address: IpAddr) -> Option<&Subnet> {
        self.all
            .iter()
            .filter(|s| s.port == port && s.net.contains(&address))
            .max_by_key(|s| s.net.prefix_len())
    }

    /// Returns the port and VLAN on which a neighbour is reached: by a static entry first, then by the subnet.
    pub(crate) fn leads_to(&self, address: IpAddr) -> Option<(usize, Option<u16>)> {
        if let Some(&port) = self.neighbors.get(&address) {
            return Some((port, self.on_port(port, address).and_then(|s| s.vlan)));
        }
        self.holding(address).map(|s| (s.port, s.vlan))
    }

    /// Returns true if `address` is one of the switch's own.
    pub(crate) fn is_ours(&self, address: IpAddr) -> bool {
        self.all.iter().any(|s| s.net.addr() == address)
    }
}

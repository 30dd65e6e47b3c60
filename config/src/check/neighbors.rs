//! Checks of static neighbours: a known port, a unicast address, a subnet or a host route that leads there.

use std::collections::HashMap;
use std::net::IpAddr;

use super::{Check, port_path};
use crate::model::Neighbor;
use crate::tree::Path;
use crate::units::RefusedMac;

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    let addresses_certain = check.addresses_certain();
    let mut first: HashMap<IpAddr, usize> = HashMap::new();
    for (n, neighbor) in file.neighbors.iter().enumerate() {
        let path = Path::root("neighbors").index(n);
        mac(check, &path, neighbor);
        let port = check.port_named(&path.key("port"), &neighbor.port);
        if !check.certain(&path.key("address")) {
            continue;
        }
        let address = neighbor.address.0;
        if let Some(&other) = first.get(&address) {
            let line = check.line(&Path::root("neighbors").index(other).key("address"));
            let message = format!("neighbor {address} is listed twice");
            check.error(
                &path.key("address"),
                message,
                format!("see line {line}; keep one"),
            );
            continue;
        }
        first.insert(address, n);
        if check.subnets.is_ours(address) {
            let message = format!("{address} is an address of this switch");
            check.error(
                &path.key("address"),
                message,
                "remove it; the switch knows itself",
            );
        } else if let Some(port) = port.filter(|_| check.certain(&path.key("port")))
            && addresses_certain
        {
            place(check, &path, address, port);
        }
    }
}

fn mac(check: &mut Check<'_>, path: &Path, neighbor: &Neighbor) {
    let mac = neighbor.mac;
    // Without Linux, a port may have the address of a host behind another port, which it then stands in for.
    let ports = check.file.ports.iter();
    let mut own = ports.filter(|port| check.file.linux.integrate || port.name == neighbor.port);
    let is_own = |mac| own.any(|port| port.mac == Some(mac));
    if let Some(refused) = mac.refused_as_neighbor(is_own) {
        let message = match refused {
            RefusedMac::Own => format!("`{mac}` is the address of a port of this switch"),
            _ => format!("`{mac}` is not the address of one host"),
        };
        check.error(
            &path.key("mac"),
            message,
            "use the peer's own address (ip link show there)",
        );
    }
}

/// Requires that a neighbour is on a subnet of its port, or is next hop or destination of a host route.
fn place(check: &mut Check<'_>, path: &Path, address: IpAddr, port: usize) {
    if check.subnets.on_port(port, address).is_some() {
        return;
    }
    let name = check.port_name(port);
    if let Some(subnet) = check.subnets.holding(address).copied() {
        let line = check.line(&subnet.path());
        let other = check.port_name(subnet.port);
        let message = format!("{address} is on the subnet of `{other}`, not of `{name}`");
        let hint = format!("write port: {other}, or see the addresses on line {line}");
        check.error(&path.key("port"), message, hint);
        return;
    }
    let routed = check.file.routes.iter().any(|r| {
        let host = r.prefix.0.prefix_len() == r.prefix.0.max_prefix_len();
        r.via.0.iter().any(|v| v.0 == address) || (host && r.prefix.0.addr() == address)
    });
    if !routed && check.certain(&Path::root("routes")) && check.certain(&port_path(port)) {
        let full = if address.is_ipv4() { 32 } else { 128 };
        let message = format!("{address} is not on a subnet of `{name}`, and no route uses it");
        let hint = format!(
            "add an address of its subnet to `{name}`, or the route {{ prefix: {address}/{full}, \
             via: {address} }}"
        );
        check.error(&path.key("address"), message, hint);
    }
}

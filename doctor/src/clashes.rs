//! Checks for MAC and IP addresses of a port that another interface on this host has, too.

use std::collections::BTreeSet;

use npcc_config::Config;
use npcc_config::resolved::Port;

use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::Host;
use crate::interfaces::{self, Interface};

pub(crate) fn examine(host: &Host, config: &Config, found: &mut Vec<Finding>) {
    let here = interfaces::all(host, None);
    let integrated = config.linux.integrate;
    let namespace = config.linux.namespace().filter(|_| integrated);
    let theirs = namespace.map(|name| interfaces::all(host, Some(name)));
    for port in &config.ports {
        let own: BTreeSet<String> = names(port).collect();
        for interface in &here {
            let under = port.device.kernel_interface() == Some(interface.name.as_str());
            let is_own = integrated && namespace.is_none() && own.contains(&interface.name);
            if !is_own {
                mac(port, interface, under, found);
                address(port, interface, found);
            }
        }
        if integrated {
            let linux = theirs.as_ref().unwrap_or(&here);
            for interface in linux.iter().filter(|one| own.contains(&one.name)) {
                svi(port, interface, namespace, found);
            }
        }
    }
}

/// Names of the port's interfaces in Linux.
fn names(port: &Port) -> impl Iterator<Item = String> {
    port.interfaces().map(|interface| match interface.vlan {
        None => port.name.clone(),
        Some(vlan) => format!("{}.{vlan}", port.name),
    })
}

fn mac(port: &Port, interface: &Interface, under: bool, found: &mut Vec<Finding>) {
    let Some(mac) = port.mac else { return };
    if under || mac.to_string() != interface.mac {
        return;
    }
    let name = &interface.name;
    found.push(Finding {
        check: Check::MacClash,
        severity: Severity::Warning,
        place: format!("port {}", port.name),
        what: format!("the interface {name} of this host has the port's MAC address {mac}: on one network, switches send to whichever spoke last"),
        mend: Mend::ByHand(format!("ip link show dev {name}   # and another ports[].mac")),
    });
}

fn address(port: &Port, interface: &Interface, found: &mut Vec<Finding>) {
    let ours = port.interfaces().flat_map(|own| own.addresses);
    for ours in ours {
        if !interface.addresses.iter().any(|one| one.ip == ours.addr()) {
            continue;
        }
        let (name, ip) = (&interface.name, ours.addr());
        found.push(Finding {
            check: Check::AddressClash,
            severity: Severity::Warning,
            place: format!("port {}", port.name),
            what: format!("the interface {name} of this host has the port's address {ip}: both answer for it, and what this host sends to it does not come to the switch"),
            mend: Mend::ByHand(format!("ip address show dev {name} to {ip}   # then: ip address del {ip}/... dev {name}")),
        });
    }
}

/// Reports an interface whose MAC differs from its port's: Linux answers ARP with it, and frames to another one are dropped as `not_for_us`.
fn svi(port: &Port, interface: &Interface, namespace: Option<&str>, found: &mut Vec<Finding>) {
    let Some(mac) = port.mac.map(|mac| mac.to_string()) else {
        return;
    };
    if interface.mac.is_empty() || interface.mac == mac {
        return;
    }
    let name = &interface.name;
    let inside = namespace.map_or_else(String::new, |namespace| format!("-n {namespace} "));
    found.push(Finding {
        check: Check::SviMac,
        severity: Severity::Error,
        place: format!("port {} ({name})", port.name),
        what: format!("Linux answers ARP with {}, and the port takes frames to {mac} only: the others are dropped as not_for_us", interface.mac),
        mend: Mend::Now(format!("ip {inside}link set dev {name} address {mac}")),
    });
}

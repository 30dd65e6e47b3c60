//! Checks of the switch's own addresses: each usable, each once, no subnet on two interfaces.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Check, port_path};
use crate::subnets::Subnet;

pub(super) fn check(check: &mut Check<'_>) {
    let all: Vec<Subnet> = check.subnets.all().to_vec();
    for (n, subnet) in all.iter().enumerate() {
        if let Some((problem, hint)) = unusable(subnet.net) {
            check.error(&subnet.path(), format!("`{}` {problem}", subnet.net), hint);
            continue;
        }
        // One complaint per address is enough.
        if let Some(other) = all[..n].iter().find(|o| conflict(o, subnet)) {
            clash(check, other, subnet);
        }
        let mtu = check.file.ports[subnet.port].mtu.get();
        if subnet.net.addr().is_ipv6()
            && mtu < 1280
            && check.certain(&port_path(subnet.port).key("mtu"))
        {
            let message = format!("IPv6 does not work with an mtu of {mtu}");
            check.error(
                &subnet.path(),
                message,
                "raise the port's mtu to 1280 or more",
            );
        }
    }
}

/// Returns true if two addresses of the switch cannot coexist.
fn conflict(a: &Subnet, b: &Subnet) -> bool {
    let same_interface = a.port == b.port && a.vlan == b.vlan;
    let overlap = a.net.contains(&b.net.addr()) || b.net.contains(&a.net.addr());
    if same_interface {
        a.net.addr() == b.net.addr()
    } else {
        overlap && unusable(a.net).is_none()
    }
}

fn clash(check: &mut Check<'_>, other: &Subnet, subnet: &Subnet) {
    let line = check.line(&other.path());
    let port = check.port_name(other.port);
    let place = match other.vlan {
        Some(vlan) => format!("`{port}` vlan {vlan}"),
        None => format!("`{port}`"),
    };
    if other.net.addr() == subnet.net.addr() {
        let message = format!("{} is given twice", subnet.net.addr());
        check.error(
            &subnet.path(),
            message,
            format!("{place} has it on line {line}"),
        );
    } else {
        let message = format!("`{}` overlaps `{}` of {place}", subnet.net, other.net);
        let hint = format!(
            "a subnet lives on one interface (see line {line}); for hosts of one subnet on two \
             ports use /{} addresses, static neighbors and host routes",
            subnet.net.max_prefix_len()
        );
        check.error(&subnet.path(), message, hint);
    }
}

/// Returns the reason why an address cannot be an interface's, and a hint.
fn unusable(net: IpNet) -> Option<(&'static str, String)> {
    let address = net.addr();
    if net.prefix_len() == 0 {
        return Some((
            "covers every address",
            "give the subnet's length, such as /24".to_owned(),
        ));
    }
    let kind = match address {
        IpAddr::V4(a) if a.is_unspecified() || a.octets()[0] == 0 => Some("is no host's address"),
        IpAddr::V4(a) if a.octets()[0] >= 240 => Some("is reserved"),
        IpAddr::V6(a) if a.is_unspecified() => Some("is no host's address"),
        IpAddr::V6(a) if a.is_unicast_link_local() => {
            let hint = "link-local addresses are made by the switch; remove it".to_owned();
            return Some(("is link-local", hint));
        }
        a if a.is_multicast() => Some("is multicast"),
        a if a.is_loopback() => Some("is loopback"),
        _ => None,
    };
    if let Some(kind) = kind {
        return Some((
            kind,
            "use a unicast address of the subnet, such as 10.0.1.1/24".to_owned(),
        ));
    }
    let host = net.hosts().next().map_or_else(String::new, |first| {
        format!("use a host's address, such as {first}/{}", net.prefix_len())
    });
    match net {
        IpNet::V4(v4) if v4.prefix_len() < 31 && v4.addr() == v4.network() => {
            Some(("is the subnet's own address", host))
        }
        IpNet::V4(v4) if v4.prefix_len() < 31 && v4.addr() == v4.broadcast() => {
            Some(("is the subnet's broadcast address", host))
        }
        IpNet::V6(v6) if v6.prefix_len() < 127 && v6.addr() == v6.network() => {
            let hint = format!("it is the routers' anycast address; {}", host_after(v6));
            Some(("is the subnet's own address", hint))
        }
        _ => None,
    }
}

fn host_after(net: ipnet::Ipv6Net) -> String {
    let first = std::net::Ipv6Addr::from(u128::from(net.network()) + 1);
    format!("use a host's address, such as {first}/{}", net.prefix_len())
}

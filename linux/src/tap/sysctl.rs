//! Sysctls of the kernel's network stack, in the namespace of the thread that writes them.

use std::fs;
use std::io;

/// Sysctl below `/proc/sys/net`, and its value; `@` stands for the name of a device.
type Sysctl = (&'static str, &'static str);

/// Sysctls of the whole namespace.
///
/// `nexthop_compat_mode` 0: one change of a next-hop object is one notification, not one for each route over it.
const NAMESPACE: [Sysctl; 1] = [("ipv4/nexthop_compat_mode", "0")];

/// Sysctls of the whole namespace that are set back when somebody changes them: where `forwarding` is off, the value of `all` permits
/// IPv4 redirects on every device, whatever the device's own is. Other devices of the namespace keep their own values.
const NAMESPACE_OF_ROUTER: [Sysctl; 2] = [
    ("ipv4/conf/all/accept_redirects", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
];

/// Sysctls of a TAP; `@` is its name.
///
/// Packets arrive on the port their sender chose, not on the one we would answer by (`rp_filter` 2). IPv6 addresses stay when
/// the link is set down. The kernel sees no data traffic, so it must probe whether a neighbour is still there, and must
/// detect within half a minute that a MAC address changed: confirmed for 5 to 15 s, probed again within 5 s, by three probes
/// to the old address and then by broadcast, a second each. One packet waits for an unresolved neighbour (RFC 1122, 2.3.2.2), not
/// 100: all of them are charged to one socket, so that hosts that ping and do not answer ARP blocked ping for everybody.
const DEVICE: [Sysctl; 10] = [
    ("ipv4/neigh/@/unres_qlen_bytes", "1"),
    ("ipv6/neigh/@/unres_qlen_bytes", "1"),
    ("ipv4/conf/@/rp_filter", "2"),
    ("ipv6/conf/@/keep_addr_on_down", "1"),
    ("ipv4/neigh/@/base_reachable_time_ms", "10000"),
    ("ipv6/neigh/@/base_reachable_time_ms", "10000"),
    ("ipv4/neigh/@/delay_first_probe_time", "1"),
    ("ipv6/neigh/@/delay_first_probe_time", "1"),
    ("ipv4/neigh/@/mcast_resolicit", "3"),
    ("ipv6/neigh/@/mcast_resolicit", "3"),
];

/// Sysctls of a TAP that are set back when somebody changes them: a TAP is an interface of a router, and a router takes no routes,
/// addresses or parameters from hosts (RFC 4861, 6.2.7; RFC 1812, 5.2.7.2). One router advertisement of a host would otherwise give the
/// switch a default route, or a route to a prefix behind another port. Linux answers for its own addresses only, and sends no redirects.
/// It forwards nothing either: frames that it is given are for the switch itself, and the switch alone routes.
const DEVICE_OF_ROUTER: [Sysctl; 9] = [
    ("ipv4/conf/@/forwarding", "0"),
    ("ipv6/conf/@/forwarding", "0"),
    ("ipv6/conf/@/accept_ra", "0"),
    ("ipv6/conf/@/autoconf", "0"),
    ("ipv6/conf/@/accept_redirects", "0"),
    ("ipv6/conf/@/proxy_ndp", "0"),
    ("ipv4/conf/@/accept_redirects", "0"),
    ("ipv4/conf/@/send_redirects", "0"),
    ("ipv4/conf/@/proxy_arp", "0"),
];

/// Capacity of the kernel's neighbour tables: as many as there are next-hop numbers.
const NEIGHBORS: u32 = 65_536;

/// Raises the kernel's limits of neighbours, which are global and can be set from the initial namespace only. Limits that
/// cannot be raised, or are high enough, stay as they are.
///
/// `gc_thresh3` is the hard maximum, 1,024 by default; below `gc_thresh1` no entry is garbage-collected.
pub fn room_for_neighbors() {
    for family in ["ipv4", "ipv6"] {
        for limit in ["gc_thresh3", "gc_thresh2", "gc_thresh1"] {
            let path = format!("{family}/neigh/default/{limit}");
            let now = fs::read_to_string(format!("/proc/sys/net/{path}"));
            let now = now.ok().and_then(|text| text.trim().parse::<u32>().ok());
            if now.is_some_and(|now| now < NEIGHBORS) {
                let _ = set(&path, &NEIGHBORS.to_string());
            }
        }
    }
}

/// Writes the sysctls of the namespace.
///
/// # Errors
/// The sysctl that could not be written.
pub fn of_namespace() -> io::Result<()> {
    NAMESPACE
        .iter()
        .chain(&NAMESPACE_OF_ROUTER)
        .try_for_each(|(path, value)| set(path, value))
}

/// Writes the sysctls of a device.
///
/// # Errors
/// The sysctl that could not be written; those of IPv6 need not exist.
pub fn of_device(name: &str) -> io::Result<()> {
    for (path, value) in DEVICE.iter().chain(&DEVICE_OF_ROUTER) {
        let done = set(&path.replace('@', name), value);
        let without = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if done
            .as_ref()
            .is_err_and(|error| !(without(error) && path.starts_with("ipv6")))
        {
            return done;
        }
    }
    Ok(())
}

/// Sets back the sysctls of a router that somebody changed in the namespace; yields a description of each, or why it could not be set.
pub fn set_back_in_namespace() -> impl Iterator<Item = io::Result<String>> {
    let all = NAMESPACE_OF_ROUTER.into_iter();
    all.filter_map(|(path, value)| set_back(path, value).transpose())
}

/// Sets back the sysctls of a router that somebody changed on a device; yields a description of each, or why it could not be set.
pub fn set_back_on_device(name: &str) -> impl Iterator<Item = io::Result<String>> {
    let all = DEVICE_OF_ROUTER.into_iter();
    all.filter_map(move |(path, value)| set_back(&path.replace('@', name), value).transpose())
}

/// Sets a sysctl back if it exists and has another value; returns a description if so.
fn set_back(path: &str, value: &str) -> io::Result<Option<String>> {
    let Ok(now) = fs::read_to_string(format!("/proc/sys/net/{path}")) else {
        return Ok(None);
    };
    let now = now.trim();
    if now == value {
        return Ok(None);
    }
    set(path, value)?;
    let words = format!("sysctl net/{path} was {now}, set back to {value}");
    Ok(Some(words))
}

fn set(path: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/net/{path}");
    fs::write(&path, value).map_err(|error| {
        io::Error::new(error.kind(), format!("writing {value} to {path}: {error}"))
    })
}

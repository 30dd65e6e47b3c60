//! Checks of static routes: clean prefixes, each once, next hops that can be reached, capacity of the tables.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::Check;
use crate::model::Route;
use crate::tree::Path;

/// Maximum number of equal-cost paths of one route.
const MAX_PATHS: usize = 64;
/// Maximum number of routes for which a table can be sized.
const MAX_ROUTES: u64 = 4 << 20;

fn route_path(n: usize) -> Path {
    Path::root("routes").index(n)
}

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    let addresses_certain = check.addresses_certain();
    let mut seen: HashMap<IpNet, usize> = HashMap::new();
    let mut paths: HashMap<(IpNet, IpAddr), usize> = HashMap::new();
    for (n, route) in file.routes.iter().enumerate() {
        let certain = check.certain(&route_path(n).key("prefix"));
        if certain {
            prefix(check, n, route.prefix.0);
            seen.entry(route.prefix.0.trunc()).or_insert(n);
        }
        next_hops(check, n, route, addresses_certain);
        if certain && check.certain(&route_path(n).key("via")) {
            repeated(check, n, route, &mut paths);
        }
    }
    too_many_paths(check, &paths);
    capacity(check, seen.into_keys());
}

fn prefix(check: &mut Check<'_>, n: usize, net: IpNet) {
    let path = route_path(n).key("prefix");
    if net.trunc() != net {
        let message = format!("`{net}` has bits set beyond its length");
        check.error(&path, message, format!("write {}", net.trunc()));
        return;
    }
    let first = net.network();
    if net.prefix_len() > 0 && (first.is_multicast() || first.is_loopback()) {
        let message = format!("`{net}` is not a unicast destination");
        check.error(&path, message, "route unicast prefixes only");
    }
    let same = check
        .subnets
        .all()
        .iter()
        .find(|s| s.net.trunc() == net)
        .copied();
    if let Some(subnet) = same.filter(|s| s.net.prefix_len() < s.net.max_prefix_len()) {
        let port = check.port_name(subnet.port);
        let line = check.line(&subnet.path());
        let hint = format!("line {line} already makes it reachable there; remove the route");
        check.error(
            &path,
            format!("`{net}` is the subnet of port `{port}`"),
            hint,
        );
    }
    if check.subnets.is_ours(first) && net.prefix_len() == net.max_prefix_len() {
        let message = format!("{first} is an address of this switch");
        check.error(&path, message, "remove the route");
    }
}

fn next_hops(check: &mut Check<'_>, n: usize, route: &Route, addresses_certain: bool) {
    let path = route_path(n).key("via");
    if route.via.0.is_empty() {
        check.error(
            &path,
            "the route has no next hop",
            "write via: 10.0.12.2, or a list",
        );
    }
    let known = check.certain(&route_path(n).key("prefix"));
    for (i, via) in route.via.0.iter().enumerate() {
        let (path, via) = (path.index(i), via.0);
        if known && via.is_ipv4() != route.prefix.0.addr().is_ipv4() {
            let message = format!("{via} cannot be a next hop of {}", route.prefix.0);
            check.error(
                &path,
                message,
                "prefix and next hop must both be IPv4 or both IPv6",
            );
        } else if check.subnets.is_ours(via) {
            let message = format!("{via} is an address of this switch");
            check.error(&path, message, "name the router on the other side");
        } else if addresses_certain && check.subnets.leads_to(via).is_none() {
            let hint = reachable(check, via);
            check.error(&path, format!("next hop {via} cannot be reached"), hint);
        }
    }
}

/// Returns the hint for an unreachable next hop: addresses that could be used instead.
fn reachable(check: &Check<'_>, via: IpAddr) -> String {
    let mut subnets: Vec<String> = check
        .subnets
        .all()
        .iter()
        .filter(|s| s.net.addr().is_ipv4() == via.is_ipv4())
        .map(|s| format!("{} on {}", s.net.trunc(), check.port_name(s.port)))
        .collect();
    subnets.dedup();
    subnets.truncate(6);
    if subnets.is_empty() {
        let family = if via.is_ipv4() { "IPv4" } else { "IPv6" };
        return format!("no port has an {family} address; add one under ports, addresses");
    }
    format!(
        "take one of {}, or add it to neighbors with its port",
        subnets.join(", ")
    )
}

/// Reports the same path given twice; the same prefix with another next hop is one more equal-cost path.
fn repeated(
    check: &mut Check<'_>,
    n: usize,
    route: &Route,
    paths: &mut HashMap<(IpNet, IpAddr), usize>,
) {
    for (i, via) in route.via.0.iter().enumerate() {
        let key = (route.prefix.0.trunc(), via.0);
        let Some(&first) = paths.get(&key) else {
            paths.insert(key, n);
            continue;
        };
        let line = check.line(&route_path(first).key("prefix"));
        let message = format!("{} via {} is listed twice", key.0, via.0);
        let hint = format!("see line {line}; for equal-cost paths give different next hops");
        check.error(&route_path(n).key("via").index(i), message, hint);
    }
}

fn too_many_paths(check: &mut Check<'_>, paths: &HashMap<(IpNet, IpAddr), usize>) {
    let mut count: HashMap<IpNet, (usize, usize)> = HashMap::new();
    for ((net, _), n) in paths {
        let entry = count.entry(*net).or_default();
        *entry = (entry.0 + 1, entry.1.max(*n));
    }
    let mut over: Vec<_> = count
        .into_iter()
        .filter(|(_, (c, _))| *c > MAX_PATHS)
        .collect();
    over.sort_by_key(|(_, (_, n))| *n);
    for (net, (count, n)) in over {
        let message = format!("{net} has {count} equal-cost paths");
        let hint = format!("at most {MAX_PATHS} are used");
        check.error_at_key(&route_path(n).key("via"), message, hint);
    }
}

/// Checks static and connected routes of each family against the table's size.
fn capacity(check: &mut Check<'_>, prefixes: impl Iterator<Item = IpNet>) {
    let connected = check.subnets.all().iter().map(|s| s.net.trunc());
    let (mut v4, mut v6) = (0u64, 0u64);
    for net in prefixes.chain(connected) {
        *if net.addr().is_ipv4() {
            &mut v4
        } else {
            &mut v6
        } += 1;
    }
    let routing = &check.file.routing;
    let rows = [
        ("ipv4_routes", routing.ipv4_routes.0, v4),
        ("ipv6_routes", routing.ipv6_routes.0, v6),
    ];
    for (key, room, used) in rows {
        let path = Path::root("routing").key(key);
        if used > room {
            let message = format!("{used} routes do not fit into a table of {room}");
            check.error(
                &path,
                message,
                format!("raise {key} to {} or more", used.next_power_of_two()),
            );
        } else if room > MAX_ROUTES {
            let message = format!("a table of {room} routes is too large");
            check.error(
                &path,
                message,
                "at most 4M; a full Internet table needs 1M and 256k",
            );
        }
    }
}

//! Routes, neighbours, and the synchronisation of both with the kernel.

use std::time::Duration;

use npcc_api::routes::{Linux, Neighbor, NextHop, Route};
use npcc_linux::fib::Member;
use npcc_linux::netlink::handle::Status;
use npcc_linux::wanted::differ::Installed;

use super::table::{count, joined, table, thousands, time, word};

/// Converts a member of a next-hop group of the kernel; `port` is the name of its port.
#[must_use]
pub fn member(member: &Member, port: &str) -> NextHop {
    NextHop {
        gateway: member.gateway,
        weight: member.weight,
        ..NextHop::of(&member.adjacency, port)
    }
}

/// Formats a next hop in the words of `ip route`.
fn hop_text(hop: &NextHop) -> String {
    // Without a gateway each destination is resolved by ithop.
    let connected = hop.kind == "unresolved" && hop.gateway.is_none();
    let kind = if connected { "connected" } else { &hop.kind };
    let mut words = vec![kind.to_owned()];
    words.extend(hop.gateway.map(|gateway| format!("via {gateway}")));
    if !hop.port.is_empty() {
        words.push(hop.port.clone());
    }
    if hop.vlan > 0 {
        words.push(format!("vlan {}", hop.vlan));
    }
    words.extend(hop.mac.clone());
    if hop.weight != 1 {
        words.push(format!("weight {}", hop.weight));
    }
    words.extend(hop.mtu.map(|mtu| format!("mtu {mtu}")));
    words.join(" ")
}

/// Returns the state of a route, as it is shown.
#[must_use]
pub const fn state(installed: Installed) -> &'static str {
    match installed {
        Installed::By(_) => "installed",
        Installed::LeftOut => "left-out",
        Installed::Refused => "refused",
    }
}

/// Renders `show routes`.
#[must_use]
pub fn routes(rows: &[Route]) -> String {
    table(5, &&Route::default(), rows, |row| {
        let hops: Vec<String> = row.next_hops.iter().map(hop_text).collect();
        let hops = match (row.state.as_str(), &row.reason) {
            ("refused", _) => "no room in the switch".to_owned(),
            (_, None) => hops.join(", "),
            (_, Some(reason)) if hops.is_empty() => reason.clone(),
            (_, Some(reason)) => format!("{}; {reason}", hops.join(", ")),
        };
        vec![
            word("PREFIX", &row.prefix),
            ("PROTOCOL", joined(&row.protocol, "")),
            ("METRIC", joined(row.metric, "")),
            word("STATE", &row.state),
            ("NEXT HOPS", hops),
        ]
    })
}

/// Returns the name of a route's origin in `ip route` (`RTPROT_*` of `linux/rtnetlink.h`, and FRR's numbers); the number where it has none.
#[must_use]
pub fn protocol(number: u8) -> String {
    let name = match number {
        1 => "redirect",
        2 => "kernel",
        3 => "boot",
        4 => "static",
        9 => "ra",
        11 => "zebra",
        12 => "bird",
        16 => "dhcp",
        18 => "keepalived",
        42 => "babel",
        186 => "bgp",
        187 => "isis",
        188 => "ospf",
        189 => "rip",
        191 => "nhrp",
        192 => "eigrp",
        194 => "sharp",
        195 => "pbr",
        196 => "zstatic",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// Returns the kernel's state of a neighbour by its name in `ip neighbour` (`NUD_*` of `linux/neighbour.h`).
#[must_use]
pub const fn neighbor_state(nud: u16) -> &'static str {
    match nud {
        0x01 => "incomplete",
        0x02 => "reachable",
        0x04 => "stale",
        0x08 => "delay",
        0x10 => "probe",
        0x20 => "failed",
        0x40 => "noarp",
        0x80 => "permanent",
        _ => "none",
    }
}

/// Returns an age with its two largest units.
fn age(seconds: u64) -> String {
    let text = humantime::format_duration(Duration::from_secs(seconds)).to_string();
    let units: Vec<&str> = text.split(' ').take(2).collect();
    units.join(" ")
}

/// Renders `show neighbors`.
#[must_use]
pub fn neighbors(rows: &[Neighbor]) -> String {
    table(9, &&Neighbor::default(), rows, |row| {
        vec![
            word("ADDRESS", &row.address),
            word("PORT", &row.port),
            word("VLAN", row.vlan),
            ("MAC", row.mac.clone().unwrap_or_default()),
            word("STATE", &row.state),
            word("KEPT", if row.kept { "yes" } else { "" }),
            ("AGE", joined(row.age_s.map(age), "")),
            count("MOVES", u64::from(row.moves)),
            word("REFUSED", row.refused.as_deref().unwrap_or_default()),
        ]
    })
}

/// Builds the report from the status of the thread that follows the kernel.
#[must_use]
pub fn linux(status: &Status) -> Linux {
    let (figures, counts) = (status.figures, status.counts);
    let compared = status.compared.as_ref();
    let [kernel_ipv4, kernel_ipv6] = status.kernel;
    Linux {
        integrated: true,
        kernel_ipv4,
        kernel_ipv6,
        aside: status.aside,
        installed: figures.routes,
        hosts: status.hosts,
        groups: figures.groups,
        left_out: figures.left_out,
        refused: figures.refused,
        receive_buffer: status.receive_buffer,
        messages: counts.messages,
        malformed: counts.malformed,
        overruns: counts.overruns,
        comparisons: counts.dumps,
        faults: counts.faults,
        refused_neighbors: counts.refused_neighbors,
        lookups: counts.lookups,
        lookups_differing: counts.lookups_differing,
        compared_us: compared.map_or(0, |report| {
            u64::try_from(report.took.as_micros()).unwrap_or(u64::MAX)
        }),
        differences: compared.map_or(0, |report| report.differences),
        ..Linux::default()
    }
}

/// Renders `show linux`.
#[must_use]
pub fn linux_text(linux: &Linux) -> String {
    let drained = linux.draining_s.map_or_else(String::new, |seconds| {
        format!(
            "draining    since {} s: `undrain` ends it\n",
            thousands(seconds)
        )
    });
    if !linux.integrated {
        return format!("{drained}Linux is not integrated: linux.integrate is false\n");
    }
    let count = |number: usize| thousands(number as u64);
    format!(
        "{drained}kernel      {} IPv4 and {} IPv6 prefixes, {} of them of the loopback, groups and links\n\
             switch      {} installed by {} groups ({} attached hosts among them), {} left out, {} refused\n\
             messages    {} read, {} malformed, {} overruns, receive buffer {} B\n\
             comparisons {}, the last took {} and found {} differences; {} faults\n\
             look-ups    {} of packets in Linux, {} go another way there\n\
             neighbors   {} refused for a MAC address that is no host's\n",
        count(linux.kernel_ipv4),
        count(linux.kernel_ipv6),
        count(linux.aside),
        count(linux.installed),
        count(linux.groups),
        count(linux.hosts),
        count(linux.left_out),
        count(linux.refused),
        thousands(linux.messages),
        thousands(linux.malformed),
        thousands(linux.overruns),
        count(linux.receive_buffer),
        thousands(linux.comparisons),
        time(linux.compared_us.saturating_mul(1_000)),
        count(linux.differences),
        thousands(linux.faults),
        thousands(linux.lookups),
        thousands(linux.lookups_differing),
        thousands(linux.refused_neighbors),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_linux::wire::not_followed::Reason;
    use npcc_pipeline::route::nexthop::{Adjacency, Kind};
    use npcc_pipeline::units::{Mac, PortId};

    #[test]
    fn a_next_hop_is_said_in_the_words_of_ip_route() {
        let path = Adjacency {
            kind: Kind::Forward,
            port: PortId(1),
            vlan: 100,
            dst: Mac([2, 0, 0, 0, 0, 9]),
            src: Mac([2, 0, 0, 0, 0, 1]),
            mtu: 0,
        };
        let member = Member {
            adjacency: path,
            weight: 3,
            gateway: Some("10.0.1.9".parse().unwrap()),
        };
        let hop = super::member(&member, "wan0");
        let text = "forward via 10.0.1.9 wan0 vlan 100 02:00:00:00:00:09 weight 3";
        assert_eq!(hop_text(&hop), text);
        let drop = NextHop::of(&Adjacency::unusable(Kind::Blackhole), "dc0");
        assert_eq!(hop_text(&drop), "blackhole");
    }

    #[test]
    fn a_route_has_its_origin_and_the_reason_why_it_is_left_out() {
        let hop = |kind: &str, gateway: Option<&str>| NextHop {
            kind: kind.to_owned(),
            port: "left".to_owned(),
            gateway: gateway.map(|one| one.parse().unwrap()),
            weight: 1,
            ..NextHop::default()
        };
        let route = |prefix: &str, state: &str, number, next_hops| Route {
            prefix: prefix.to_owned(),
            state: state.to_owned(),
            reason: (state == "left-out").then(|| Reason::Elsewhere.name().to_owned()),
            protocol: Some(protocol(number)),
            metric: Some(20),
            next_hops,
        };
        let text = routes(&[
            route("10.1.0.0/24", "installed", 2, vec![hop("unresolved", None)]),
            route(
                "10.8.0.0/24",
                "installed",
                186,
                vec![hop("unresolved", Some("10.1.0.9"))],
            ),
            route("10.9.0.0/24", "left-out", 77, vec![]),
        ]);
        let lines = text.lines().skip(1);
        let lines: Vec<String> = lines
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let expected = [
            "10.1.0.0/24 kernel 20 installed connected left",
            "10.8.0.0/24 bgp 20 installed unresolved via 10.1.0.9 left",
            "10.9.0.0/24 77 20 left-out none behind a port of the switch",
        ];
        assert_eq!(lines, expected);
    }
}

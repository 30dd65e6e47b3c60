//! Routes, neighbours, and the synchronisation of both with the kernel.

use std::net::IpAddr;
use std::time::Duration;

use npcc_linux::fib::Member;
use npcc_linux::netlink::handle::Status;
use npcc_linux::wanted::differ::Installed;
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use serde::{Deserialize, Serialize};

use super::table::{count, joined, table, thousands, time, word};

/// Row of `show routes --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// Destination prefix.
    pub prefix: String,
    /// State of the route: `installed`; `left-out`: the switch does not follow it; `refused`: there was no room; `differs`, in `--diff` only:
    /// the switch has not what the kernel has.
    pub state: String,
    /// Reason why it is left out, or followed in part only; what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Next hops of the route, and what happens to frames there.
    pub next_hops: Vec<NextHop>,
    /// Origin of the kernel's route as in `ip route`, such as `bgp` or `static`; absent without a route in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Metric of the kernel's route; the lower, the better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<u32>,
}

/// Next hop of a route.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NextHop {
    /// Kind: `forward`, `unresolved`, `local`, `blackhole`, `unreachable`, `prohibited` or `none`.
    pub kind: String,
    /// Egress port; empty where frames are dropped.
    pub port: String,
    /// VLAN on the port, 0 without a tag.
    pub vlan: u16,
    /// Gateway address; absent where the destination itself is the next hop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// MAC address of the next hop, where frames are forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Weight against the route's other next hops.
    pub weight: u16,
    /// Largest IP packet in bytes that the route allows, where it says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
}

impl NextHop {
    /// Converts an adjacency; `port` is the name of its port.
    #[must_use]
    pub fn of(path: &Adjacency, port: &str) -> NextHop {
        let leads = matches!(path.kind, Kind::Forward | Kind::Unresolved | Kind::Local);
        NextHop {
            kind: path.kind.name().to_owned(),
            port: if leads { port } else { "" }.to_owned(),
            vlan: path.vlan,
            gateway: None,
            mac: (path.kind == Kind::Forward).then(|| path.dst.to_string()),
            weight: 1,
            mtu: Some(path.mtu).filter(|mtu| *mtu > 0),
        }
    }

    /// Converts a member of a next-hop group of the kernel.
    #[must_use]
    pub fn of_member(member: &Member, port: &str) -> NextHop {
        NextHop {
            gateway: member.gateway,
            weight: member.weight,
            ..NextHop::of(&member.adjacency, port)
        }
    }

    fn text(&self) -> String {
        // Without a gateway each destination is resolved by itself.
        let connected = self.kind == "unresolved" && self.gateway.is_none();
        let kind = if connected { "connected" } else { &self.kind };
        let mut words = vec![kind.to_owned()];
        words.extend(self.gateway.map(|gateway| format!("via {gateway}")));
        if !self.port.is_empty() {
            words.push(self.port.clone());
        }
        if self.vlan > 0 {
            words.push(format!("vlan {}", self.vlan));
        }
        words.extend(self.mac.clone());
        if self.weight != 1 {
            words.push(format!("weight {}", self.weight));
        }
        words.extend(self.mtu.map(|mtu| format!("mtu {mtu}")));
        words.join(" ")
    }
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
        let hops: Vec<String> = row.next_hops.iter().map(NextHop::text).collect();
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

/// Row of `show neighbors --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbor {
    /// IP address of the neighbour.
    pub address: String,
    /// Port the neighbour is behind.
    pub port: String,
    /// VLAN on the port, 0 without a tag.
    pub vlan: u16,
    /// MAC address of the neighbour, while the kernel uses one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Kernel's state of the neighbour, such as `reachable`, or `static` for one of the configuration.
    pub state: String,
    /// True if the kernel was asked to keep the neighbour resolved.
    pub kept: bool,
    /// Time for which it has, or had, the MAC address, in s; absent if the kernel never had one, and for those of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// Number of times that the MAC address changed.
    pub moves: u32,
    /// Reason why no frame is sent to the MAC address: `broadcast`, `group`, `zero`, or `own`, the address of a port of the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
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

/// Contents of `show linux --json`: how the kernel is followed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Linux {
    /// Version of the program.
    pub version: String,
    /// True if Linux is integrated; if not, `show linux` prints a drain and nothing else.
    pub integrated: bool,
    /// Name of the network namespace; absent where it is that of the process that started the switch.
    pub namespace: Option<String>,
    /// Time in seconds since the switch began to drain its traffic (`drain`); absent when it does not.
    pub draining_s: Option<u64>,
    /// IPv4 prefixes in the kernel.
    pub kernel_ipv4: usize,
    /// IPv6 prefixes in the kernel.
    pub kernel_ipv6: usize,
    /// Prefixes of these that nothing is forwarded by: of the loopback, groups and link-local addresses, at the last comparison.
    pub aside: usize,
    /// Prefixes the switch has, attached hosts included.
    pub installed: usize,
    /// Prefixes of these that are attached hosts, without a route in the kernel, at the last comparison.
    pub hosts: usize,
    /// Next-hop groups the switch has.
    pub groups: usize,
    /// Prefixes without a next hop behind a port of ours.
    pub left_out: usize,
    /// Prefixes there was no room for.
    pub refused: usize,
    /// Size of the netlink receive buffer: octets of messages that may wait to be read.
    pub receive_buffer: usize,
    /// Messages read.
    pub messages: u64,
    /// Messages that lacked a mandatory part.
    pub malformed: u64,
    /// Number of times the kernel had to discard messages.
    pub overruns: u64,
    /// Number of comparisons with the kernel.
    pub comparisons: u64,
    /// Differences that a comparison found though no change was in progress: faults.
    pub faults: u64,
    /// Number of times a neighbour's MAC address was refused as no host's: a group's, broadcast, zero, or of a port of the switch.
    pub refused_neighbors: u64,
    /// Number of packets whose way Linux was asked for.
    pub lookups: u64,
    /// Number of these that Linux would send another way than the switch, in two rounds.
    pub lookups_differing: u64,
    /// Duration of the last comparison, in us.
    pub compared_us: u64,
    /// Differences the last comparison found.
    pub differences: usize,
}

impl Linux {
    /// Builds the report from the status of the thread that follows the kernel.
    #[must_use]
    pub fn of(status: &Status) -> Linux {
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

    /// Calls `each` with the name and the value of each counter.
    pub fn each_count(&mut self, mut each: impl FnMut(&'static str, &mut u64)) {
        each("messages", &mut self.messages);
        each("malformed", &mut self.malformed);
        each("overruns", &mut self.overruns);
        each("comparisons", &mut self.comparisons);
        each("faults", &mut self.faults);
        each("refused_neighbors", &mut self.refused_neighbors);
        each("lookups", &mut self.lookups);
        each("lookups_differing", &mut self.lookups_differing);
    }

    /// Renders `show linux`.
    #[must_use]
    pub fn text(&self) -> String {
        let drained = self.draining_s.map_or_else(String::new, |seconds| {
            format!(
                "draining    since {} s: `undrain` ends it\n",
                thousands(seconds)
            )
        });
        if !self.integrated {
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
            count(self.kernel_ipv4),
            count(self.kernel_ipv6),
            count(self.aside),
            count(self.installed),
            count(self.groups),
            count(self.hosts),
            count(self.left_out),
            count(self.refused),
            thousands(self.messages),
            thousands(self.malformed),
            thousands(self.overruns),
            count(self.receive_buffer),
            thousands(self.comparisons),
            time(self.compared_us.saturating_mul(1_000)),
            count(self.differences),
            thousands(self.faults),
            thousands(self.lookups),
            thousands(self.lookups_differing),
            thousands(self.refused_neighbors),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_linux::wire::not_followed::Reason;
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
        let hop = NextHop::of_member(&member, "wan0");
        let text = "forward via 10.0.1.9 wan0 vlan 100 02:00:00:00:00:09 weight 3";
        assert_eq!(hop.text(), text);
        let drop = NextHop::of(&Adjacency::unusable(Kind::Blackhole), "dc0");
        assert_eq!(drop.text(), "blackhole");
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

//! Routes, neighbours, and how the kernel and the switch agree on them.

use std::net::IpAddr;

use npcc_linux::fib::Member;
use npcc_linux::netlink::handle::Status;
use npcc_linux::wanted::differ::Installed;
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use serde::{Deserialize, Serialize};

use super::table::{table, thousands, word};

/// A route: `show routes --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// Its destinations.
    pub prefix: String,
    /// `installed`; `left-out`: none of its next hops is behind a port of ours; `refused`: there was no room; `differs`, of
    /// `--diff` only: the switch has not what the kernel has.
    pub state: String,
    /// What happens to its frames, one for each next hop.
    pub next_hops: Vec<NextHop>,
}

/// A next hop of a route.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NextHop {
    /// `forward`, `unresolved`, `local`, `blackhole`, `unreachable`, `prohibited` or `none`.
    pub kind: String,
    /// Its port; empty where frames are dropped.
    pub port: String,
    /// The VLAN there, 0 without a tag.
    pub vlan: u16,
    /// Its address; absent where the destination itself is next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Its MAC address, where frames are forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Its share against the others'.
    pub weight: u16,
}

impl NextHop {
    /// A path; `port` is its port's name.
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
        }
    }

    /// A member of a group of the kernel's.
    #[must_use]
    pub fn of_member(member: &Member, port: &str) -> NextHop {
        NextHop {
            gateway: member.gateway,
            weight: member.weight,
            ..NextHop::of(&member.adjacency, port)
        }
    }

    fn text(&self) -> String {
        let mut words = vec![self.kind.clone()];
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
        words.join(" ")
    }
}

/// What became of a route, as it is shown.
#[must_use]
pub const fn state(installed: Installed) -> &'static str {
    match installed {
        Installed::By(_) => "installed",
        Installed::LeftOut => "left-out",
        Installed::Refused => "refused",
    }
}

/// `show routes`
#[must_use]
pub fn routes(rows: &[Route]) -> String {
    table(3, &&Route::default(), rows, |row| {
        let hops: Vec<String> = row.next_hops.iter().map(NextHop::text).collect();
        vec![
            word("PREFIX", &row.prefix),
            word("STATE", &row.state),
            ("NEXT HOPS", hops.join(", ")),
        ]
    })
}

/// A neighbour: `show neighbors --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbor {
    /// Its address.
    pub address: String,
    /// Its port.
    pub port: String,
    /// The VLAN there, 0 without a tag.
    pub vlan: u16,
    /// Its MAC address, while there is one that is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The kernel's state of it, such as `reachable`, or `static` for one of the configuration.
    pub state: String,
    /// The kernel was asked to keep it resolved.
    pub kept: bool,
}

/// The kernel's state of a neighbour by its name in `ip neighbour` (`NUD_*` of `linux/neighbour.h`).
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

/// `show neighbors`
#[must_use]
pub fn neighbors(rows: &[Neighbor]) -> String {
    table(6, &&Neighbor::default(), rows, |row| {
        vec![
            word("ADDRESS", &row.address),
            word("PORT", &row.port),
            word("VLAN", row.vlan),
            ("MAC", row.mac.clone().unwrap_or_default()),
            word("STATE", &row.state),
            word("KEPT", if row.kept { "yes" } else { "" }),
        ]
    })
}

/// How the kernel is followed: `show linux --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Linux {
    /// Version of the program.
    pub version: String,
    /// Whether Linux is integrated; nothing else is said where it is not.
    pub integrated: bool,
    /// The name of its network namespace; absent where it is that of whoever started the switch.
    pub namespace: Option<String>,
    /// For how many seconds the switch's traffic has been taken away (`drain`); absent when it is not.
    pub draining_s: Option<u64>,
    /// Prefixes of IPv4 in the kernel.
    pub kernel_ipv4: usize,
    /// Prefixes of IPv6 in the kernel.
    pub kernel_ipv6: usize,
    /// Prefixes the switch has, attached hosts among them.
    pub installed: usize,
    /// Groups of next hops the switch has.
    pub groups: usize,
    /// Prefixes without a next hop behind a port of ours.
    pub left_out: usize,
    /// Prefixes there was no room for.
    pub refused: usize,
    /// Octets of messages that may wait to be read.
    pub receive_buffer: usize,
    /// Messages read.
    pub messages: u64,
    /// Messages that lacked what they cannot do without.
    pub malformed: u64,
    /// Times the kernel had to throw messages away.
    pub overruns: u64,
    /// Comparisons with the kernel.
    pub comparisons: u64,
    /// Differences a comparison found though nothing was under way: faults.
    pub faults: u64,
    /// How long the last comparison took, in us.
    pub compared_us: u64,
    /// Differences the last comparison found.
    pub differences: usize,
}

impl Linux {
    /// Of the thread that follows the kernel.
    #[must_use]
    pub fn of(status: &Status) -> Linux {
        let (figures, counts) = (status.figures, status.counts);
        let compared = status.compared.as_ref();
        let [kernel_ipv4, kernel_ipv6] = status.kernel;
        Linux {
            integrated: true,
            kernel_ipv4,
            kernel_ipv6,
            installed: figures.routes,
            groups: figures.groups,
            left_out: figures.left_out,
            refused: figures.refused,
            receive_buffer: status.receive_buffer,
            messages: counts.messages,
            malformed: counts.malformed,
            overruns: counts.overruns,
            comparisons: counts.dumps,
            faults: counts.faults,
            compared_us: compared.map_or(0, |report| {
                u64::try_from(report.took.as_micros()).unwrap_or(u64::MAX)
            }),
            differences: compared.map_or(0, |report| report.differences),
            ..Linux::default()
        }
    }

    /// What is counted, by its name.
    pub fn each_count(&mut self, mut each: impl FnMut(&'static str, &mut u64)) {
        each("messages", &mut self.messages);
        each("malformed", &mut self.malformed);
        each("overruns", &mut self.overruns);
        each("comparisons", &mut self.comparisons);
        each("faults", &mut self.faults);
    }

    /// `show linux`
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
            "{drained}kernel      {} IPv4 and {} IPv6 prefixes\n\
             switch      {} installed by {} groups, {} left out, {} refused\n\
             messages    {} read, {} malformed, {} overruns, receive buffer {} B\n\
             comparisons {}, the last took {} us and found {} differences; {} faults\n",
            count(self.kernel_ipv4),
            count(self.kernel_ipv6),
            count(self.installed),
            count(self.groups),
            count(self.left_out),
            count(self.refused),
            thousands(self.messages),
            thousands(self.malformed),
            thousands(self.overruns),
            count(self.receive_buffer),
            thousands(self.comparisons),
            thousands(self.compared_us),
            count(self.differences),
            thousands(self.faults),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::units::{Mac, PortId};

    #[test]
    fn a_next_hop_is_said_in_the_words_of_ip_route() {
        let path = Adjacency {
            kind: Kind::Forward,
            port: PortId(1),
            vlan: 100,
            dst: Mac([2, 0, 0, 0, 0, 9]),
            src: Mac([2, 0, 0, 0, 0, 1]),
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
}

//! Planned hosts, links and switch ports of a scenario, before switches are built.

use std::collections::{BinaryHeap, VecDeque};

use npcc_config::units::Length;
use npcc_pipeline::units::{BitRate, Mac, Nanos};

use crate::engine::host::Host;
use crate::engine::link::{End, Link, Tally};
use crate::host::pause::PauseState;
use crate::num::small;
use crate::scenario::{BACK, Case, HostGroup, Scenario};

/// A link between two switches.
#[derive(Debug)]
pub(crate) struct Trunk {
    pub(crate) name: String,
    /// Engine link indices: one direction, then the other.
    pub(crate) links: [usize; 2],
    /// Attachment points: (switch, port) at each end.
    pub(crate) ends: [(u32, u8); 2],
    pub(crate) backup: bool,
}

/// A switch port that is planned but not yet built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortPlan {
    pub(crate) rate: BitRate,
    pub(crate) delay: Nanos,
    pub(crate) link: usize,
    /// MAC address of the neighbour at the other end.
    pub(crate) peer: Mac,
}

/// Propagation delay in fibre: 5 ns per metre.
fn light(length: Length) -> Nanos {
    Nanos(length.millimetres() * 5 / 1_000)
}

pub(crate) fn host_mac(host: u32) -> Mac {
    let [_, a, b, c] = host.to_be_bytes();
    Mac([2, 1, 0, a, b, c])
}

pub(crate) fn port_mac(switch: u32, port: usize) -> Mac {
    let [.., a, b] = switch.to_be_bytes();
    Mac([2, 2, 0, a, b, port.to_le_bytes()[0]])
}

/// Planned hosts, links and ports, before switches are built.
#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) links: Vec<Link>,
    pub(super) hosts: Vec<Host>,
    /// Planned ports, by switch.
    pub(super) ports: Vec<Vec<PortPlan>>,
    pub(super) trunks: Vec<Trunk>,
    /// Switch and port that each host attaches to, by host.
    pub(super) homes: Vec<(u32, u8)>,
    /// Hosts of each group, by group.
    pub(super) members: Vec<Vec<u32>>,
}

fn index_of(names: &[String], name: &str) -> u32 {
    small(names.iter().position(|known| known == name).unwrap_or(0) as u64)
}

impl Topology {
    pub(super) fn of(scenario: &Scenario, case: &Case) -> Topology {
        let mut topology = Topology {
            ports: vec![Vec::new(); scenario.switches.len()],
            ..Topology::default()
        };
        for group in &scenario.hosts {
            let switch = index_of(&scenario.switches, &group.switch);
            let members = (0..group.count).map(|_| topology.add_host(switch, group));
            let members = members.collect();
            topology.members.push(members);
        }
        for link in &scenario.links {
            let length = case.length.unwrap_or(link.length);
            let ends = [&link.from, &link.to].map(|name| index_of(&scenario.switches, name));
            topology.add_trunk(&link.name, ends, link.rate, light(length), link.backup);
        }
        topology
    }

    fn add_port(&mut self, switch: u32, rate: BitRate, delay: Nanos, peer: Mac) -> (u8, usize) {
        let link = self.links.len();
        let ports = &mut self.ports[switch as usize];
        let port = u8::try_from(ports.len()).unwrap_or(u8::MAX);
        ports.push(PortPlan {
            rate,
            delay,
            link,
            peer,
        });
        (port, link)
    }

    fn add_host(&mut self, switch: u32, group: &HostGroup) -> u32 {
        let (rate, delay) = (group.rate, light(group.cable));
        let host = small(self.hosts.len() as u64);
        let (port, _) = self.add_port(switch, rate, delay, host_mac(host));
        self.links.push(Link::new(rate.0, delay, End::Host(host)));
        self.hosts.push(Host {
            link: self.links.len(),
            line: rate.0 as f64 / 1e9,
            sender: group.sender,
            cnp_interval: group.cnp_interval,
            ready: [const { BinaryHeap::new() }; 8],
            control: VecDeque::new(),
            pause: PauseState::default(),
            pausing: VecDeque::new(),
            wake: Nanos(u64::MAX),
            receives: Vec::new(),
            received: Tally::default(),
            cnps_sent: 0,
            cnps_received: 0,
            not_understood: 0,
        });
        self.links
            .push(Link::new(rate.0, delay, End::Switch(switch, port)));
        self.homes.push((switch, port));
        host
    }

    fn add_trunk(
        &mut self,
        name: &str,
        [a, b]: [u32; 2],
        rate: BitRate,
        delay: Nanos,
        backup: bool,
    ) {
        let peer = |switch: u32, topology: &Topology| {
            port_mac(switch, topology.ports[switch as usize].len())
        };
        let (to_b, to_a) = (peer(b, self), peer(a, self));
        let (port_a, there) = self.add_port(a, rate, delay, to_b);
        self.links.push(Link::new(rate.0, delay, End::Switch(b, 0)));
        let (port_b, back) = self.add_port(b, rate, delay, to_a);
        self.links
            .push(Link::new(rate.0, delay, End::Switch(a, port_a)));
        self.links[there].to = End::Switch(b, port_b);
        self.trunks.push(Trunk {
            name: name.to_owned(),
            links: [there, back],
            ends: [(a, port_a), (b, port_b)],
            backup,
        });
    }

    /// Resolves a name to a queue, as (switch, port): that of a link at its `from` end, with `/back` at its `to` end, or the one toward a group's first
    /// host.
    pub(super) fn queue(&self, scenario: &Scenario, name: &str) -> (u32, u8) {
        let (link, end) = name.strip_suffix(BACK).map_or((name, 0), |link| (link, 1));
        if let Some(trunk) = self.trunks.iter().find(|trunk| trunk.name == link) {
            return trunk.ends[end];
        }
        let group = scenario.hosts.iter().position(|group| group.name == name);
        let host = group.and_then(|group| self.members[group].first());
        host.map_or((0, 0), |host| self.homes[*host as usize])
    }
}

//! Installs shortest paths between switches, over the links that are up, as host routes in the production tables.

use std::collections::VecDeque;

use npcc_pipeline::frame::wire_len;
use npcc_pipeline::route::nexthop::{Adjacency, Kind, UNTAGGED};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::units::{Nanos, PortId};

use super::topology::{PortPlan, Trunk, port_mac};
use super::{BuildError, IpAddr, address};
use crate::engine::Engine;
use crate::num::small;
use crate::wire::OVERHEAD;

impl Engine {
    /// Returns, for each switch, its port toward each host; `None` where there is no path.
    fn toward(&self, homes: &[(u32, u8)]) -> Vec<Vec<Option<u8>>> {
        let usable = |backup: bool| {
            let trunks = self
                .trunks
                .iter()
                .filter(move |trunk| trunk.backup == backup);
            trunks.filter(|trunk| trunk.links.iter().all(|link| self.links[*link].is_up()))
        };
        // Backup links carry nothing while any other link is up.
        let backup = usable(false).next().is_none();
        let trunks: Vec<_> = usable(backup).collect();
        let ports = |from: usize| {
            let first = self.first_ports(from, &trunks);
            let port = move |(home, port): &(u32, u8)| match *home as usize {
                home if home == from => Some(*port),
                home => first[home],
            };
            homes.iter().map(port).collect()
        };
        (0..self.switches.len()).map(ports).collect()
    }

    /// Returns, for each switch, the first port on a shortest path to it from switch `from`, by breadth-first search.
    fn first_ports(&self, from: usize, trunks: &[&Trunk]) -> Vec<Option<u8>> {
        let mut first: Vec<Option<u8>> = vec![None; self.switches.len()];
        let mut open = VecDeque::from([(from, None)]);
        while let Some((at, by)) = open.pop_front() {
            for trunk in trunks {
                let [one, other] = trunk.ends;
                for [(here, port), (there, _)] in [[one, other], [other, one]] {
                    let there = there as usize;
                    if here as usize == at && there != from && first[there].is_none() {
                        let by = by.or(Some(port));
                        first[there] = by;
                        open.push_back((there, by));
                    }
                }
            }
        }
        first
    }

    /// Installs a host route to every host in every switch.
    ///
    /// # Errors
    /// When a host cannot be reached from a switch, or a table refuses.
    pub(super) fn install_routes(
        &mut self,
        homes: &[(u32, u8)],
        ports: &[Vec<PortPlan>],
    ) -> Result<(), BuildError> {
        let toward = self.toward(homes);
        self.record.routes = vec![Vec::new(); self.switches.len()];
        for (index, row) in toward.iter().enumerate() {
            for (host, port) in row.iter().enumerate() {
                let Some(port) = *port else {
                    let name = &self.scenario.switches;
                    let home = homes[host].0 as usize;
                    return Err(BuildError::Unreachable(
                        name[index].clone(),
                        name[home].clone(),
                    ));
                };
                let plan = ports[index][usize::from(port)];
                let path = Adjacency {
                    kind: Kind::Forward,
                    port: PortId(port),
                    vlan: UNTAGGED,
                    dst: plan.peer,
                    src: port_mac(small(index as u64), usize::from(port)),
                    mtu: 0,
                };
                let to = Prefix::host(IpAddr::V4(address(small(host as u64))));
                self.switches[index].routes.insert(to, &[path])?;
                self.record.routes[index].push(port);
            }
            self.commit(index);
        }
        Ok(())
    }

    fn commit(&mut self, index: usize) {
        let switch = &mut self.switches[index];
        switch.routes.commit();
        switch.path.refresh();
        switch.fib.refresh();
    }

    /// Records which connections cross the reported queue, and the shortest possible burst time of each group.
    pub(super) fn find_crossing(&mut self, homes: &[(u32, u8)]) {
        for index in 0..self.flows.len() {
            let (src, dst) = (self.flows[index].src, self.flows[index].dst);
            let ports = self.egress_ports(src, dst, homes);
            self.flows[index].crosses |= ports.contains(&self.watch);
            let group = self.flows[index].group;
            if self.record.ideals[group].is_none() {
                self.record.ideals[group] = self.fastest_burst(group, src, &ports);
            }
        }
    }

    /// Returns the egress ports, as (switch, port), on the path from one host to another, in order.
    pub(super) fn egress_ports(&self, src: u32, dst: u32, homes: &[(u32, u8)]) -> Vec<(u32, u8)> {
        let mut at = homes[src as usize].0;
        let mut ports = Vec::new();
        // No path is longer than there are switches.
        while ports.len() < self.switches.len() {
            let by = self.record.routes[at as usize][dst as usize];
            ports.push((at, by));
            let ends = self.trunks.iter().flat_map(|trunk| {
                let [a, b] = trunk.ends;
                [(a, b), (b, a)]
            });
            match ends.into_iter().find(|(here, _)| *here == (at, by)) {
                Some((_, there)) => at = there.0,
                None => break,
            }
        }
        ports
    }

    /// Returns the engine's indices of the links from a host by these egress ports.
    pub(super) fn links_from(&self, src: u32, ports: &[(u32, u8)]) -> impl Iterator<Item = usize> {
        let out = |(switch, port): &(u32, u8)| {
            self.switches[*switch as usize].ports[usize::from(*port)].link
        };
        std::iter::once(self.hosts[src as usize].link).chain(ports.iter().map(out))
    }

    /// Returns the time from the first bit of a burst sent to the last one received, on links that carry nothing else: its bytes at the
    /// slowest rate, one more frame at each other link, and propagation.
    fn fastest_burst(&self, group: usize, src: u32, ports: &[(u32, u8)]) -> Option<Nanos> {
        let burst = self.scenario.flows.get(group)?.burst?;
        let packets = burst.0.div_ceil(u64::from(self.scenario.mtu)).max(1);
        let frame = u64::from(wire_len(OVERHEAD + usize::from(self.scenario.mtu)));
        let (mut sum, mut slowest) = (Nanos::ZERO, Nanos::ZERO);
        for link in self.links_from(src, ports) {
            let link = &self.links[link];
            let one = link.rate().time_of(frame);
            sum += link.delay() + one;
            slowest = slowest.max(one);
        }
        Some(sum + Nanos(slowest.0 * (packets - 1)))
    }

    /// Reinstalls routes over the links that are still up after a failure.
    pub(crate) fn reroute(&mut self, _failure: usize) {
        let homes = self.homes();
        let toward = self.toward(&homes);
        for (index, row) in toward.iter().enumerate() {
            for (host, port) in row.iter().enumerate() {
                let Some(port) = *port else { continue };
                if self.record.routes[index][host] == port {
                    continue;
                }
                let trunk = self.trunks.iter().find_map(|trunk| {
                    let [a, b] = trunk.ends;
                    let here = (small(index as u64), port);
                    [(a, b), (b, a)].into_iter().find(|(end, _)| *end == here)
                });
                let Some((_, (peer, at))) = trunk else {
                    continue;
                };
                let path = Adjacency {
                    kind: Kind::Forward,
                    port: PortId(port),
                    vlan: UNTAGGED,
                    dst: port_mac(peer, usize::from(at)),
                    src: port_mac(small(index as u64), usize::from(port)),
                    mtu: 0,
                };
                let to = Prefix::host(IpAddr::V4(address(small(host as u64))));
                // Cannot fail for lack of space: the tables already held a route to this host.
                if self.switches[index].routes.insert(to, &[path]).is_ok() {
                    self.record.routes[index][host] = port;
                }
            }
            self.commit(index);
        }
        self.find_crossing(&homes);
    }

    fn homes(&self) -> Vec<(u32, u8)> {
        let home = |host: &crate::engine::host::Host| match self.links[host.link].to {
            crate::engine::link::End::Switch(switch, port) => (switch, port),
            crate::engine::link::End::Host(_) => (0, 0),
        };
        self.hosts.iter().map(home).collect()
    }
}

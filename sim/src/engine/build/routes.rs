//! Shortest paths between switches over the links that are up, as host routes in the production tables.

use std::collections::VecDeque;

use npcc_pipeline::route::nexthop::{Adjacency, Kind, UNTAGGED};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::units::PortId;

use super::{BuildError, IpAddr, PortPlan, address, port_mac};
use crate::engine::Engine;
use crate::num::small;

impl Engine {
    /// By switch: the port toward each host; `None` where there is no way.
    fn toward(&self, homes: &[(u32, u8)]) -> Vec<Vec<Option<u8>>> {
        let usable = |backup: bool| {
            let trunks = self
                .trunks
                .iter()
                .filter(move |trunk| trunk.backup == backup);
            trunks.filter(|trunk| trunk.links.iter().all(|link| self.links[*link].is_up()))
        };
        // A backup carries nothing while anything else does.
        let backup = usable(false).next().is_none();
        let trunks: Vec<_> = usable(backup).collect();
        (0..self.switches.len())
            .map(|from| {
                let mut first: Vec<Option<u8>> = vec![None; self.switches.len()];
                let mut seen = vec![false; self.switches.len()];
                let mut open = VecDeque::from([(from, None)]);
                seen[from] = true;
                while let Some((at, by)) = open.pop_front() {
                    for trunk in &trunks {
                        for [here, there] in [trunk.ends, [trunk.ends[1], trunk.ends[0]]] {
                            let next = there.0 as usize;
                            if here.0 as usize == at && !seen[next] {
                                seen[next] = true;
                                let by = by.or(Some(here.1));
                                first[next] = by;
                                open.push_back((next, by));
                            }
                        }
                    }
                }
                let port = |(home, port): &(u32, u8)| {
                    if *home as usize == from {
                        Some(*port)
                    } else {
                        first[*home as usize]
                    }
                };
                homes.iter().map(port).collect()
            })
            .collect()
    }

    /// Installs host routes everywhere.
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

    /// Notes which connections go through the reported queue.
    pub(super) fn find_crossing(&mut self, homes: &[(u32, u8)]) {
        let (switch, port) = self.watch;
        for flow in &mut self.flows {
            let mut at = homes[flow.src as usize].0;
            // No path is longer than there are switches.
            for _ in 0..self.switches.len() {
                let by = self.record.routes[at as usize][flow.dst as usize];
                flow.crosses |= (at, by) == (switch, port);
                let next = self.trunks.iter().flat_map(|trunk| {
                    [
                        (trunk.ends[0], trunk.ends[1]),
                        (trunk.ends[1], trunk.ends[0]),
                    ]
                });
                let next = next.into_iter().find(|(here, _)| *here == (at, by));
                match next {
                    Some((_, there)) => at = there.0,
                    None => break,
                }
            }
        }
    }

    /// Routes take the ways that are left after a failure.
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
                };
                let to = Prefix::host(IpAddr::V4(address(small(host as u64))));
                // The tables had room for this very route before.
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

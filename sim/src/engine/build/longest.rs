//! Longest paths through a port, from which an operator's thresholds follow.

use npcc_pipeline::units::Nanos;

use super::topology::{PortPlan, Topology};

/// Delays of the shortest paths between the switches of a topology.
#[derive(Debug)]
pub(super) struct Delays<'a> {
    topology: &'a Topology,
    /// Delay from one switch to another, on the shortest path; `None` where there is none.
    between: Vec<Vec<Option<u64>>>,
}

impl<'a> Delays<'a> {
    pub(super) fn of(topology: &'a Topology) -> Delays<'a> {
        let count = topology.ports.len();
        let mut between = vec![vec![None; count]; count];
        for (at, row) in between.iter_mut().enumerate() {
            row[at] = Some(0);
        }
        for trunk in &topology.trunks {
            let [(a, port), (b, _)] = trunk.ends;
            let delay = topology.ports[a as usize][usize::from(port)].delay.0;
            for (from, to) in [(a, b), (b, a)] {
                let known = &mut between[from as usize][to as usize];
                *known = Some(known.map_or(delay, |known: u64| known.min(delay)));
            }
        }
        for by in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let Some((first, second)) = between[from][by].zip(between[by][to]) else {
                        continue;
                    };
                    let known = &mut between[from][to];
                    *known = Some(known.map_or(first + second, |known| known.min(first + second)));
                }
            }
        }
        Delays { topology, between }
    }

    /// Returns the round trip of the longest shortest path from a host to another that leaves `switch` by `port`; of the longest of all
    /// where none does, as for a backup.
    pub(super) fn round_trip(&self, switch: u32, port: u8) -> Nanos {
        let plan = self.plan(switch, port);
        let beyond = self.peer(switch, port);
        let homes = &self.topology.homes;
        let pairs = || {
            let pair = |from: &'a (u32, u8)| homes.iter().map(move |to| (*from, *to));
            homes.iter().flat_map(pair).filter(|(from, to)| from != to)
        };
        let through = |(from, to): ((u32, u8), (u32, u8))| {
            let to_here = self.between[from.0 as usize][switch as usize]?;
            let on = match beyond {
                Some(peer) => {
                    let on = to_here + plan.delay.0 + self.between[peer as usize][to.0 as usize]?;
                    (Some(on) == self.between[from.0 as usize][to.0 as usize]).then_some(on)?
                }
                None if to == (switch, port) => to_here,
                None => return None,
            };
            Some(self.cable(from) + on + self.cable(to))
        };
        let any = |(from, to): ((u32, u8), (u32, u8))| {
            let between = self.between[from.0 as usize][to.0 as usize]?;
            Some(self.cable(from) + between + self.cable(to))
        };
        let longest = pairs().filter_map(through).max();
        let longest = longest.or_else(|| pairs().filter_map(any).max());
        Nanos(2 * longest.unwrap_or(0))
    }

    fn plan(&self, switch: u32, port: u8) -> PortPlan {
        self.topology.ports[switch as usize][usize::from(port)]
    }

    /// Returns the delay between a host and its switch.
    fn cable(&self, (switch, port): (u32, u8)) -> u64 {
        self.plan(switch, port).delay.0
    }

    /// Returns the switch at the other end of a port's link; `None` for a host.
    fn peer(&self, switch: u32, port: u8) -> Option<u32> {
        self.topology.trunks.iter().find_map(|trunk| {
            let [a, b] = trunk.ends;
            let other = [(a, b), (b, a)]
                .into_iter()
                .find(|(end, _)| *end == (switch, port));
            other.map(|(_, (peer, _))| peer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn a_queue_has_the_round_trip_of_its_longest_path() {
        let text = "
version: 1
name: paths
duration: 1ms
switches: [edge, mid, far]
hosts:
  - { name: tx, count: 2, switch: edge, cable: 1km }
  - { name: near, count: 1, switch: mid, cable: 2km }
  - { name: rx, count: 1, switch: far, cable: 0m }
links:
  - { name: dci, from: edge, to: mid, length: 10km }
  - { name: haul, from: mid, to: far, length: 100km }
  - { name: spare, from: edge, to: far, length: 300km, backup: true }
flows: [{ from: tx, to: rx }]
watch: dci
";
        let scenario = Scenario::parse("paths", text).unwrap();
        let topology = Topology::of(&scenario, &scenario.cases()[0]);
        let delays = Delays::of(&topology);
        let of = |name: &str| {
            let (switch, port) = topology.queue(&scenario, name);
            // 10 us for each km, there and back.
            delays.round_trip(switch, port).0 / 10_000
        };
        assert_eq!(of("dci"), 1 + 10 + 100);
        assert_eq!(of("haul"), 111);
        assert_eq!(
            of("near"),
            100 + 2,
            "toward a host: from the farthest other"
        );
        assert_eq!(of("tx"), 111, "the way back");
        assert_eq!(of("spare"), 111, "on no shortest path");
    }
}

//! The kernel's routes in the workers' table: [`npcc_linux`] decides the routes, [`RouteWriter`] stores them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use npcc_linux::fib::{Fib, Member, Refused};
use npcc_pipeline::counters::Counter;
use npcc_pipeline::route::buckets::BUCKETS;
use npcc_pipeline::route::nexthop::{Adjacency, NextHopGroupId};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteError, RouteWriter};

use npcc_engine::fault;

/// Interval between checks of the workers' progress: many turns of theirs.
const LOOK: Duration = Duration::from_micros(50);

/// Route table, written by the thread that follows the kernel.
#[derive(Debug)]
pub struct KernelFib {
    writer: RouteWriter,
    /// True once the switch comes down: workers that ended adopt no table any more.
    stop: Arc<AtomicBool>,
    /// Progress counter, which grows with every change: a million of them take a while.
    turns: Arc<Counter>,
}

impl KernelFib {
    /// Wraps an empty table; once `stop` is set it refuses changes.
    #[must_use]
    pub fn new(writer: RouteWriter, stop: Arc<AtomicBool>) -> KernelFib {
        KernelFib {
            writer,
            stop,
            turns: Arc::default(),
        }
    }

    /// Uses `turns` as the thread's progress counter.
    #[must_use]
    pub fn moving(self, turns: Arc<Counter>) -> KernelFib {
        KernelFib { turns, ..self }
    }

    /// Waits until every worker has adopted the last change; returns false if the switch stops.
    fn ready(&mut self) -> bool {
        while !self.writer.ready() {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Changes the table once the workers have adopted the last change.
    fn change<T>(
        &mut self,
        make: impl FnOnce(&mut RouteWriter) -> Result<T, RouteError>,
    ) -> Result<T, Refused> {
        self.turns.add(1);
        if !self.ready() {
            return Err(Refused("the switch is stopping".to_owned()));
        }
        make(&mut self.writer).map_err(|error| Refused(error.to_string()))
    }
}

impl Fib for KernelFib {
    fn make_group(&mut self, members: &[Member]) -> Result<NextHopGroupId, Refused> {
        self.change(|writer| writer.make_group(&shares(members)))
    }

    fn change_group(&mut self, group: NextHopGroupId, members: &[Member]) -> Result<(), Refused> {
        self.change(|writer| writer.change_group(group, &shares(members)))
    }

    fn remove_group(&mut self, group: NextHopGroupId) {
        self.writer.drop_group(group);
    }

    fn set_route(&mut self, prefix: Prefix, group: NextHopGroupId) -> Result<(), Refused> {
        self.change(|writer| writer.insert_by(prefix, group))
            .map_err(|Refused(why)| Refused(format!("route {prefix}: {why}")))
    }

    fn remove_route(&mut self, prefix: Prefix) {
        // Removing takes no room; the routes of a stopping switch do not matter.
        let _ = self.change(|writer| writer.remove(prefix));
    }

    fn commit(&mut self) {
        fault::waits("netlink-stuck");
        self.writer.commit();
    }
}

/// Returns the paths of a group, each repeated by its weight, and at most as many as there are buckets.
///
/// Weights whose sum is larger are scaled down, each to one share at least; members past the buckets get none.
fn shares(members: &[Member]) -> Vec<Adjacency> {
    let total: usize = members
        .iter()
        .map(|member| usize::from(member.weight.max(1)))
        .sum();
    let mut paths = Vec::with_capacity(total.min(BUCKETS));
    for member in members {
        let weight = usize::from(member.weight.max(1));
        let share = if total <= BUCKETS {
            weight
        } else {
            (weight * BUCKETS / total).max(1)
        };
        paths.extend(std::iter::repeat_n(member.adjacency, share));
    }
    paths.truncate(BUCKETS);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::route::fib::FibReader;
    use npcc_pipeline::route::nexthop::Kind;
    use npcc_pipeline::route::writer::RouteCapacity;
    use npcc_pipeline::units::PortId;

    fn member(port: u8, weight: u16) -> Member {
        Member {
            adjacency: Adjacency {
                port: PortId(port),
                ..Adjacency::unusable(Kind::Forward)
            },
            weight,
            gateway: None,
        }
    }

    fn fib(readers: usize) -> (KernelFib, Vec<FibReader>, Arc<AtomicBool>) {
        let capacity = RouteCapacity {
            ipv4_routes: 2,
            ipv6_routes: 2,
            adjacencies: 8,
            groups: 8,
        };
        let (writer, readers) = RouteWriter::new(capacity, readers);
        let stop = Arc::new(AtomicBool::new(false));
        (KernelFib::new(writer, Arc::clone(&stop)), readers, stop)
    }

    fn prefix(text: &str) -> Prefix {
        let (address, len) = text.split_once('/').unwrap();
        Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
    }

    #[test]
    fn weights_are_shares_of_the_buckets() {
        let count = |members: &[Member], port| {
            let paths = shares(members);
            assert!(paths.len() <= BUCKETS, "{}", paths.len());
            paths.iter().filter(|path| path.port.0 == port).count()
        };
        let three_to_one = [member(1, 3), member(2, 1)];
        assert_eq!((count(&three_to_one, 1), count(&three_to_one, 2)), (3, 1));
        let large = [member(1, 256), member(2, 128)];
        assert_eq!((count(&large, 1), count(&large, 2)), (85, 42));
        let tiny = [member(1, 65_535), member(2, 1)];
        assert_eq!((count(&tiny, 1), count(&tiny, 2)), (127, 1));
        let equal: Vec<Member> = (0..200).map(|port| member(port, 1)).collect();
        assert_eq!(shares(&equal).len(), BUCKETS);
    }

    #[test]
    fn what_there_is_no_room_for_is_refused_by_its_prefix() {
        let (mut fib, mut readers, _) = fib(1);
        let group = fib.make_group(&[member(1, 1)]).unwrap();
        fib.set_route(prefix("10.1.0.0/16"), group).unwrap();
        fib.set_route(prefix("10.2.0.0/16"), group).unwrap();
        let Refused(why) = fib.set_route(prefix("10.3.0.0/16"), group).unwrap_err();
        assert!(
            why.contains("10.3.0.0/16") && why.contains("ipv4_routes"),
            "{why}"
        );
        fib.commit();
        readers[0].refresh();
        fib.remove_route(prefix("10.1.0.0/16"));
        fib.set_route(prefix("10.3.0.0/16"), group).unwrap();
        fib.commit();
        readers[0].refresh();
        let port = |text: &str| readers[0].paths(text.parse().unwrap()).next().unwrap().port;
        assert_eq!((port("10.3.0.1"), port("10.2.0.1")), (PortId(1), PortId(1)));
    }

    #[test]
    fn a_switch_that_stops_keeps_nobody_waiting() {
        let (mut fib, _readers, stop) = fib(1);
        fib.make_group(&[member(1, 1)]).unwrap();
        fib.commit();
        stop.store(true, Ordering::Relaxed);
        // The reader never adopts the change.
        assert!(fib.make_group(&[member(2, 1)]).is_err());
        fib.remove_route(prefix("10.1.0.0/16"));
    }
}

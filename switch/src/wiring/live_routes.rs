//! Routes of a running switch: the writer, and the table last written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::route::nexthop::Adjacency;
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteError, RouteWriter};

/// Every prefix with its paths.
pub type Table = BTreeMap<Prefix, Vec<Adjacency>>;

/// Table last written, for reports.
pub type SharedTable = Arc<Mutex<Arc<Table>>>;

/// Longest time for the workers to pass from the old table to the new: many turns.
const PATIENCE: Duration = Duration::from_secs(1);

/// Refusal of a route; the table is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("route {prefix}: {source}")]
pub struct RouteRefused {
    prefix: Prefix,
    #[source]
    source: RouteError,
}

/// Route writer with a copy of the table it last wrote.
#[derive(Debug)]
pub struct LiveRoutes {
    writer: RouteWriter,
    table: Arc<Table>,
    shown: SharedTable,
}

impl LiveRoutes {
    /// Wraps a new table.
    #[must_use]
    pub fn new(writer: RouteWriter) -> LiveRoutes {
        LiveRoutes {
            writer,
            table: Arc::default(),
            shown: Arc::default(),
        }
    }

    /// Returns the table last written, for reports.
    #[must_use]
    pub fn shared(&self) -> SharedTable {
        Arc::clone(&self.shown)
    }

    /// Returns the set of ports that readers pass over; any thread may change it.
    #[must_use]
    pub fn down_ports(&self) -> Arc<DownPorts> {
        self.writer.down_ports()
    }

    /// Changes the table to `wanted` in one change that readers see as a whole; returns the number of prefixes added, changed or removed.
    ///
    /// # Errors
    /// Fails with the first route that was refused.
    pub fn become_of(&mut self, wanted: Table) -> Result<usize, RouteRefused> {
        let gone: Vec<Prefix> = self
            .table
            .keys()
            .filter(|prefix| !wanted.contains_key(prefix))
            .copied()
            .collect();
        let changed = wanted
            .iter()
            .filter(|(prefix, paths)| self.table.get(prefix) != Some(paths));
        let changed: Vec<Prefix> = changed.map(|(prefix, _)| *prefix).collect();
        self.wait();
        let touched: Vec<Prefix> = gone.iter().chain(&changed).copied().collect();
        let done = self.put(&gone, &changed, &wanted);
        // If old and new routes do not fit side by side, the old ones go first. Changes are visible only after the commit below, so readers
        // see neither that nor what is taken back.
        let done = done.or_else(|_| self.put(&touched, &changed, &wanted));
        let result = match done {
            Ok(()) => {
                self.table = Arc::new(wanted);
                let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
                *shown = Arc::clone(&self.table);
                Ok(touched.len())
            }
            Err(refused) => {
                let table = Arc::clone(&self.table);
                let undone = self.put(&touched, &touched, &table);
                Err(undone.err().unwrap_or(refused))
            }
        };
        self.writer.commit();
        result
    }

    /// Removes the prefixes that are `gone`, and inserts the `changed` ones with their paths in `table`, if it has them.
    fn put(
        &mut self,
        gone: &[Prefix],
        changed: &[Prefix],
        table: &Table,
    ) -> Result<(), RouteRefused> {
        for prefix in gone {
            let removed = self.writer.remove(*prefix);
            removed.map_err(|source| RouteRefused {
                prefix: *prefix,
                source,
            })?;
        }
        for (prefix, paths) in changed
            .iter()
            .filter_map(|prefix| table.get_key_value(prefix))
        {
            let inserted = self.writer.insert(*prefix, paths);
            inserted.map_err(|source| RouteRefused {
                prefix: *prefix,
                source,
            })?;
        }
        Ok(())
    }

    /// Waits until every reader has adopted the last change, at most [`PATIENCE`].
    fn wait(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.writer.ready() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::route::nexthop::Kind;
    use npcc_pipeline::route::writer::RouteCapacity;
    use npcc_pipeline::units::PortId;

    fn table(routes: &[(&str, u8)]) -> Table {
        let route = |(text, port): &(&str, u8)| {
            let (address, len) = text.split_once('/').unwrap();
            let prefix = Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap();
            let path = Adjacency {
                port: PortId(*port),
                ..Adjacency::unusable(Kind::Local)
            };
            (prefix, vec![path])
        };
        routes.iter().map(route).collect()
    }

    #[test]
    fn only_what_differs_is_touched_and_readers_see_all_of_it() {
        let capacity = RouteCapacity {
            ipv4_routes: 3,
            ipv6_routes: 4,
            adjacencies: 3,
            groups: 3,
        };
        let (writer, mut readers) = RouteWriter::new(capacity, 1);
        let mut reader = readers.remove(0);
        let mut live = LiveRoutes::new(writer);
        let first = table(&[("10.0.1.0/24", 1), ("10.0.2.0/24", 2), ("0.0.0.0/0", 3)]);
        assert_eq!(live.become_of(first.clone()), Ok(3));
        reader.refresh();
        assert_eq!(live.become_of(first), Ok(0));
        let second = table(&[("10.0.1.0/24", 1), ("10.0.2.0/24", 5), ("10.0.3.0/24", 4)]);
        assert_eq!(live.become_of(second), Ok(3));
        reader.refresh();
        let at = |text: &str| {
            let path = reader.paths(text.parse().unwrap()).next().unwrap();
            (path.kind, path.port.0)
        };
        assert_eq!(at("10.0.1.1"), (Kind::Local, 1));
        assert_eq!(at("10.0.2.1"), (Kind::Local, 5));
        assert_eq!(at("10.0.3.1"), (Kind::Local, 4));
        assert_eq!(at("192.0.2.1").0, Kind::NoRoute);
        let other = table(&[("10.0.1.0/24", 6), ("10.0.2.0/24", 7), ("10.0.3.0/24", 8)]);
        assert_eq!(live.become_of(other), Ok(3), "next hops for three only");
        reader.refresh();
        let many = table(&[
            ("10.1.0.0/24", 1),
            ("10.2.0.0/24", 1),
            ("10.3.0.0/24", 1),
            ("10.4.0.0/24", 1),
        ]);
        let error = live.become_of(many).unwrap_err().to_string();
        assert!(
            error.contains("10.4.0.0/24") && error.contains("3 routes"),
            "{error}"
        );
        reader.refresh();
        let paths = reader.paths("10.0.2.1".parse().unwrap());
        assert_eq!(paths.map(|path| path.port.0).next(), Some(7), "as before");
    }
}

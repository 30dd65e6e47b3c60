//! Routes and neighbours, of the switch and of the kernel.

use std::io;
use std::net::IpAddr;

use npcc_api::query::{End, Query};
use npcc_api::routes::{Linux, Neighbor, NextHop, Route};
use npcc_config::ipnet::IpNet;
use npcc_linux::fib::Member;
use npcc_linux::netlink::handle::{Handle, NeighborRow, RouteRow};
use npcc_pipeline::counters::Path;
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;

use super::View;
use crate::manage::rows::{Unanswered, page};
use crate::report::routes;

/// Returns the error for a kernel that is no longer followed.
fn gone() -> Unanswered {
    Unanswered::Refused("the kernel is not followed any more: restart the switch".to_owned())
}

/// Returns true if a prefix contains, or lies in, the requested one.
fn touches(prefix: Prefix, requested: Option<IpNet>) -> bool {
    let Some(requested) = requested else {
        return true;
    };
    let Some(requested) = Prefix::new(requested.addr(), requested.prefix_len()) else {
        return false;
    };
    let len = prefix.len().min(requested.len());
    prefix.covering(len) == requested.covering(len)
}

impl View {
    fn handle(&self) -> Option<&Handle> {
        self.linux.as_ref().map(|linux| &linux.kernel)
    }

    /// Returns the status of the thread that follows the kernel. Its counts continue those of the previous process.
    #[must_use]
    pub fn linux(&self) -> Linux {
        let status = self.handle().map(Handle::status);
        let mut linux = status.map_or_else(Linux::default, |status| routes::linux(&status));
        let mut settle = self.settles();
        linux.each_count(|name, count| settle(Path::ROOT.then("netlink").then(name), count));
        Linux {
            version: self.version.clone(),
            namespace: self
                .linux
                .as_ref()
                .and_then(|linux| linux.namespace.clone()),
            draining_s: self.draining().map(|since| since.as_secs()),
            ..linux
        }
    }

    /// Passes the routes that match the query to `give`, in the order of prefixes.
    pub(in crate::manage) fn each_route(
        &self,
        query: &Query,
        give: &mut dyn FnMut(&Route) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        let requested = query.hosts().map_err(Unanswered::Refused)?;
        let shown = |row: &Route| {
            let wanted = query.port.as_ref();
            wanted.is_none_or(|port| row.next_hops.iter().any(|hop| hop.port == *port))
        };
        let Some(kernel) = self.handle() else {
            if query.diff {
                let why = "the routes are the file's: linux.integrate is false".to_owned();
                return Err(Unanswered::Refused(why));
            }
            let hop = |path: &Adjacency| NextHop::of(path, &self.port_name(path.port));
            let row = |(prefix, paths): (&Prefix, &Vec<Adjacency>)| Route {
                prefix: prefix.to_string(),
                state: "installed".to_owned(),
                next_hops: paths.iter().map(hop).collect(),
                ..Route::default()
            };
            let table = self.file_routes();
            let requested = table
                .iter()
                .filter(|(prefix, _)| touches(**prefix, requested));
            return page(
                query,
                requested.filter(|route| query.port.is_none() || shown(&row(*route))),
                row,
                give,
            );
        };
        if query.diff {
            return self.each_difference(kernel, query, give);
        }
        let hop = |member: &Member| routes::member(member, &self.port_name(member.adjacency.port));
        let row = |row: &RouteRow| Route {
            prefix: row.prefix.to_string(),
            state: routes::state(row.installed).to_owned(),
            reason: row.reason.clone(),
            next_hops: row.members.iter().map(hop).collect(),
            protocol: row.origin.map(|(number, _)| routes::protocol(number)),
            metric: row.origin.map(|(_, metric)| metric),
        };
        let all = kernel.routes().ok_or_else(gone)?;
        let requested = all.iter().filter(|row| touches(row.prefix, requested));
        page(
            query,
            requested.filter(|route| query.port.is_none() || shown(&row(route))),
            row,
            give,
        )
    }

    /// Compares the switch's routes with the kernel's now, and passes the differences to `give`.
    fn each_difference(
        &self,
        kernel: &Handle,
        query: &Query,
        give: &mut dyn FnMut(&Route) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        let report = kernel.compare().ok_or_else(gone)?;
        let wrong = kernel.verify().ok_or_else(gone)?;
        let mended = report.examples.into_iter().filter(|_| report.settled);
        let mended = mended.chain(report.set_back);
        let mended = mended.map(|example| (example, "mended"));
        let lookups = kernel.look_up().ok_or_else(gone)?.into_iter();
        let lookups = lookups.map(|one| (one.destination.to_string(), "differs", Some(one.words)));
        let mended = mended.map(|(example, state)| (example, state, None));
        let wrong = wrong
            .iter()
            .map(|prefix| (prefix.to_string(), "differs", None));
        let row = |(prefix, state, reason): (String, &str, Option<String>)| Route {
            prefix,
            state: state.to_owned(),
            reason,
            ..Route::default()
        };
        page(query, mended.chain(wrong).chain(lookups), row, give)
    }

    /// Passes the neighbours that match the query to `give`, in the order of addresses: the kernel's, or the file's where Linux is not
    /// integrated.
    pub(in crate::manage) fn each_neighbor(
        &self,
        query: &Query,
        give: &mut dyn FnMut(&Neighbor) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        let requested = query.hosts().map_err(Unanswered::Refused)?;
        let wanted = |address: IpAddr| requested.is_none_or(|net| net.contains(&address));
        let port = |row: &Neighbor| query.port.as_ref().is_none_or(|port| row.port == *port);
        let Some(kernel) = self.handle() else {
            let table = self.file_routes();
            let hosts = table.iter().filter_map(|(prefix, paths)| {
                let address = prefix.first();
                let path = paths.first().filter(|path| path.kind == Kind::Forward)?;
                (*prefix == Prefix::host(address) && wanted(address)).then(|| Neighbor {
                    address: address.to_string(),
                    port: self.port_name(path.port),
                    vlan: path.vlan,
                    mac: Some(path.dst.to_string()),
                    state: "static".to_owned(),
                    kept: false,
                    age_s: None,
                    moves: 0,
                    refused: None,
                })
            });
            return page(query, hosts.filter(port), |row| row, give);
        };
        let mut all = kernel.neighbors().ok_or_else(gone)?;
        all.sort_by_key(|one| (one.neighbor.address, one.place.port, one.place.vlan));
        let row = |one: &NeighborRow| Neighbor {
            address: one.neighbor.address.to_string(),
            port: self.port_name(one.place.port),
            vlan: one.place.vlan,
            mac: one.neighbor.mac.map(|mac| mac.to_string()),
            state: routes::neighbor_state(one.neighbor.state).to_owned(),
            kept: one.neighbor.managed,
            age_s: one.age.map(|age| age.as_secs()),
            moves: one.moves,
            refused: one.refused.map(|why| why.name().to_owned()),
        };
        let rows = all.iter().filter(|one| wanted(one.neighbor.address));
        page(query, rows.map(row).filter(port), |row| row, give)
    }
}

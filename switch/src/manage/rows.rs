//! Tables of `show` that are streamed row by row, so that they are never held as a whole: flows, hosts, routes, neighbours and the log.
//!
//! The answer is a line of JSON for each row and one for its end. To add a table: an implementation of [`Rows`] and a line in
//! `tables::ALL`.

use std::io::{self, Write};

use npcc_api::model::{Flow, Host, LogLine};
use npcc_api::query::{End, Query};
use npcc_api::routes::{Neighbor, Route};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::view::View;
use crate::report::npcc_table;
use crate::report::routes;

/// Table that is streamed row by row.
pub(super) trait Rows {
    /// Name of the table: `show NAME`.
    const NAME: &'static str;
    /// Description for the help.
    const ABOUT: &'static str;
    /// Type of a row.
    type Row: Serialize + DeserializeOwned;

    /// Passes the requested rows to `give`, one after the other.
    fn each(
        view: &View,
        query: &Query,
        give: &mut dyn FnMut(&Self::Row) -> io::Result<()>,
    ) -> Result<End, Unanswered>;

    /// Sorts rows for people and scripts, where all are shown.
    fn order(rows: &mut [Self::Row]);

    /// Formats rows for people.
    fn text(rows: &[Self::Row]) -> String;
}

/// Reason why rows are missing.
#[derive(Debug, derive_more::From)]
pub(super) enum Unanswered {
    /// The query is wrong, as the text says.
    Refused(String),
    /// The client went away or was too slow.
    #[from]
    Gone(io::Error),
}

/// Passes the requested page of a sorted sequence to `give`; only things on that page are made into rows.
pub(super) fn page<T, R>(
    query: &Query,
    things: impl Iterator<Item = T>,
    row: impl Fn(T) -> R,
    give: &mut dyn FnMut(&R) -> io::Result<()>,
) -> Result<End, Unanswered> {
    let top = query.top.unwrap_or(usize::MAX);
    let first = top.saturating_mul(query.page.unwrap_or(1).max(1) - 1);
    let mut matched = 0;
    for (place, thing) in things.enumerate() {
        matched += 1;
        if place >= first && place - first < top {
            give(&row(thing))?;
        }
    }
    Ok(End {
        matched,
        next: None,
    })
}

/// Line of an answer, as written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Written<'a, R> {
    Row(&'a R),
    End(End),
    Error(String),
}

fn line<R: Serialize>(out: &mut dyn Write, line: &Written<'_, R>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// Writes the requested rows of `R`, and the line that ends them.
pub(super) fn answer<R: Rows>(view: &View, query: &Query, out: &mut dyn Write) -> io::Result<()> {
    let mut give = |row: &R::Row| line(out, &Written::Row(row));
    let ended = R::each(view, query, &mut give);
    let last: Written<'_, ()> = match ended {
        Ok(end) => Written::End(end),
        Err(Unanswered::Refused(why)) => Written::Error(why),
        Err(Unanswered::Gone(error)) => return Err(error),
    };
    line(out, &last)
}

/// Formats rows: a table for people, or a list for scripts. With `sort` they are sorted first.
pub(super) fn read<R: Rows>(
    rows: Vec<Value>,
    sort: bool,
    as_json: bool,
) -> serde_json::Result<String> {
    let rows: serde_json::Result<Vec<R::Row>> =
        rows.into_iter().map(serde_json::from_value).collect();
    let mut rows = rows?;
    if sort {
        R::order(&mut rows);
    }
    if as_json {
        return Ok(serde_json::to_string_pretty(&rows)? + "\n");
    }
    Ok(R::text(&rows))
}

pub(super) enum Flows {}

impl Rows for Flows {
    const NAME: &'static str = "flows";
    const ABOUT: &'static str = "RoCEv2 flows: QPNs, evidence, bytes, CNPs";
    type Row = Flow;

    fn each(
        view: &View,
        query: &Query,
        give: &mut dyn FnMut(&Flow) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        view.each_flow(query, give)
    }

    fn order(rows: &mut [Flow]) {
        rows.sort_by(|a, b| {
            b.bytes
                .cmp(&a.bytes)
                .then_with(|| (&a.src, a.dest_qp).cmp(&(&b.src, b.dest_qp)))
        });
    }

    fn text(rows: &[Flow]) -> String {
        npcc_table::flows(rows)
    }
}

pub(super) enum Hosts {}

impl Rows for Hosts {
    const NAME: &'static str = "hosts";
    const ABOUT: &'static str = "By host: what becomes of its CNPs, what they did, NAKs and CE";
    type Row = Host;

    fn each(
        view: &View,
        query: &Query,
        give: &mut dyn FnMut(&Host) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        view.each_host(query, give)
    }

    fn order(rows: &mut [Host]) {
        rows.sort_by(|a, b| {
            (b.cnps_sent, b.would_send)
                .cmp(&(a.cnps_sent, a.would_send))
                .then_with(|| a.address.cmp(&b.address))
        });
    }

    fn text(rows: &[Host]) -> String {
        npcc_table::hosts(rows)
    }
}

pub(super) enum Routes {}

impl Rows for Routes {
    const NAME: &'static str = "routes";
    const ABOUT: &'static str = "Routes and their next hops; --diff: against the kernel's, now";
    type Row = Route;

    fn each(
        view: &View,
        query: &Query,
        give: &mut dyn FnMut(&Route) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        view.each_route(query, give)
    }

    fn order(_: &mut [Route]) {
        // The rows come in order.
    }

    fn text(rows: &[Route]) -> String {
        routes::routes(rows)
    }
}

pub(super) enum Neighbors {}

impl Rows for Neighbors {
    const NAME: &'static str = "neighbors";
    const ABOUT: &'static str =
        "Neighbours of the kernel behind our ports, and their MAC addresses";
    type Row = Neighbor;

    fn each(
        view: &View,
        query: &Query,
        give: &mut dyn FnMut(&Neighbor) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        view.each_neighbor(query, give)
    }

    fn order(_: &mut [Neighbor]) {
        // The rows come in order.
    }

    fn text(rows: &[Neighbor]) -> String {
        routes::neighbors(rows)
    }
}

pub(super) enum Log {}

impl Rows for Log {
    const NAME: &'static str = "log";
    const ABOUT: &'static str =
        "The latest CNPs and why each was sent, refusals, events and changes";
    type Row = LogLine;

    fn each(
        view: &View,
        query: &Query,
        give: &mut dyn FnMut(&LogLine) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        view.each_log_line(query, give)
    }

    fn order(_: &mut [LogLine]) {
        // The rows come in order.
    }

    fn text(rows: &[LogLine]) -> String {
        rows.iter().map(|line| format!("{}\n", line.text)).collect()
    }
}

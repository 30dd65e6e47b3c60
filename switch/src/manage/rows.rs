//! Tables of `show` that are streamed row by row, so that they are never held as a whole: flows, hosts, routes, neighbours and the log.
//!
//! The answer is a line of JSON for each row and one for its end. To add a table: an implementation of [`Rows`], and a line in
//! `tables::ALL` and in the operations of `npcc-api`.

use std::io::{self, Write};

use npcc_api::model::{Flow, Host, LogLine};
use npcc_api::query::{End, Query};
use npcc_api::routes::{Neighbor, Route};
use npcc_api::rows::RowLine;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::view::View;
use crate::report::npcc_table;
use crate::report::routes;

/// Table that is streamed row by row.
pub(super) trait Rows {
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

/// Writes the requested rows of `R`, and the line that ends them.
pub(super) fn write<R: Rows>(
    view: &View,
    query: &Query,
    out: &mut dyn Write,
) -> Result<(), Unanswered> {
    let mut line = |line: &RowLine<&R::Row>| -> io::Result<()> {
        serde_json::to_writer(&mut *out, line)?;
        out.write_all(b"\n")
    };
    let end = R::each(view, query, &mut |row| line(&RowLine::Row(row)))?;
    Ok(line(&RowLine::End(end))?)
}

/// Returns the requested rows of `R` as JSON.
pub(super) fn json<R: Rows>(view: &View, query: &Query) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    let ended = R::each(view, query, &mut |row| {
        rows.push(serde_json::to_value(row)?);
        Ok(())
    });
    match ended {
        Ok(_) => Ok(read::<R>(rows, query.top.is_none(), true)?),
        Err(Unanswered::Refused(why)) => Err(anyhow::anyhow!(why)),
        Err(Unanswered::Gone(error)) => Err(error.into()),
    }
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

//! The tables of `show`: each has a name, the data that the switch collects, and its formats for people and scripts.
//!
//! To add a table: a line in [`ALL`], and one in the operations of `npcc-api`. The router, the command line, its help and the tests follow.

use std::io::Write;

use npcc_api::audit::Changes;
use npcc_api::lossless::{BufferTable, PortBuffer};
use npcc_api::model::{Snapshot, Versioned};
use npcc_api::operations;
use npcc_api::protocol::{OTHER_ANSWER, Reply, Request};
use npcc_api::query::Query;
use serde::Serialize;
use serde_json::Value;

use super::ends::peers;
use super::pending::Pending;
use super::rows::{self, Rows, Unanswered};
use super::view::View;
use crate::report::{self, dcbx, lossless_table, npcc_table, ports_table, punt_table, workers};

/// Table as the interface and the command line know it.
#[derive(Debug)]
pub struct Entry {
    /// Name of the table: `show NAME`.
    pub name: &'static str,
    how: How,
}

/// Transfer and format of a table.
#[derive(Debug)]
enum How {
    /// Transferred as a whole: collected by the switch as JSON; formatted from the snapshot, or from that JSON.
    Whole {
        data: fn(&View, Option<u32>) -> serde_json::Result<Value>,
        json: fn(&View) -> serde_json::Result<String>,
        /// True if the command line formats the snapshot.
        of_snapshot: bool,
        read: fn(Reply, bool) -> anyhow::Result<String>,
    },
    /// Streamed row by row.
    Rows {
        write: fn(&View, &Query, &mut dyn Write) -> Result<(), Unanswered>,
        json: fn(&View, &Query) -> anyhow::Result<String>,
        read: fn(Vec<Value>, bool, bool) -> serde_json::Result<String>,
    },
}

impl Entry {
    const fn rows<R: Rows>(name: &'static str) -> Entry {
        Entry {
            name,
            how: How::Rows {
                write: rows::write::<R>,
                json: rows::json::<R>,
                read: rows::read::<R>,
            },
        }
    }

    /// Returns the description for the help.
    #[must_use]
    pub fn about(&self) -> &'static str {
        operations::table(self.name).map_or("", |one| one.about)
    }

    /// Returns true if the table is streamed row by row.
    #[must_use]
    pub const fn has_rows(&self) -> bool {
        matches!(self.how, How::Rows { .. })
    }

    /// Returns the table as a user gets it, or nobody in particular; `None` if it is streamed row by row.
    ///
    /// # Errors
    /// Fails if the data cannot be encoded.
    pub fn data(&self, view: &View, user: Option<u32>) -> Option<serde_json::Result<Value>> {
        match self.how {
            How::Whole { data, .. } => Some(data(view, user)),
            How::Rows { .. } => None,
        }
    }

    /// Returns the output of `show NAME --json` at this moment, with the requested rows.
    ///
    /// # Errors
    /// Says what is wrong with the query.
    pub fn json(&self, view: &View, query: &Query) -> anyhow::Result<String> {
        match self.how {
            How::Whole { json, .. } => Ok(json(view)?),
            How::Rows { json, .. } => json(view, query),
        }
    }

    /// Returns the request whose reply [`Entry::read`] formats.
    #[must_use]
    pub fn request(&self) -> Request {
        match self.how {
            How::Whole {
                of_snapshot: true, ..
            } => Request::Snapshot,
            _ => Request::Show {
                table: self.name.to_owned(),
            },
        }
    }

    /// Formats the switch's reply, if the table comes as a whole.
    ///
    /// # Errors
    /// Fails if the reply is a refusal or of another kind.
    pub fn read(&self, reply: Reply, as_json: bool) -> anyhow::Result<String> {
        match self.how {
            How::Whole { read, .. } => read(reply, as_json),
            How::Rows { .. } => Err(reply.unexpected()),
        }
    }

    /// Formats rows; `sort` sorts them first.
    ///
    /// # Errors
    /// Fails if the rows are of another kind.
    pub fn read_rows(&self, rows: Vec<Value>, sort: bool, as_json: bool) -> anyhow::Result<String> {
        match self.how {
            How::Rows { read, .. } => {
                read(rows, sort, as_json).map_err(|_| anyhow::anyhow!(OTHER_ANSWER))
            }
            How::Whole { .. } => Err(anyhow::anyhow!(OTHER_ANSWER)),
        }
    }
}

/// Writes the requested rows of a table.
pub(super) fn write_rows(
    name: &str,
    view: &View,
    query: &Query,
    out: &mut dyn Write,
) -> Result<(), Unanswered> {
    match named(name).map(|table| &table.how) {
        Some(How::Rows { write, .. }) => write(view, query, out),
        _ => {
            let why = format!("there is no table `{name}` that comes row by row");
            Err(Unanswered::Refused(why))
        }
    }
}

fn pretty(data: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(data)? + "\n")
}

/// Declares a table that comes as a whole: name, data collected by the switch, text for people, JSON for scripts.
macro_rules! whole {
    ($name:literal, $collect:expr, $text:expr) => {
        Entry {
            name: $name,
            how: How::Whole {
                data: |view, _| serde_json::to_value($collect(view)),
                json: |view| pretty(&$collect(view)),
                of_snapshot: false,
                read: |reply, as_json| {
                    let Reply::Table(data) = reply else {
                        return Err(reply.unexpected());
                    };
                    let data =
                        serde_json::from_value(data).map_err(|_| anyhow::anyhow!(OTHER_ANSWER))?;
                    if as_json {
                        return Ok(pretty(&data)?);
                    }
                    Ok($text(&data))
                },
            },
        }
    };
}

/// Declares a table that is read from the snapshot: name, text for people, JSON for scripts.
macro_rules! of_the_snapshot {
    ($name:literal, $text:expr, |$all:ident| $json:expr) => {
        Entry {
            name: $name,
            how: How::Whole {
                data: |view, user| {
                    let $all = &view.shown_to(user);
                    serde_json::to_value($json)
                },
                json: |view| {
                    let $all = &view.shown_to(None);
                    pretty($json)
                },
                of_snapshot: true,
                read: |reply, as_json| {
                    let Reply::Snapshot($all) = reply else {
                        return Err(reply.unexpected());
                    };
                    let $all: &Snapshot = &$all;
                    if as_json {
                        return Ok(pretty($json)?);
                    }
                    Ok($text($all))
                },
            },
        }
    };
}

/// All tables, in the order of the help; one line declares a table.
#[rustfmt::skip]
pub static ALL: &[Entry] = &[
    of_the_snapshot!("ports", ports_table::ports, |all| &all.ports),
    of_the_snapshot!("workers", workers::shown, |all| &all.workers),
    of_the_snapshot!("queues", ports_table::queues, |all| &all.ports),
    Entry::rows::<rows::Flows>("flows"),
    Entry::rows::<rows::Hosts>("hosts"),
    Entry::rows::<rows::Log>("log"),
    whole!("audit", changes, changes_text),
    of_the_snapshot!("pfc", lossless_table::pfc, |all| &all.ports),
    of_the_snapshot!("buffer", lossless_table::buffer, |all| &versioned(all, held(all))),
    of_the_snapshot!("punt", punt_table::of_snapshot, |all| &versioned(all, &all.punt)),
    whole!("linux", View::linux, report::routes::linux_text),
    Entry::rows::<rows::Routes>("routes"),
    Entry::rows::<rows::Neighbors>("neighbors"),
    of_the_snapshot!("qos", lossless_table::qos, |all| &versioned(all, &all.qos)),
    of_the_snapshot!("dcbx", dcbx::shown, |all| &versioned(all, dcbx::of_snapshot(all))),
    whole!("peers", peers::shown, report::ends::peers),
    of_the_snapshot!("npcc", npcc_table::npcc, |all| &versioned(all, &all.npcc)),
];

/// Returns the table of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|table| table.name == name)
}

fn versioned<T>(all: &Snapshot, data: T) -> Versioned<T> {
    let version = all.version.clone();
    Versioned { version, data }
}

fn changes(view: &View) -> Changes {
    Changes {
        version: view.version.clone(),
        pending: view.pending_reload().map(Pending::shown),
        changes: view.journal().changes(),
    }
}

fn changes_text(of: &Changes) -> String {
    let lines = of.changes.iter().map(|entry| format!("{entry:#}\n"));
    let pending = of.pending.iter().map(|pending| {
        format!(
            "a reload waits for its commit: rolled back in {} s\n",
            pending.seconds_left
        )
    });
    lines.chain(pending).collect()
}

fn held(all: &Snapshot) -> BufferTable {
    let ports = all.ports.iter().map(|port| PortBuffer {
        name: port.name.clone(),
        lossless_lost: port.lossless_lost,
        groups: port.groups.clone(),
    });
    BufferTable {
        buffer: all.buffer,
        ports: ports.collect(),
    }
}

#[cfg(test)]
mod tests {
    use npcc_api::operations::Makes;

    use super::*;

    #[test]
    fn every_table_has_a_name_of_its_own_and_is_in_the_manual() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
        let pages = std::fs::read_dir(docs)
            .unwrap()
            .map(|page| page.unwrap().path());
        let pages = pages.filter(|page| page.is_file());
        let manual: String = pages
            .map(|page| std::fs::read_to_string(page).unwrap())
            .collect();
        for (at, table) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.name != table.name));
            let makes = operations::table(table.name).unwrap().makes;
            assert_eq!(makes == Makes::Rows, table.has_rows(), "{}", table.name);
            assert!(
                manual.contains(&format!("`show {}`", table.name)),
                "{}",
                table.name
            );
        }
    }

    #[test]
    fn an_answer_of_another_kind_is_refused_and_the_right_one_is_read_both_ways() {
        let audit = named("audit").unwrap();
        let changes = Reply::Table(serde_json::json!({ "pending": null, "changes": [] }));
        assert_eq!(audit.read(changes.clone(), false).unwrap(), "");
        let json = audit.read(changes, true).unwrap();
        assert!(json.contains("\"changes\": []"), "{json}");
        assert!(audit.read(Reply::Done, true).is_err());
        let log = named("log").unwrap();
        let line = |text: &str| serde_json::json!({ "time_us": 1, "kind": "event", "text": text });
        let lines = || vec![line("one"), line("two")];
        assert_eq!(log.read_rows(lines(), true, false).unwrap(), "one\ntwo\n");
        let json = log.read_rows(lines(), true, true).unwrap();
        assert!(json.starts_with("[\n  {\n    \"time_us\": 1,"), "{json}");
        assert!(
            named("flows")
                .unwrap()
                .read_rows(lines(), true, false)
                .is_err()
        );
        assert!(named("marks").is_none());
    }
}

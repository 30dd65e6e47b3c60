//! The tables of `show`: each has a name, the data that the switch collects, and its formats for people and scripts.
//!
//! To add a table: a line in [`ALL`]. The protocol, the command line, its help and the tests follow.

use std::io::{self, Write};

use npcc_api::audit::Changes;
use npcc_api::lossless::{self, Group};
use npcc_api::model::Snapshot;
use npcc_api::peers::PeerTable;
use npcc_api::query::Query;
use npcc_api::routes::Linux;
use npcc_api::rows::RowLine;
use serde::Serialize;
use serde_json::Value;

use super::ends::peers;
use super::pending::Pending;
use super::rows::{self, Rows};
use super::view::View;
use crate::report::{self, dcbx, lossless_table, npcc_table, ports_table, punt_table, workers};

/// Table as the protocol and the command line know it.
#[derive(Debug)]
pub struct Entry {
    /// Name of the table: `show NAME`.
    pub name: &'static str,
    /// Description for the help.
    pub about: &'static str,
    how: How,
}

/// Transfer and format of a table.
#[derive(Debug)]
enum How {
    /// Transferred as a whole.
    Whole {
        collect: fn(&View, Option<u32>) -> serde_json::Result<Value>,
        read: fn(Value, bool) -> serde_json::Result<String>,
    },
    /// Streamed row by row.
    Rows {
        answer: fn(&View, &Query, &mut dyn Write) -> io::Result<()>,
        read: fn(Vec<Value>, bool, bool) -> serde_json::Result<String>,
    },
}

impl Entry {
    const fn rows<R: Rows>() -> Entry {
        Entry {
            name: R::NAME,
            about: R::ABOUT,
            how: How::Rows {
                answer: rows::answer::<R>,
                read: rows::read::<R>,
            },
        }
    }

    /// Returns true if the table is streamed row by row.
    #[must_use]
    pub const fn has_rows(&self) -> bool {
        matches!(self.how, How::Rows { .. })
    }

    /// Returns the switch's answer to a user, or to nobody in particular; `None` if the table is streamed row by row.
    ///
    /// # Errors
    /// Fails if the data cannot be encoded.
    pub fn collect(&self, view: &View, user: Option<u32>) -> Option<serde_json::Result<Value>> {
        match self.how {
            How::Whole { collect, .. } => Some(collect(view, user)),
            How::Rows { .. } => None,
        }
    }

    /// Writes the switch's answer; `None` if the table comes as a whole.
    ///
    /// # Errors
    /// Fails if the client goes away or is too slow.
    pub fn answer(
        &self,
        view: &View,
        query: &Query,
        out: &mut dyn Write,
    ) -> Option<io::Result<()>> {
        match self.how {
            How::Rows { answer, .. } => Some(answer(view, query, out)),
            How::Whole { .. } => None,
        }
    }

    /// Returns the output of `show NAME --json` at this moment, with the requested rows.
    ///
    /// # Errors
    /// Says what is wrong with the query.
    pub fn json(&self, view: &View, query: &Query) -> anyhow::Result<String> {
        if let Some(collected) = self.collect(view, None) {
            return Ok(self.read(collected?, true)?);
        }
        let mut lines = Vec::new();
        if let Some(written) = self.answer(view, query, &mut lines) {
            written?;
        }
        let mut rows = Vec::new();
        for line in serde_json::Deserializer::from_slice(&lines).into_iter() {
            match line? {
                RowLine::Row(row) => rows.push(row),
                RowLine::End(_) => break,
                RowLine::Error(why) => anyhow::bail!(why),
            }
        }
        Ok(self.read_rows(rows, query.top.is_none(), true)?)
    }

    /// Formats the switch's answer, if it comes as a whole.
    ///
    /// # Errors
    /// Fails if the answer is of another kind.
    pub fn read(&self, data: Value, as_json: bool) -> serde_json::Result<String> {
        match self.how {
            How::Whole { read, .. } => read(data, as_json),
            How::Rows { read, .. } => read(vec![data], false, as_json),
        }
    }

    /// Formats rows; `sort` sorts them first.
    ///
    /// # Errors
    /// Fails if the rows are of another kind.
    pub fn read_rows(
        &self,
        rows: Vec<Value>,
        sort: bool,
        as_json: bool,
    ) -> serde_json::Result<String> {
        match self.how {
            How::Rows { read, .. } => read(rows, sort, as_json),
            How::Whole { read, .. } => read(Value::Array(rows), as_json),
        }
    }
}

/// Declares a table that comes as a whole: name, description, data collected by the switch, text for people, JSON for scripts.
macro_rules! whole {
    ($name:literal, $about:literal, $collect:expr, $text:expr, |$data:ident: $Data:ty| $json:expr) => {
        Entry {
            name: $name,
            about: $about,
            how: How::Whole {
                collect: |view, user| serde_json::to_value($collect(view, user)),
                read: |data, as_json| {
                    let $data: &$Data = &serde_json::from_value(data)?;
                    if as_json {
                        return Ok(serde_json::to_string_pretty($json)? + "\n");
                    }
                    Ok($text($data))
                },
            },
        }
    };
}

/// Declares a table that is read from the snapshot.
macro_rules! of_the_snapshot {
    ($name:literal, $about:literal, $text:expr, |$all:ident| $json:expr) => {
        whole!($name, $about, View::shown_to, $text, |$all: Snapshot| $json)
    };
}

/// All tables, in the order of the help; one line declares a table.
#[rustfmt::skip]
pub static ALL: &[Entry] = &[
    of_the_snapshot!("ports", "Traffic, drops and link of each port", ports_table::ports, |all| &all.ports),
    of_the_snapshot!("workers", "Which worker has which ports, and what crosses between them", workers::shown, |all| &all.workers),
    of_the_snapshot!("queues", "Depth, peak, drops and marks of each egress queue", ports_table::queues, |all| &all.ports),
    Entry::rows::<rows::Flows>(),
    Entry::rows::<rows::Hosts>(),
    Entry::rows::<rows::Log>(),
    whole!("audit", "Who changed what, and a reload that waits for its commit", |view, _| changes(view), changes_text, |changes: Changes| changes),
    of_the_snapshot!("pfc", "Pause sent and obeyed, backends, storms", lossless_table::pfc, |all| &all.ports),
    of_the_snapshot!("buffer", "The shared buffer: groups, headroom, watermarks", lossless_table::buffer, |all| &Versioned::of(all, &Held::of(all))),
    of_the_snapshot!("punt", "What Linux was given by class, ICMP errors, and what it sent", punt_table::of_snapshot, |all| &Versioned::of(all, &all.punt)),
    whole!("linux", "How the kernel's routes are followed: prefixes, messages, comparisons", |view, _| View::linux(view), report::routes::linux_text, |linux: Linux| linux),
    Entry::rows::<rows::Routes>(),
    Entry::rows::<rows::Neighbors>(),
    of_the_snapshot!("qos", "Effective queues, maps and headroom", lossless_table::qos, |all| &Versioned::of(all, &all.qos)),
    of_the_snapshot!("dcbx", "PFC and RoCE's priority as commands for lldpcli, which announces them to hosts", dcbx::shown, |all| &Versioned::of(all, &dcbx::Dcbx::of_snapshot(all))),
    whole!("peers", "Boxes and hosts' agents that report ends: what they hold, what was refused, what came of it", |view, _| peers::shown(view), report::ends::peers, |peers: PeerTable| peers),
    of_the_snapshot!("npcc", "Watched queues: zone, trend, decisions, CNPs, reaction time", npcc_table::npcc, |all| &Versioned::of(all, &all.npcc)),
];

/// Returns the table of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|table| table.name == name)
}

/// JSON object of a table with the program's version first, as in `--stats-json`.
#[derive(Serialize)]
struct Versioned<'a, T> {
    version: &'a str,
    #[serde(flatten)]
    data: &'a T,
}

impl<'a, T> Versioned<'a, T> {
    const fn of(all: &'a Snapshot, data: &'a T) -> Versioned<'a, T> {
        let version = all.version.as_str();
        Versioned { version, data }
    }
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

/// Output of `show buffer --json`.
#[derive(Serialize)]
struct Held<'a> {
    buffer: lossless::Buffer,
    ports: Vec<HeldBy<'a>>,
}

impl Held<'_> {
    fn of(snapshot: &Snapshot) -> Held<'_> {
        let ports = snapshot.ports.iter().map(|port| HeldBy {
            name: &port.name,
            lossless_lost: port.lossless_lost,
            groups: &port.groups,
        });
        Held {
            buffer: snapshot.buffer,
            ports: ports.collect(),
        }
    }
}

#[derive(Serialize)]
struct HeldBy<'a> {
    name: &'a str,
    lossless_lost: u64,
    groups: &'a [Group],
}

#[cfg(test)]
mod tests {
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
        let changes = serde_json::json!({ "pending": null, "changes": [] });
        assert_eq!(audit.read(changes.clone(), false).unwrap(), "");
        assert!(
            audit
                .read(changes, true)
                .unwrap()
                .contains("\"changes\": []")
        );
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

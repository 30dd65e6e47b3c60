//! `npcc-switch show WHAT`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use npcc_api::client::blocking as client;
use npcc_api::protocol::{Reply, Request};
use npcc_api::query::Query;
use npcc_appliance::manage::tables::{self, Entry};

use super::args::{CONFIG, ENDS, ShowArgs};
use super::{Failure, change, say, say_coloured, terminal};

/// Rows printed at a time where they come as lines of JSON.
const LINES: usize = 1_000;

/// Filters that a table of rows takes.
fn takes(table: &str, filter: &str) -> bool {
    match table {
        "flows" => !matches!(filter, "--outcome" | "--diff"),
        "routes" => matches!(filter, "--host" | "--port" | "--diff"),
        "neighbors" => matches!(filter, "--host" | "--port"),
        "hosts" => filter == "--host",
        _ => !matches!(filter, "--cold" | "--told" | "--response" | "--diff"),
    }
}

fn checked(table: &Entry, query: &Query, lines: bool) -> Result<(), String> {
    let name = table.name;
    if !table.has_rows() && (query.top.is_some() || lines) {
        return Err(format!(
            "error: --top: the rows of `show {name}` are in no order; flows, hosts and log are"
        ));
    }
    for filter in query.filters() {
        if !table.has_rows() || !takes(name, filter) {
            return Err(format!("error: `show {name}` does not take {filter}"));
        }
    }
    query.hosts().map_err(|why| format!("error: {why}"))?;
    Ok(())
}

pub(super) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let name = &args.what;
    if name == ENDS {
        return super::ends::show(args);
    }
    if args.follow {
        let why = format!("error: `show {name}` does not take --follow");
        return Err(Failure::Config(why));
    }
    if name == CONFIG {
        return config(args);
    }
    let table = tables::named(name)
        .ok_or_else(|| Failure::Config(format!("error: there is no table `{name}`")))?;
    let query = args.rows.query();
    checked(table, &query, args.jsonl).map_err(Failure::Config)?;
    if args.jsonl {
        return lines(args, &query);
    }
    if !args.watch {
        return say_coloured(&once(args, table, &query)?);
    }
    terminal::repeat(Arc::default(), || {}, || watch(args, table, &query))
}

/// Prints the running configuration, or how it differs from the file.
fn config(args: &ShowArgs) -> Result<(), Failure> {
    let diff = args.rows.diff;
    let query = args.rows.query();
    let plain = query.top.is_none() && query.filters().all(|one| one == "--diff");
    if args.json || args.jsonl || args.watch || !plain {
        let why = "error: `show config` prints YAML, and takes --diff only";
        return Err(Failure::Config(why.to_owned()));
    }
    match client::ask(&args.socket.path, &Request::Config { diff })? {
        Reply::Text(text) => say(&text),
        other => Err(change::unexpected(other)),
    }
}

/// Prints a table every second.
fn watch(args: &ShowArgs, table: &Entry, query: &Query) -> Result<(), Failure> {
    loop {
        say_coloured(&once(args, table, query)?)?;
        std::thread::sleep(Duration::from_secs(1));
        if !args.json {
            // Home and clear, as watch(1) does.
            say("\x1b[H\x1b[2J")?;
        }
    }
}

fn once(args: &ShowArgs, table: &Entry, query: &Query) -> Result<String, Failure> {
    look(&args.socket.path, table, query, args.json)
}

/// A table as `--json` prints it, for another command.
pub(super) fn json(socket: &Path, table: &Entry, query: &Query) -> Result<String, Failure> {
    look(socket, table, query, true)
}

fn look(socket: &Path, table: &Entry, query: &Query, json: bool) -> Result<String, Failure> {
    if table.has_rows() {
        let mut rows = Vec::new();
        client::ask_rows(socket, table.name, query, |row| {
            rows.push(row);
            Ok(())
        })?;
        // The switch puts in order what --top asks for, and nothing else.
        let sort = query.top.is_none();
        return Ok(table.read_rows(rows, sort, json)?);
    }
    Ok(table.read(client::ask(socket, &table.request())?, json)?)
}

/// Prints rows as lines of JSON, as they come.
fn lines(args: &ShowArgs, query: &Query) -> Result<(), Failure> {
    let mut text = String::new();
    let mut held = 0;
    client::ask_rows(&args.socket.path, &args.what, query, |row| {
        text += &(row.to_string() + "\n");
        held += 1;
        if held == LINES {
            print(&text)?;
            text.clear();
            held = 0;
        }
        Ok(())
    })?;
    say(&text)
}

/// Prints to stdout.
fn print(text: &str) -> anyhow::Result<()> {
    say(text).map_err(|failure| match failure {
        Failure::Runtime(error) => error,
        Failure::Config(message) => anyhow!(message),
    })
}

//! `npcc-switch show WHAT`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use npcc_api::client::blocking as client;
use npcc_api::protocol::{Reply, Request};
use npcc_api::query::Query;
use npcc_appliance::manage::tables::{self, Entry};

use super::socket::SocketArg;
use super::{Failure, change, say, say_coloured, terminal};

/// Name by which `show` prints the running configuration.
const CONFIG: &str = "config";

/// Name by which `show` prints the ends that the switch saw.
const ENDS: &str = "ends";

/// Rows printed at a time where they come as lines of JSON.
const LINES: usize = 1_000;

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Table to show
    #[arg(value_parser = names().map(canonical))]
    what: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print a line of JSON for each flow, host or line of the log, as they come: flows in no order, unless --top is given
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub(super) jsonl: bool,
    /// Repeat every second
    #[arg(long)]
    pub(super) watch: bool,
    /// Go on with what changes after the snapshot of ends, a line of JSON each
    #[arg(long, conflicts_with_all = ["watch", "jsonl"])]
    pub(super) follow: bool,
    #[command(flatten)]
    pub(super) rows: RowArgs,
    #[command(flatten)]
    pub(super) socket: SocketArg,
}

/// Which flows, hosts or lines of the log.
#[derive(Debug, Args)]
pub(super) struct RowArgs {
    /// Show so many rows at most: the heaviest flows, the hosts with most CNPs, the latest lines of the log
    #[arg(long, visible_alias = "last", value_name = "N")]
    top: Option<usize>,
    /// Show the rows that follow the first N of --top: page 2 has N+1 to 2N
    #[arg(long, value_name = "K", requires = "top", value_parser = clap::value_parser!(u64).range(1..))]
    page: Option<u64>,
    /// Only from or to this host, or the hosts of this prefix
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// Only with this queue pair at either end, such as 17 or 0x11
    #[arg(long, value_parser = super::pair::number)]
    qp: Option<u32>,
    /// Only flows that leave by this port
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// Only flows in the queue of this priority
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..8))]
    priority: Option<u8>,
    /// Only flows whose sender is known by this evidence; none for those that are not
    #[arg(long, value_name = "NAME")]
    evidence: Option<String>,
    /// Only flows that did this after their last CNP: halved, weak or none
    #[arg(long, value_name = "NAME")]
    response: Option<String>,
    /// Only flows that nobody has answered yet
    #[arg(long)]
    cold: bool,
    /// Only flows that were told, or would have been
    #[arg(long)]
    told: bool,
    /// Show only differences: routes that the switch does not have as Linux has them, none if all is well; of config what differs from the file
    #[arg(long)]
    diff: bool,
    /// Only lines of the log with this outcome: sent, would-send or refused
    #[arg(long, value_name = "NAME")]
    outcome: Option<String>,
}

impl RowArgs {
    pub(super) fn query(&self) -> Query {
        Query {
            top: self.top,
            page: self
                .page
                .map(|page| usize::try_from(page).unwrap_or(usize::MAX)),
            after: None,
            host: self.host.clone(),
            qp: self.qp,
            port: self.port.clone(),
            priority: self.priority,
            evidence: self.evidence.clone(),
            response: self.response.clone(),
            cold: self.cold,
            told: self.told,
            outcome: self.outcome.clone(),
            diff: self.diff,
        }
    }
}

fn names() -> PossibleValuesParser {
    let all = tables::ALL.iter();
    let config = PossibleValue::new(CONFIG)
        .help("The running configuration; --diff: how it differs from the file");
    let value = |table: &Entry| {
        let value = PossibleValue::new(table.name).help(table.about());
        value.aliases(table.name.strip_suffix('s'))
    };
    let ends = PossibleValue::new(ENDS)
        .help("Reverse traffic that the switch saw, which tells other boxes the senders of their flows; --json: a line each");
    all.map(value)
        .chain([ends, config])
        .collect::<Vec<_>>()
        .into()
}

/// Name of a table that may be written in the singular.
#[expect(
    clippy::needless_pass_by_value,
    reason = "clap gives a value parser what it has read"
)]
fn canonical(name: String) -> String {
    let is_singular = |table: &&Entry| table.name.strip_suffix('s') == Some(&name);
    let table = tables::ALL.iter().find(is_singular);
    table.map_or(name.as_str(), |table| table.name).to_owned()
}

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

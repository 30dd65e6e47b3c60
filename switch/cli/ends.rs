//! `npcc-switch show ends` and `npcc-switch pair suggest`: ends that this box saw, and those that others did.

use std::path::Path;

use anyhow::Context;
use npcc_api::client::blocking as client;
use npcc_api::ends::EndRow;
use npcc_api::peers::{MOST_ROWS, PeerName, Suggested, Suggestion};
use npcc_api::protocol::{Reply, Request};
use npcc_appliance::report::ends::ends as report;

use super::args::ShowArgs;
use super::{Failure, say};

/// Prints ends: a snapshot as a table or as lines of JSON, or what changes, too.
pub(super) fn show(args: &ShowArgs) -> Result<(), Failure> {
    let query = args.rows.query();
    if args.jsonl || args.watch || query.top.is_some() || query.filters().next().is_some() {
        let why = "error: `show ends` takes --json and --follow only";
        return Err(Failure::Config(why.to_owned()));
    }
    let mut ends = Vec::new();
    client::ask_ends(&args.socket.path, args.follow, |row| {
        if args.json || args.follow {
            let line = serde_json::to_string(&row)? + "\n";
            say(&line).map_err(|_| anyhow::anyhow!("nobody reads the output"))?;
        } else if let EndRow::End(end) = row {
            ends.push(end);
        }
        Ok(())
    })?;
    if !args.json {
        say(&report(&ends))?;
    }
    Ok(())
}

/// Gives the switch the rows of a file, and prints what became of them.
pub(super) fn suggest(socket: &Path, name: &PeerName, text: &str) -> Result<(), Failure> {
    let lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    let read = |(line, number): (&str, usize)| {
        serde_json::from_str(line).with_context(|| format!("line {number} is no JSON"))
    };
    let rows: anyhow::Result<Vec<serde_json::Value>> = lines.map(read).collect();
    let mut all = Suggested::default();
    for rows in rows?.chunks(MOST_ROWS) {
        let request = Request::Suggest(vec![Suggestion {
            name: name.clone(),
            rows: rows.to_vec(),
        }]);
        let outcomes = match client::ask(socket, &request)? {
            Reply::Suggested(outcomes) => outcomes,
            other => return Err(other.unexpected().into()),
        };
        for some in outcomes {
            all.accepted += some.accepted;
            for (reason, count) in some.refused {
                *all.refused.entry(reason).or_default() += count;
            }
        }
    }
    let outcome = serde_json::to_string(&all).context("cannot write the outcome")?;
    say(&(outcome + "\n"))
}

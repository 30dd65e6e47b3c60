//! `npcc-switch run -c FILE`

use std::path::Path;

use anyhow::Context;

use super::{Failure, RunArgs, load, say};
use crate::prefixes;
use crate::report::model::Snapshot;
use crate::report::table;
use crate::run::{Options, Source, run as run_switch};
use crate::stamp::Stamps;

pub(super) fn run(args: &RunArgs) -> Result<(), Failure> {
    let loaded = load(&args.config)?;
    let path = &args.config.config;
    let source = Source {
        // Read again later, wherever this process has gone.
        path: std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        loaded,
    };
    if let Some(path) = &args.stats_json {
        // Found out now, not after the run.
        std::fs::write(path, "")
            .with_context(|| format!("cannot write --stats-json {}", path.display()))?;
    }
    let prefixes = match &args.routes {
        Some(file) => {
            prefixes::read(file).map_err(|error| Failure::Config(format!("error: {error}")))?
        }
        None => Vec::new(),
    };
    let snapshot = run_switch(
        &source,
        &Options {
            duration: args.duration,
            prefixes,
            stamps: args.stamps.as_deref().map(Stamps::read).transpose()?,
            timetable: args.timetable,
        },
    )?;
    if let Some(path) = &args.stats_json {
        write_json(path, &snapshot)?;
    }
    say(&table::totals(&snapshot))
}

fn write_json(path: &Path, snapshot: &Snapshot) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(snapshot).context("cannot encode the totals")?;
    std::fs::write(path, text + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

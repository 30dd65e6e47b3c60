//! `npcc-switch run -c FILE`

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use super::{Failure, RunArgs, load, reports, say};
use npcc_appliance::report::model::Snapshot;
use npcc_appliance::report::ports_table;
use npcc_appliance::run::{Options, Source, run as run_switch};
use npcc_appliance::saved::store::Store;
use npcc_lab::instruments::Instruments;
use npcc_lab::prefixes;
use npcc_lab::template::Templates;

pub(super) fn run(args: &RunArgs, handed: Vec<(String, OwnedFd)>) -> Result<(), Failure> {
    let loaded = load(&args.config)?;
    let path = &args.config;
    let source = Source {
        version: env!("NPCC_VERSION").to_owned(),
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
    let options = Options {
        duration: args.duration,
        prefixes,
        after_crash: reports::command(&source.path, &source.loaded.config.telemetry.socket),
        store: Arc::new(Store::of(handed)),
    };
    let templates = args.stamps.as_deref().map(Templates::read).transpose()?;
    let snapshot = if templates.is_some() || args.timetable.is_some() {
        let mut first = templates;
        run_switch(&source, &options, |telemetry| {
            Instruments::new(telemetry, args.timetable, first.take())
        })?
    } else {
        run_switch(&source, &options, std::convert::identity)?
    };
    if let Some(path) = &args.stats_json {
        write_json(path, &snapshot)?;
    }
    say(&ports_table::totals(&snapshot))
}

fn write_json(path: &Path, snapshot: &Snapshot) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(snapshot).context("cannot encode the totals")?;
    std::fs::write(path, text + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

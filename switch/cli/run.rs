//! `npcc-switch run -c FILE`

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use npcc_api::model::Snapshot;

use super::{Failure, RunArgs, load, output, reports};
use npcc_appliance::report::ports_table;
use npcc_appliance::run::{Options, Source, run as run_switch};
use npcc_engine::log;
use npcc_engine::store::Store;
use npcc_lab::instruments::Instruments;
use npcc_lab::prefixes;
use npcc_lab::template::Templates;

pub(super) fn run(args: &RunArgs, handed: Vec<(String, OwnedFd)>) -> Result<(), Failure> {
    // Standard output is still a file by its path.
    let stats = args.stats_json.as_deref().map(create).transpose()?;
    // From here on nothing that is said waits for its reader.
    log::init()?;
    let loaded = load(&args.config)?;
    let path = &args.config;
    let source = Source {
        version: env!("NPCC_VERSION").to_owned(),
        // Read again later, wherever this process has gone.
        path: std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        loaded,
    };
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
    log::print(&ports_table::totals(&snapshot));
    if let Some((file, path)) = stats.zip(args.stats_json.as_deref()) {
        write_json(file, path, &snapshot)?;
    }
    Ok(())
}

/// Creates the file of the totals: whether that is possible is found out before the run.
fn create(path: &Path) -> Result<File, Failure> {
    // The totals of the last run stay until there are new ones.
    Ok(output::create(path, false).context("--stats-json")?)
}

fn write_json(mut file: File, path: &Path, snapshot: &Snapshot) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(snapshot).context("cannot encode the totals")?;
    // A pipe or a terminal has no length.
    let _ = file.set_len(0);
    file.write_all((text + "\n").as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

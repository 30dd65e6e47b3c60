//! `sim`: a scenario in simulated time; table to stdout, CSV and HTML to files.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use npcc_sim::report;
use npcc_sim::scenario::{Scenario, ScenarioError};
use npcc_sim::sweep;

use super::{Failure, say};

#[derive(Debug, Args)]
pub(super) struct SimArgs {
    /// Scenario file; config/scenarios has some
    scenario: PathBuf,
    /// Write one line per run here
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a self-contained page with pictures here
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Runs at a time (default: one per core)
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

pub(super) fn run(args: &SimArgs) -> Result<(), Failure> {
    let scenario = Scenario::load(&args.scenario).map_err(|error| match error {
        ScenarioError::Read { .. } | ScenarioError::Form { .. } | ScenarioError::Sense { .. } => {
            Failure::Config(format!("error: {error}"))
        }
    })?;
    let jobs = args
        .jobs
        .or_else(|| std::thread::available_parallelism().ok());
    // Drawn on stderr, and only on a terminal.
    let bar = ProgressBar::new(scenario.cases().len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
        bar.set_style(style);
    }
    bar.tick();
    let done = |finished: usize, _: usize| bar.set_position(finished as u64);
    let runs = sweep::all(&scenario, jobs.map_or(1, NonZeroUsize::get), &done)
        .map_err(|error| Failure::Config(format!("error: {}: {error}", args.scenario.display())))?;
    bar.finish_and_clear();
    if let Some(path) = &args.csv {
        write(path, &report::csv(&scenario, &runs))?;
    }
    if let Some(path) = &args.html {
        write(path, &report::html(&scenario, &runs))?;
    }
    say(&report::table(&scenario, &runs))?;
    say(&report::verdicts(&scenario, &runs))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = fs::write(path, text);
    written
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(Failure::from)
}

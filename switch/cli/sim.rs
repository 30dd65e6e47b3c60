//! `sim`: a scenario in simulated time, or (`--live`) in real time around a switch process; table to stdout, pictures to files.

use std::io::Write;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use npcc_sim::report;
use npcc_sim::scenario::{Case, Scenario, ScenarioError};
use npcc_sim::sweep;

use super::{Failure, output, say, say_error};

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
    /// Run everything with so many seeds: best, median and worst of each figure; --html draws the first
    #[arg(long, value_name = "N", default_value_t = NonZeroU64::MIN)]
    seeds: NonZeroU64,
    /// Run the hosts in real time around a real switch process over veth pairs; needs root
    #[arg(long, conflicts_with_all = ["csv", "html", "jobs", "seeds"])]
    live: bool,
    /// With --live: how many times slower than life, for both the hosts and the switch
    #[arg(long, value_name = "N", default_value_t = 1000.0, requires = "live", value_parser = scale)]
    time_scale: f64,
    /// With --live: write the picture, schemes side by side, here
    #[arg(long, value_name = "FILE", requires = "live")]
    svg: Option<PathBuf>,
}

fn scale(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (1.0..=1e6).contains(&value) {
        Ok(value)
    } else {
        Err("must be between 1 and 1000000".to_owned())
    }
}

pub(super) fn run(args: &SimArgs) -> Result<(), Failure> {
    let scenario = Scenario::load(&args.scenario).map_err(|error| match error {
        ScenarioError::Read { .. } | ScenarioError::Form { .. } | ScenarioError::Sense { .. } => {
            Failure::Config(format!("error: {error}"))
        }
    })?;
    if args.live {
        return live(args, &scenario);
    }
    let jobs = args
        .jobs
        .or_else(|| std::thread::available_parallelism().ok());
    // Drawn on stderr, and only on a terminal.
    let bar = ProgressBar::new(args.seeds.get() * scenario.cases().len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
        bar.set_style(style);
    }
    bar.tick();
    let done = |finished: usize, _: usize| bar.set_position(finished as u64);
    let jobs = jobs.map_or(1, NonZeroUsize::get);
    let seeds = sweep::seeded(&scenario, args.seeds.get(), jobs, &done)
        .map_err(|error| Failure::Config(format!("error: {}: {error}", args.scenario.display())))?;
    bar.finish_and_clear();
    if let Some(path) = &args.csv {
        write(path, &report::csv(&scenario, &seeds))?;
    }
    if let Some(path) = &args.html {
        let first = seeds.first().map_or(&[][..], Vec::as_slice);
        write(path, &report::html(&scenario, first))?;
    }
    match seeds.as_slice() {
        [runs] => say(&report::table(&scenario, runs))?,
        seeds => say(&report::seeds_table(&scenario, seeds))?,
    }
    say(&report::verdicts(&scenario, &seeds))
}

fn live(args: &SimArgs, scenario: &Scenario) -> Result<(), Failure> {
    let begins = |case: &Case, time: Duration| {
        say_error(&format!("{case}: {:.0} s of real time", time.as_secs_f64()));
    };
    let runs = npcc_lab::realtime::all(scenario, args.time_scale, &begins)?;
    if let Some(path) = &args.svg {
        write(
            path,
            &npcc_lab::realtime::svg(scenario, args.time_scale, &runs),
        )?;
    }
    say(&npcc_lab::realtime::table(&runs))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = output::create(path, true)?.write_all(text.as_bytes());
    written
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(Failure::from)
}

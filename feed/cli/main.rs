//! `npcc-feed`: the command line.
//!
//! Exit codes: 0 fine, 1 runtime failure or findings of `doctor`, 2 bad usage or settings.

#![forbid(unsafe_code)]

mod common;
mod generate;
mod history;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory, Parser, Subcommand};
use npcc_feed::settings::Settings;
use npcc_feed::{doctor, fleet, run};

use common::{Failure, abort_on_panic, accept, failed, say, stopped};

/// Shares what one box saw with the other box of a pair and with a fleet, over NATS.
#[derive(Debug, Parser)]
#[command(name = "npcc-feed", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Exchange ends with the peers and publish records, until stopped
    Run(SettingsArg),
    /// Validate a settings file
    Check(SettingsArg),
    /// Check the servers, this box's permissions, its peers and its switch; print each problem with its fix; exit code 1 on any error or warning
    Doctor(DoctorArgs),
    /// Show a row for each box of the site: state, version, worst queue, CNPs, hosts that do not respond
    Fleet(FleetArgs),
    /// Show what became of a host, from the history that JetStream keeps
    History(history::HistoryArgs),
    /// Start a pair of servers and two feeds on loopback, show their state, and stop them at the end
    Trial(trial::TrialArgs),
    /// Print the JSON schema of the records that boxes and agents publish, by the last part of the subject
    Schema,
    /// Write manual pages
    #[command(hide = true)]
    Generate(generate::GenerateArgs),
}

#[derive(Debug, Args)]
struct SettingsArg {
    /// Settings file
    #[arg(
        short = 'c',
        long = "config",
        value_name = "FILE",
        default_value = "/etc/npcc-switch/feed.yaml"
    )]
    config: PathBuf,
}

#[derive(Debug, Args)]
struct DoctorArgs {
    #[command(flatten)]
    settings: SettingsArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct FleetArgs {
    #[command(flatten)]
    settings: SettingsArg,
    /// Show the boxes of all sites
    #[arg(long)]
    all_sites: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(carry_out(command)),
        Err(error) => Err(error.into()),
    };
    result.unwrap_or_else(failed)
}

async fn carry_out(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => {
            abort_on_panic();
            let settings = load(&args)?;
            let stop = stopped().context("cannot wait for signals")?;
            run::run(&settings, stop).await?;
        }
        Command::Check(args) => {
            load(&args)?;
            say(&format!("{}: fine\n", args.config.display()))?;
        }
        Command::Doctor(args) => return examine(&args).await,
        Command::Fleet(args) => {
            let settings = load(&args.settings)?;
            let fleet::table::Fleet { states, dropped } =
                fleet::table::fleet(&settings, args.all_sites).await?;
            common::say_dropped(dropped);
            if args.json {
                say(&(serde_json::to_string_pretty(&states)? + "\n"))?;
            } else {
                say(&fleet::table::text(&states))?;
            }
        }
        Command::History(args) => history::run(&args).await?,
        Command::Trial(args) => trial::run(&args).await?,
        Command::Schema => say(&format!("{:#}\n", fleet::schema()))?,
        Command::Generate(args) => generate::run(&args, &Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn examine(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let settings = load(&args.settings)?;
    let found = doctor::examine(&settings).await;
    if args.json {
        say(&(serde_json::to_string_pretty(&found)? + "\n"))?;
    } else {
        say(&doctor::text(&found))?;
    }
    let is_well = found
        .iter()
        .all(|finding| finding.severity == doctor::Severity::Note);
    Ok(ExitCode::from(u8::from(!is_well)))
}

fn load(args: &SettingsArg) -> Result<Settings, Failure> {
    accept(Settings::load(&args.config))
}

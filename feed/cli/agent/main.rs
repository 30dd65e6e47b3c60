//! `npcc-agent`: the command line of a host's agent.
//!
//! Exit codes: 0 fine, 1 runtime failure, 2 bad usage or settings.

#![forbid(unsafe_code)]

#[path = "../common.rs"]
mod common;
#[path = "../generate.rs"]
mod generate;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use npcc_feed::agent::{self, AgentSettings};

use common::{Failure, abort_on_panic, accept, failed, say, say_error, stopped};

/// Reports the queue pairs of this host to the npcc-switch boxes that its traffic passes first, over NATS.
#[derive(Debug, Parser)]
#[command(name = "npcc-agent", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Publish the queue pairs of this host, until stopped
    Run(SettingsArg),
    /// Validate a settings file
    Check(SettingsArg),
    /// Show the queue pairs that would be published, and what a poll costs
    Show,
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
        default_value = "/etc/npcc-switch/agent.yaml"
    )]
    config: PathBuf,
}

fn main() -> ExitCode {
    match carry_out(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(failure),
    }
}

fn carry_out(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => {
            abort_on_panic();
            let settings = load(args)?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async { Ok(agent::run(&settings, stopped()?).await?) })
        }
        Command::Check(args) => {
            load(args)?;
            Ok(say(&format!("{}: fine\n", args.config.display()))?)
        }
        Command::Show => show(),
        Command::Generate(args) => generate::run(args, &Cli::command()),
    }
}

fn show() -> Result<(), Failure> {
    let (leases, took) = agent::show()?;
    let mut text = String::new();
    for lease in &leases {
        text += &(serde_json::to_string(lease)? + "\n");
    }
    say_error(&format!(
        "{} leases, a poll took {} us",
        leases.len(),
        took.as_micros()
    ));
    Ok(say(&text)?)
}

fn load(args: &SettingsArg) -> Result<AgentSettings, Failure> {
    accept(AgentSettings::load(&args.config))
}

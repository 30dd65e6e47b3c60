//! `npcc-agent`: the command line of a host's agent.
//!
//! Exit codes: 0 fine, 1 runtime failure, 2 bad usage or settings.

#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use npcc_feed::agent::{self, AgentSettings};
use tokio::signal::unix::{SignalKind, signal};

/// Reports the queue pairs of this host to the boxes before it, over NATS.
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

/// Why a command failed, and with which exit code.
enum Failure {
    /// Code 2: the message is printed as it is.
    Settings(String),
    /// Code 1.
    Runtime(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Runtime(error.into())
    }
}

fn main() -> ExitCode {
    let (message, code) = match carry_out(&Cli::parse().command) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Settings(report)) => (report, 2),
        Err(Failure::Runtime(error)) => (format!("error: {error:#}"), 1),
    };
    say_error(message.trim_end());
    ExitCode::from(code)
}

fn carry_out(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => {
            let settings = load(args)?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let mut interrupt = signal(SignalKind::interrupt())?;
                let mut terminate = signal(SignalKind::terminate())?;
                let stop = async move {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                };
                agent::run(&settings, stop).await.map_err(Failure::from)
            })
        }
        Command::Check(args) => {
            load(args)?;
            say(&format!("{}: fine\n", args.config.display()))
        }
        Command::Show => show(),
    }
}

fn show() -> Result<(), Failure> {
    let (leases, took) = agent::show()?;
    let mut text = String::new();
    for lease in &leases {
        text += &(serde_json::to_string(lease)? + "\n");
    }
    say_error(&format!(
        "{} queue pairs, a poll took {} us",
        leases.len(),
        took.as_micros()
    ));
    say(&text)
}

/// Reads the settings; warnings go to stderr.
fn load(args: &SettingsArg) -> Result<AgentSettings, Failure> {
    let read = AgentSettings::load(&args.config)
        .map_err(|report| Failure::Settings(report.to_string()))?;
    for warning in &read.warnings {
        say_error(&warning.to_string());
    }
    Ok(read.model)
}

fn say_error(message: &str) {
    // Nothing is left to do when stderr is gone.
    let _ = writeln!(std::io::stderr(), "{message}");
}

fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

//! Changes of a running switch: `clear WHAT`, `set KEY VALUE`, `unset KEY`, `reload`, `commit` and `rollback`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use npcc_api::client::blocking as client;
use npcc_api::outcome::Outcome;
use npcc_api::protocol::{Reply, Request, status};

use super::Failure;
use super::socket::SocketArg;

/// Exit code of `reload --exit-code` when something waits for a restart.
const NEEDS_RESTART: u8 = 3;

/// State that can be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Ports' counters: shown to this user from here on
    Counters,
    /// Peaks of queues, groups and headroom; the ones since start stay
    Watermarks,
}

#[derive(Debug, Args)]
pub(super) struct ClearArgs {
    /// Counters or watermarks
    what: What,
    /// Counters of this port only
    #[arg(long, value_name = "PORT")]
    port: Option<String>,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Debug, Args)]
pub(super) struct ReloadArgs {
    /// Roll back unless `commit` comes within this time, such as 60s
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    confirm: Option<Duration>,
    /// Say what would come of it, and change nothing
    #[arg(long, conflicts_with = "confirm")]
    dry_run: bool,
    /// End with exit code 3 if something waits for a restart
    #[arg(long)]
    exit_code: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Debug, Args)]
pub(super) struct CommitArgs {
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Debug, Args)]
pub(super) struct RollbackArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// Key to change: a key of the configuration as a path, such as npcc.action, npcc.recovery, ports.NAME.speed, qos.priorities.N.weight, qos.priorities.N.ecn.kmin; or in short npcc.PORT.N.action, npcc.PORT.N.policy, npcc.PORT.N.PARAMETER
    key: String,
    /// Its new value, as in the configuration
    value: String,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["key", "all"])))]
pub(super) struct UnsetArgs {
    /// Key that takes the value of the configuration file again: a key that `set` has changed, or one above it
    key: Option<String>,
    /// Everything that `set` has changed
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

pub(super) fn clear(args: &ClearArgs) -> Result<(), Failure> {
    let request = match (args.what, &args.port) {
        (What::Counters, port) => Request::ClearCounters { port: port.clone() },
        (What::Watermarks, None) => Request::ClearWatermarks,
        (What::Watermarks, Some(_)) => {
            let why = "error: watermarks are those of all ports: leave out --port";
            return Err(Failure::Config(why.to_owned()));
        }
    };
    ask(&args.socket.path, &request)
}

pub(super) fn set(args: &SetArgs) -> Result<(), Failure> {
    let request = Request::Set {
        key: args.key.clone(),
        value: args.value.clone(),
    };
    outcome(&args.socket.path, &request, false).map(drop)
}

pub(super) fn unset(args: &UnsetArgs) -> Result<(), Failure> {
    let key = args.key.clone();
    outcome(&args.socket.path, &Request::Unset { key }, args.json).map(drop)
}

pub(super) fn reload(args: &ReloadArgs) -> Result<ExitCode, Failure> {
    let confirm = args.confirm.map(|time| time.as_millis());
    let request = if args.dry_run {
        Request::PlanReload
    } else {
        Request::Reload {
            confirm_ms: confirm.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX).max(1)),
        }
    };
    let outcome = outcome(&args.socket.path, &request, args.json)?;
    let waits = args.exit_code && !outcome.restart.is_empty();
    Ok(ExitCode::from(if waits { NEEDS_RESTART } else { 0 }))
}

pub(super) fn commit(args: &CommitArgs) -> Result<(), Failure> {
    ask(&args.socket.path, &Request::Commit)
}

pub(super) fn rollback(args: &RollbackArgs) -> Result<(), Failure> {
    outcome(&args.socket.path, &Request::Rollback, args.json).map(drop)
}

/// Asks for a change of settings and prints what it came to.
fn outcome(socket: &std::path::Path, request: &Request, json: bool) -> Result<Outcome, Failure> {
    let outcome = match client::ask(socket, request)? {
        Reply::Reloaded(outcome) => outcome,
        other => return Err(unexpected(other)),
    };
    if json {
        let text = serde_json::to_string_pretty(&outcome).map_err(anyhow::Error::from)?;
        super::say(&(text + "\n"))?;
    } else {
        super::say(&outcome.to_string())?;
    }
    Ok(outcome)
}

pub(super) fn ask(socket: &std::path::Path, request: &Request) -> Result<(), Failure> {
    match client::ask(socket, request)? {
        Reply::Done => Ok(()),
        other => Err(unexpected(other)),
    }
}

/// Returns the failure that another reply than the expected one is: mistakes of the configuration are the caller's.
pub(super) fn unexpected(reply: Reply) -> Failure {
    match reply {
        Reply::Refused(error) if error.status == status::UNPROCESSABLE => {
            Failure::Config(error.problem.error)
        }
        other => other.unexpected().into(),
    }
}

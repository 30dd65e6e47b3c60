//! Changes of a running switch: `clear WHAT`, `set KEY VALUE`, `reload`, `commit` and `rollback`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::Failure;
use npcc_appliance::manage::client;
use npcc_appliance::manage::protocol::{Reply, Request};

/// What can be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Ports' counters: shown from here on
    Counters,
    /// Peaks of queues, groups and headroom; the ones since start stay
    Watermarks,
}

#[derive(Debug, Args)]
pub(super) struct ClearArgs {
    /// What to clear
    what: What,
    /// Management socket of the switch
    #[arg(long, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ReloadArgs {
    /// Roll back unless `commit` comes within this time, such as 60s
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    confirm: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Management socket of the switch
    #[arg(long, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct CommitArgs {
    /// Management socket of the switch
    #[arg(long, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct RollbackArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Management socket of the switch
    #[arg(long, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// What to change: qos.priorities.N.weight, qos.priorities.N.ecn.kmin (kmax, pmax), qos.priorities.N.wred.min (max, prob), npcc.action, npcc.PORT.N.action (send, observe, off), npcc.PORT.N.policy, npcc.PORT.N.PARAMETER
    key: String,
    /// Its new value
    value: String,
    /// Management socket of the switch
    #[arg(long, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

pub(super) fn clear(args: &ClearArgs) -> Result<(), Failure> {
    let request = match args.what {
        What::Counters => Request::ClearCounters,
        What::Watermarks => Request::ClearWatermarks,
    };
    ask(&args.socket, &request)
}

pub(super) fn set(args: &SetArgs) -> Result<(), Failure> {
    if let Some(order) = super::set::npcc(&args.key, &args.value) {
        let order = order.map_err(Failure::Config)?;
        return ask(&args.socket, &Request::Npcc(order));
    }
    if let Some(request) = super::set::threshold(&args.key, &args.value) {
        return ask(&args.socket, &request);
    }
    let priority = args
        .key
        .strip_prefix("qos.priorities.")
        .and_then(|rest| rest.strip_suffix(".weight"))
        .and_then(|priority| priority.parse().ok())
        .filter(|priority| *priority < 8u8);
    let Some(priority) = priority else {
        let key = &args.key;
        return Err(Failure::Config(format!(
            "error: `{key}` cannot be set while the switch runs: qos.priorities.N.weight, .ecn.kmin, .ecn.kmax, .ecn.pmax, .wred.min, .wred.max, .wred.prob, npcc.action, npcc.PORT.N.action, npcc.PORT.N.policy and npcc.PORT.N.PARAMETER can"
        )));
    };
    let weight = args
        .value
        .parse()
        .ok()
        .filter(|weight| (1..=100u8).contains(weight));
    let Some(weight) = weight else {
        let value = &args.value;
        return Err(Failure::Config(format!(
            "error: `{value}` is not a weight: write 1 to 100"
        )));
    };
    ask(&args.socket, &Request::Weight { priority, weight })
}

pub(super) fn reload(args: &ReloadArgs) -> Result<(), Failure> {
    let confirm = args.confirm.map(|time| time.as_millis());
    let confirm_ms = confirm.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX).max(1));
    outcome(&args.socket, &Request::Reload { confirm_ms }, args.json)
}

pub(super) fn commit(args: &CommitArgs) -> Result<(), Failure> {
    ask(&args.socket, &Request::Commit)
}

pub(super) fn rollback(args: &RollbackArgs) -> Result<(), Failure> {
    outcome(&args.socket, &Request::Rollback, args.json)
}

/// Asks for a change of settings and prints what it came to.
fn outcome(socket: &std::path::Path, request: &Request, json: bool) -> Result<(), Failure> {
    match client::ask(socket, request)? {
        Reply::Reloaded(outcome) if json => {
            let text = serde_json::to_string_pretty(&outcome).map_err(anyhow::Error::from)?;
            super::say(&(text + "\n"))
        }
        Reply::Reloaded(outcome) => super::say(&outcome.to_string()),
        Reply::Invalid(report) => Err(Failure::Config(report)),
        other => Err(other.unexpected().into()),
    }
}

pub(super) fn ask(socket: &std::path::Path, request: &Request) -> Result<(), Failure> {
    match client::ask(socket, request)? {
        Reply::Done => Ok(()),
        other => Err(other.unexpected().into()),
    }
}

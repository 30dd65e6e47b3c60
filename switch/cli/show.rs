//! `npcc-switch show WHAT`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use npcc_appliance::manage::client;
use npcc_appliance::manage::protocol::{Reply, Request};
use npcc_appliance::manage::tables::{self, Entry};

use super::{Failure, say};

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// What to show
    #[arg(value_parser = names())]
    what: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Repeat every second
    #[arg(long)]
    watch: bool,
    /// Show so many rows at most: the heaviest flows, the hosts with most CNPs, the latest lines of the log
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Management socket of the switch
    #[arg(long, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

fn names() -> PossibleValuesParser {
    let all = tables::ALL.iter();
    all.map(|table| PossibleValue::new(table.name).help(table.about))
        .collect::<Vec<_>>()
        .into()
}

pub(super) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let name = &args.what;
    let table = tables::named(name)
        .ok_or_else(|| Failure::Config(format!("error: there is no table `{name}`")))?;
    if args.top.is_some() && !table.ranked {
        return Err(Failure::Config(format!(
            "error: --top: the rows of `show {name}` are in no order; flows, hosts and log are"
        )));
    }
    loop {
        say(&once(args, table)?)?;
        if !args.watch {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
        if !args.json {
            // Home and clear, as watch(1) does.
            say("\x1b[H\x1b[2J")?;
        }
    }
}

fn once(args: &ShowArgs, table: &Entry) -> Result<String, Failure> {
    let request = Request::Show {
        table: table.name.to_owned(),
        top: args.top,
    };
    let other =
        || anyhow::anyhow!("the switch answered something else; are both the same version?");
    match client::ask(&args.socket, &request)? {
        Reply::Table(data) => Ok(table.read(data, args.json).map_err(|_| other())?),
        Reply::Error(message) => Err(anyhow::anyhow!("the switch refused: {message}").into()),
        _ => Err(other().into()),
    }
}

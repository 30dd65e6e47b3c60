//! `npcc-feed trial`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use npcc_feed::fleet::table;
use npcc_feed::settings::Settings;
use npcc_feed::trial::Trial;

use super::common::{Failure, accept, say, say_error, stopped};

/// Time between two tables, besides the 2.5 s in which the states are collected.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(super) struct TrialArgs {
    /// Management socket of the first box's switch
    #[arg(long, value_name = "PATH", default_value = npcc_config::model::DEFAULT_SOCKET)]
    first: PathBuf,
    /// Management socket of the second box's switch
    #[arg(long, value_name = "PATH", default_value = "/run/npcc-switch-2.sock")]
    second: PathBuf,
    /// Publish and receive only; suggest nothing to the switches
    #[arg(long)]
    watch: bool,
    /// Stop after this many tables (default: run until Ctrl-C)
    #[arg(long, value_name = "COUNT")]
    tables: Option<u32>,
}

pub(super) async fn run(args: &TrialArgs) -> Result<(), Failure> {
    let stop = stopped()?;
    let sockets = [&args.first, &args.second].map(|socket| {
        let control = (!args.watch).then(|| socket.clone());
        (socket.clone(), control)
    });
    let trial = Trial::start(&std::env::current_exe()?, &sockets)?;
    let folder = trial.folder().display();
    say(&format!(
        "configurations and logs are in {folder} until this ends; Ctrl-C ends it\n"
    ))?;
    let settings = accept(Settings::load(&trial.settings[0]))?;
    let show = async {
        let mut shown = 0;
        while args.tables.is_none_or(|most| shown < most) {
            tokio::time::sleep(PAUSE).await;
            match table::fleet(&settings, false).await {
                Ok(fleet) => say(&table::text(&fleet.states))?,
                // Users stop servers on purpose to watch the failover, so an error does not end the trial.
                Err(error) => say_error(&format!("no table: {error}")),
            }
            shown += 1;
        }
        Ok::<(), Failure>(())
    };
    tokio::select! {
        shown = show => shown,
        () = stop => Ok(()),
    }
}

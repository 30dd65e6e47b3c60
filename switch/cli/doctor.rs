//! `npcc-switch doctor [FILE]`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use npcc_doctor::{Diagnosis, Host, examine};

use super::{ConfigArgs, Failure, load, say};

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Configuration to compare the host with; without one only memory and clock are looked at
    #[arg(value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the commands that mend, for a shell: those that want a restart or a decision behind #
    #[arg(long, conflicts_with = "json")]
    commands: bool,
    /// Look at the tree of files under this folder instead of this host
    #[arg(long, value_name = "FOLDER", hide = true)]
    host: Option<PathBuf>,
}

/// Examines this host, or the tree that looks like one.
pub(super) fn diagnosis(config: Option<PathBuf>, host: &Host) -> Result<Diagnosis, Failure> {
    let loaded = config
        .map(|config| load(&ConfigArgs { config }))
        .transpose()?;
    Ok(examine(host, loaded.as_ref().map(|loaded| &loaded.config)))
}

pub(super) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let host = args.host.as_deref().map_or_else(Host::this, Host::tree);
    let diagnosis = diagnosis(args.config.clone(), &host)?;
    let text = if args.json {
        let json = serde_json::to_string_pretty(&diagnosis);
        json.context("cannot encode the findings")? + "\n"
    } else if args.commands {
        diagnosis.commands()
    } else {
        diagnosis.to_string()
    };
    say(&text)?;
    Ok(if diagnosis.is_well() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

//! `npcc-feed generate`

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use super::common::Failure;

#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// Folder for the manual pages
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes a manual page of the program and of each subcommand.
pub(super) fn run(args: &GenerateArgs, command: &Command) -> Result<(), Failure> {
    fs::create_dir_all(&args.folder)?;
    clap_mangen::generate_to(command.clone().disable_help_subcommand(true), &args.folder)?;
    Ok(())
}

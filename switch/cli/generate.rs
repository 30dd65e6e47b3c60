//! `npcc-switch generate FOLDER`: manual pages and completions for shells, made of the command line itself. For packages.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::Command;
use clap_complete::Shell;

use super::{Failure, manual};

#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// Folder to write them to; it is made
    folder: PathBuf,
}

pub(super) fn run(args: &GenerateArgs, command: Command) -> Result<(), Failure> {
    write(&args.folder, command)
        .with_context(|| format!("cannot write {}", args.folder.display()))?;
    Ok(())
}

fn write(folder: &Path, command: Command) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        // It adds `help` to what it is given.
        clap_complete::generate_to(shell, &mut command.clone(), "npcc-switch", folder)?;
    }
    manual::write(command, folder)
}

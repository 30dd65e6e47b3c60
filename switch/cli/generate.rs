//! `npcc-switch generate FOLDER`: manual pages and completions for shells, made of the command line itself. For packages.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::Command;
use clap_complete::Shell;

use super::{Failure, manual};

const PROGRAM: &str = "npcc-switch";

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
    // Each adds `help` to what it is given.
    for shell in [Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command.clone(), PROGRAM, folder)?;
    }
    let bash = folder.join(format!("{PROGRAM}.bash"));
    std::fs::write(bash, bash_completion(&mut command.clone()))?;
    manual::write(command, folder)
}

/// Returns the completion for bash. clap_complete 4.6.11 writes a name with a hyphen in one way where it stores the words so far, and in another
/// where it compares them, so that nothing below the first word is completed (clap-rs/clap issue 6421).
fn bash_completion(command: &mut Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(Shell::Bash, command, PROGRAM, &mut script);
    let [stored, compared] = ["__", "__subcmd__"].map(|hyphen| PROGRAM.replace('-', hyphen));
    String::from_utf8_lossy(&script).replace(&compared, &stored)
}

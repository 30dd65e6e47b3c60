//! `npcc-switch check [-c FILE]`

use std::path::PathBuf;

use clap::Args;
use npcc_config::Sizing;

use super::{CONFIG, Failure, load, say};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Configuration file
    #[arg(short = 'c', long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let config = load(&args.config)?.config;
    say(&format!(
        "{}\n{}: fine\n",
        Sizing::of(&config),
        args.config.display()
    ))
}

//! `npcc-switch check -c FILE`

use npcc_config::Sizing;

use super::{ConfigArgs, Failure, load, say};

pub(super) fn run(args: &ConfigArgs) -> Result<(), Failure> {
    let config = load(args)?.config;
    say(&format!(
        "{}\n{}: fine\n",
        Sizing::of(&config),
        args.config.display()
    ))
}

//! `npcc-switch check [-c FILE]`

use std::path::PathBuf;

use clap::Args;
use npcc_appliance::report::qos;
use npcc_config::Sizing;
use npcc_doctor::{Host, nodes, rejected_ports};

use super::{CONFIG, Failure, load, say};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Configuration file
    #[arg(short = 'c', long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
    /// Look for the ports' cards in the tree of files under this folder instead of this host
    #[arg(long, value_name = "FOLDER", hide = true)]
    host: Option<PathBuf>,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let config = load(&args.config)?.config;
    let host = args.host.as_deref().map_or_else(Host::this, Host::tree);
    let refused = rejected_ports(&host, &config);
    if !refused.is_empty() {
        return Err(Failure::Config(refused.join("\n") + "\n"));
    }
    let maps = qos::effective(&config, &[]).maps();
    let maps: String = maps.lines().map(|line| format!("  {line}\n")).collect();
    say(&format!(
        "{}\n{maps}\n{}: fine\n",
        Sizing::of(&config).on_nodes(nodes(&host, &config).len()),
        args.config.display()
    ))
}

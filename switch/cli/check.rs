//! `npcc-switch check [-c FILE]`

use std::path::PathBuf;

use clap::Args;
use npcc_appliance::report::qos;
use npcc_config::resolved::{Port, RING_HEADER};
use npcc_config::{Config, Sizing};
use npcc_doctor::{Host, nodes, rejected_ports};
use npcc_pipeline::wire::ethernet::HEADER_LEN;

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
        "{}\n{maps}\n{}{}: fine\n",
        Sizing::of(&config).on_nodes(nodes(&host, &config).len()),
        packet_sockets(&config),
        args.config.display()
    ))
}

/// Returns what a packet socket does to frames before the switch has them; empty where no port has one.
fn packet_sockets(config: &Config) -> String {
    let longest = |port: &Port| {
        let frame = port.device.ring_frame()? + HEADER_LEN as u64;
        let room = frame.saturating_sub(RING_HEADER);
        Some(format!("{} {room}", port.name))
    };
    let longest: Vec<String> = config.ports.iter().filter_map(longest).collect();
    if longest.is_empty() {
        return String::new();
    }
    format!(
        "note: under net_af_packet the kernel reassembles IPv4 fragments, and the ring cuts longer frames (driver_truncated) than these bytes: \
         {}\n",
        longest.join(", ")
    )
}

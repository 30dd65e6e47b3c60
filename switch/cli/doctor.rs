//! `npcc-switch doctor [FILE]`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use npcc_api::client::blocking as client;
use npcc_api::events::{Event, Kind};
use npcc_api::model;
use npcc_api::protocol::{Reply, Request};
use npcc_config::Config;
use npcc_config::model::DEFAULT_SOCKET;
use npcc_config::resolved::{self, Port};
use npcc_doctor::{Diagnosis, DriverFile, Host, RunningPort, examine};
use npcc_dpdk::{Device, Plugin};
use npcc_pipeline::drop::DropReason;

use super::{CONFIG, Failure, load, say};

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Configuration to compare the host with; default /etc/npcc-switch/npcc-switch.yaml if it exists, else only memory and clock are
    /// looked at
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same, as other commands have it
    #[arg(short = 'c', long, value_name = "FILE", conflicts_with = "file")]
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
    let loaded = config.map(|path| load(&path)).transpose()?;
    let config = loaded.as_ref().map(|loaded| &loaded.config);
    let drivers = config
        .map(|config| drivers(config, host))
        .unwrap_or_default();
    let socket = config.map_or(DEFAULT_SOCKET, |config| &config.telemetry.socket);
    Ok(examine(host, config, &drivers).with_running(&running(host, Path::new(socket))))
}

/// Returns the ports of the switch that runs on this host. Stalls are those of its latest events, as counters go on over restarts. A switch
/// that does not answer has no ports.
fn running(host: &Host, socket: &Path) -> Vec<RunningPort> {
    if *host != Host::this() {
        return Vec::new();
    }
    let Ok(Reply::Snapshot(now)) = client::ask(socket, &Request::Snapshot) else {
        return Vec::new();
    };
    let of = |port: &model::Port| RunningPort {
        port: port.name.clone(),
        stalled_ms: 10 * stalls(&now.events, &port.name),
        cut: port.counts.drops[DropReason::DriverTruncated.index()],
    };
    now.ports.iter().map(of).collect()
}

/// Returns the number of periods of 10 ms that the events about a port's device count.
fn stalls(events: &[Event], port: &str) -> u64 {
    let of_port = |event: &&Event| event.kind == Kind::TxStalled && event.port == port;
    events.iter().filter(of_port).map(|event| event.count).sum()
}

/// Returns the files of DPDK that the ports' devices need; those of cards by the host's PCI numbers.
fn drivers(config: &Config, host: &Host) -> Vec<DriverFile> {
    let file = |port: &Port| {
        let plugin = match &port.device {
            resolved::Device::Pci { address, .. } => {
                let (vendor, device) = host.card(address)?;
                Plugin::of_card(vendor, device)?
            }
            virtual_device => virtual_device
                .to_string()
                .parse::<Device>()
                .ok()?
                .plugin()?,
        };
        Some(DriverFile {
            port: port.name.clone(),
            driver: plugin.driver,
            folder: plugin.folder,
            file: plugin.file,
            package: plugin.package,
            kernel: plugin.kernel.to_owned(),
        })
    };
    config.ports.iter().filter_map(file).collect()
}

pub(super) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let host = args.host.as_deref().map_or_else(Host::this, Host::tree);
    let named = args.file.as_ref().or(args.config.as_ref()).cloned();
    // Another host's tree has its own configuration.
    let packaged =
        || Some(PathBuf::from(CONFIG)).filter(|path| args.host.is_none() && path.exists());
    let diagnosis = diagnosis(named.or_else(packaged), &host)?;
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

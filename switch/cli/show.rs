//! `npcc-switch show WHAT`

use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;

use super::{Failure, ShowArgs, say};
use npcc_appliance::manage::client;
use npcc_appliance::manage::protocol::{Reply, Request};
use npcc_appliance::report::lossless::{Buffer, Group};
use npcc_appliance::report::model::Snapshot;
use npcc_appliance::report::{lossless_table, table, workers};

/// What can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Traffic, drops and link of each port
    Ports,
    /// Which worker has which ports, and what crosses between them
    Workers,
    /// Depth, peak, drops and marks of each egress queue
    Queues,
    /// RoCEv2 flows: QPNs, evidence, bytes, CNPs
    Flows,
    /// CNPs, NAKs and CE by host
    Hosts,
    /// The latest CNPs and why each was sent
    Log,
    /// Pause sent and obeyed, backends, storms
    Pfc,
    /// The shared buffer: groups, headroom, watermarks
    Buffer,
    /// Effective queues, maps and headroom
    Qos,
    /// Watched queues: zone, trend, decisions, CNPs, reaction time
    Npcc,
}

pub(super) fn run(args: &ShowArgs) -> Result<(), Failure> {
    loop {
        say(&once(args)?)?;
        if !args.watch {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
        if !args.json {
            // Home and clear, as watch(1) does.
            say("\x1b[H\x1b[2J")?;
        }
    }
}

fn once(args: &ShowArgs) -> Result<String, Failure> {
    let request = match args.what {
        What::Flows => Request::Flows,
        What::Hosts => Request::Hosts,
        What::Log => Request::Log,
        _ => Request::Snapshot,
    };
    let reply = client::ask(&args.socket, &request)?;
    Ok(match (args.what, reply) {
        (What::Flows, Reply::Flows(flows)) if args.json => json(&flows)?,
        (What::Flows, Reply::Flows(flows)) => table::flows(&flows),
        (What::Hosts, Reply::Hosts(hosts)) if args.json => json(&hosts)?,
        (What::Hosts, Reply::Hosts(hosts)) => table::hosts(&hosts),
        (What::Log, Reply::Log(lines)) if args.json => json(&lines)?,
        (What::Log, Reply::Log(lines)) => lines.into_iter().map(|line| line + "\n").collect(),
        (What::Npcc, Reply::Snapshot(snapshot)) if args.json => json(&snapshot.npcc)?,
        (What::Npcc, Reply::Snapshot(snapshot)) => table::npcc(&snapshot),
        (What::Qos, Reply::Snapshot(snapshot)) if args.json => json(&snapshot.qos)?,
        (What::Buffer, Reply::Snapshot(snapshot)) if args.json => json(&Held::of(&snapshot))?,
        (What::Ports | What::Queues | What::Pfc, Reply::Snapshot(snapshot)) if args.json => {
            json(&snapshot.ports)?
        }
        (What::Workers, Reply::Snapshot(snapshot)) if args.json => json(&snapshot.workers)?,
        (What::Workers, Reply::Snapshot(snapshot)) => workers::shown(&snapshot),
        (What::Ports, Reply::Snapshot(snapshot)) => table::ports(&snapshot),
        (What::Queues, Reply::Snapshot(snapshot)) => table::queues(&snapshot),
        (What::Pfc, Reply::Snapshot(snapshot)) => lossless_table::pfc(&snapshot),
        (What::Buffer, Reply::Snapshot(snapshot)) => lossless_table::buffer(&snapshot),
        (What::Qos, Reply::Snapshot(snapshot)) => lossless_table::qos(&snapshot),
        (_, Reply::Error(message)) => {
            return Err(anyhow::anyhow!("the switch refused: {message}").into());
        }
        _ => {
            return Err(anyhow::anyhow!(
                "the switch answered something else; are both the same version?"
            )
            .into());
        }
    })
}

/// `show buffer --json`
#[derive(serde::Serialize)]
struct Held<'a> {
    buffer: Buffer,
    ports: Vec<HeldBy<'a>>,
}

#[derive(serde::Serialize)]
struct HeldBy<'a> {
    name: &'a str,
    lossless_lost: u64,
    groups: &'a [Group],
}

impl Held<'_> {
    fn of(snapshot: &Snapshot) -> Held<'_> {
        let ports = snapshot.ports.iter().map(|port| HeldBy {
            name: &port.name,
            lossless_lost: port.lossless_lost,
            groups: &port.groups,
        });
        Held {
            buffer: snapshot.buffer,
            ports: ports.collect(),
        }
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).context("cannot encode the answer")?;
    Ok(text + "\n")
}

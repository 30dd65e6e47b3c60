//! `npcc-switch show WHAT`

use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;

use super::{Failure, ShowArgs, say};
use crate::manage::client;
use crate::manage::protocol::{Reply, Request};
use crate::report::table;

/// What can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Traffic, drops and link of each port
    Ports,
    /// Depth, peak, drops and marks of each egress queue
    Queues,
    /// RoCEv2 flows: QPNs, evidence, bytes, CNPs
    Flows,
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
        What::Ports | What::Queues | What::Npcc => Request::Snapshot,
    };
    let reply = client::ask(&args.socket, &request)?;
    Ok(match (args.what, reply) {
        (What::Flows, Reply::Flows(flows)) if args.json => json(&flows)?,
        (What::Flows, Reply::Flows(flows)) => table::flows(&flows),
        (What::Npcc, Reply::Snapshot(snapshot)) if args.json => json(&snapshot.npcc)?,
        (What::Npcc, Reply::Snapshot(snapshot)) => table::npcc(&snapshot),
        (What::Ports | What::Queues, Reply::Snapshot(snapshot)) if args.json => {
            json(&snapshot.ports)?
        }
        (What::Ports, Reply::Snapshot(snapshot)) => table::ports(&snapshot),
        (What::Queues, Reply::Snapshot(snapshot)) => table::queues(&snapshot),
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

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).context("cannot encode the answer")?;
    Ok(text + "\n")
}

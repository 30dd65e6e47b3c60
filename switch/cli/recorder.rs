//! `npcc-switch recorder`: what the flight recorder holds, of a switch that runs or of one that crashed.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use npcc_engine::recorder::{place, read};

use super::socket::SocketArg;
use super::{Failure, say};

#[derive(Debug, Args)]
pub(super) struct RecorderArgs {
    /// File to read; default is the recorder of the switch with this management socket
    #[arg(value_name = "FILE", conflicts_with = "previous")]
    file: Option<PathBuf>,
    /// Read what the run before left
    #[arg(long)]
    previous: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

pub(super) fn run(args: &RecorderArgs) -> Result<(), Failure> {
    let socket = &args.socket.path;
    let (path, reading) = match &args.file {
        Some(file) => (file.clone(), read::file(file)),
        None if args.previous => {
            let path = place::previous(socket);
            let reading = place::read(&path);
            (path, reading)
        }
        None => {
            let found = place::find(socket).map(|(_, reading)| reading);
            (place::beside(socket), found)
        }
    };
    let reading = reading.with_context(|| {
        let path = path.display();
        format!("cannot read {path} (one in a switch's own memory can be read once the switch has ended)")
    });
    let reading = reading?;
    if !args.json {
        return say(&reading.to_string());
    }
    let text = serde_json::to_string_pretty(&reading).context("cannot encode the records")?;
    say(&(text + "\n"))
}

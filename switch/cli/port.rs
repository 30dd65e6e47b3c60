//! `npcc-switch port NAME up|down`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Failure, clear};
use npcc_appliance::manage::protocol::Request;

/// What a port may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum State {
    /// Frames pass whenever the link is up
    Up,
    /// Nothing passes, and the peer sees the link down where the driver can show it
    Down,
}

#[derive(Debug, Args)]
pub(super) struct PortArgs {
    /// The port
    name: String,
    /// What it may be
    state: State,
    /// Management socket of the switch
    #[arg(long, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

pub(super) fn run(args: &PortArgs) -> Result<(), Failure> {
    let request = Request::Port {
        name: args.name.clone(),
        up: args.state == State::Up,
    };
    clear::ask(&args.socket, &request)
}

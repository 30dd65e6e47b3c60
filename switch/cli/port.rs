//! `npcc-switch port NAME up|down`

use clap::{Args, ValueEnum};
use npcc_api::protocol::Request;

use super::socket::SocketArg;
use super::{Failure, change};

/// Administrative state of a port.
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
    /// New administrative state
    state: State,
    #[command(flatten)]
    socket: SocketArg,
}

pub(super) fn run(args: &PortArgs) -> Result<(), Failure> {
    let request = Request::Port {
        name: args.name.clone(),
        up: args.state == State::Up,
    };
    change::ask(&args.socket.path, &request)
}

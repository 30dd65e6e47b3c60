//! `npcc-switch cnp send`: CNPs by an operator's order, to find out how a card responds.

use std::net::IpAddr;

use clap::{Args, Subcommand};
use npcc_api::cnps::{CnpOrder, MOST};
use npcc_api::protocol::Request;

use super::socket::SocketArg;
use super::{Failure, args, change};

#[derive(Debug, Args)]
pub(super) struct CnpArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Send CNPs to one queue pair, 1 ms apart, whatever NPCC knows of it and whatever npcc.action and npcc.hosts are
    Send {
        /// Address of the host that is to slow down
        #[arg(long, value_name = "SENDER")]
        to: IpAddr,
        /// Address of the other end of its connection, in whose name the CNPs go
        #[arg(long, value_name = "RECEIVER")]
        from: IpAddr,
        /// Queue pair at the host that is to slow down, such as 17 or 0x11
        #[arg(long, value_name = "N", value_parser = args::number)]
        qp: u32,
        /// Number of CNPs, 1000 at most
        #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
        count: u32,
    },
}

pub(super) fn run(args: &CnpArgs) -> Result<(), Failure> {
    let What::Send {
        to,
        from,
        qp,
        count,
    } = args.what;
    let order = CnpOrder {
        to,
        from,
        queue_pair: qp,
        count,
    };
    change::ask(&args.socket.path, &Request::SendCnps(order))
}

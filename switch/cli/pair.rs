//! `npcc-switch pair`: queue pairs known by other means than the switch's own.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use npcc_api::client::blocking as client;
use npcc_api::pairs::ListedPair;
use npcc_api::peers::PeerName;
use npcc_api::protocol::{Reply, Request};
use npcc_config::regular::{self, ReadError};

use super::socket::SocketArg;
use super::{Failure, args};

#[derive(Debug, Args)]
pub(super) struct PairArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say that two queue pairs are one connection
    Add {
        /// Sender of the data
        src: IpAddr,
        /// Receiver of the data
        dst: IpAddr,
        /// Queue pair at the receiver, such as 17 or 0x11
        #[arg(value_parser = args::number)]
        dest_qp: u32,
        /// Queue pair at the sender
        #[arg(value_parser = args::number)]
        sender_qp: u32,
    },
    /// Forget the pair of these packets, both ways
    Del {
        /// Sender of the data
        src: IpAddr,
        /// Receiver of the data
        dst: IpAddr,
        /// Queue pair at the receiver
        #[arg(value_parser = args::number)]
        dest_qp: u32,
    },
    /// Give the switch what another box saw, or what a host's agent knows: rows as `show ends` prints them, or leases
    Suggest {
        /// The file of JSON lines; - for standard input
        #[arg(default_value = "-")]
        file: PathBuf,
        /// Name of the box that saw the ends
        #[arg(
            long,
            value_name = "BOX",
            required_unless_present = "host",
            conflicts_with = "host"
        )]
        peer: Option<String>,
        /// Name of the host whose agent knows the queue pairs
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
    },
    /// Forget all that a box reported, and believe nothing of it until `pair trust` or a restart
    Distrust {
        /// Name of the box, or `host:NAME` for the agent of a host
        #[arg(value_name = "BOX")]
        peer: String,
    },
    /// Believe a distrusted box again
    Trust {
        /// Name of the box, or `host:NAME` for the agent of a host
        #[arg(value_name = "BOX")]
        peer: String,
    },
}

pub(super) fn run(args: &PairArgs) -> Result<(), Failure> {
    let request = match &args.what {
        What::Suggest { file, peer, host } => {
            let name = match (peer, host) {
                (Some(peer), _) => PeerName::Peer(peer.clone()),
                (None, host) => PeerName::Host(host.clone().unwrap_or_default()),
            };
            return super::ends::suggest(&args.socket.path, &name, &text_of(file)?);
        }
        What::Distrust { peer } => Request::Trust {
            peer: peer.clone(),
            trusted: false,
        },
        What::Trust { peer } => Request::Trust {
            peer: peer.clone(),
            trusted: true,
        },
        What::Add {
            src,
            dst,
            dest_qp,
            sender_qp,
        } => Request::AddPair(ListedPair {
            src: *src,
            dst: *dst,
            dest_qp: *dest_qp,
            sender_qp: *sender_qp,
        }),
        What::Del { src, dst, dest_qp } => Request::DeletePair {
            src: *src,
            dst: *dst,
            dest_qp: *dest_qp,
        },
    };
    match client::ask(&args.socket.path, &request)? {
        Reply::Done => Ok(()),
        other => Err(other.unexpected().into()),
    }
}

/// A list, from a regular file or from standard input.
fn text_of(file: &Path) -> anyhow::Result<String> {
    let (name, read) = if file.as_os_str() == "-" {
        let input = std::io::stdin().lock();
        ("standard input".to_owned(), regular::read_from(input))
    } else {
        (file.display().to_string(), regular::read(file))
    };
    let bytes = read.map_err(|error| match error {
        ReadError::TooLong => anyhow!("cannot read {name}: {error}: split the list into parts"),
        error => anyhow!("cannot read {name}: {error}"),
    })?;
    String::from_utf8(bytes).with_context(|| format!("cannot read {name}"))
}

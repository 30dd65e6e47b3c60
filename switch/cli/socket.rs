//! The option `--socket` of every command that talks to a running switch.

use std::path::PathBuf;

use clap::Args;

/// Management socket that a command connects to.
#[derive(Debug, Args)]
pub(super) struct SocketArg {
    /// Management socket of the switch
    #[arg(
        id = "socket",
        long = "socket",
        env = "NPCC_SOCKET",
        global = true,
        value_name = "PATH",
        default_value = npcc_config::model::DEFAULT_SOCKET
    )]
    pub(super) path: PathBuf,
}

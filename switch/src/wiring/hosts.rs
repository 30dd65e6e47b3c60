//! Linux's side of the ports.

use npcc_config::Config;

use super::ports::OpenPort;
use crate::linux_io::{HostInterface, Resolve};

/// An interface in Linux for each port and VLAN, and who resolves next hops. There are none yet: what is punted is counted as of a
/// port without an interface.
///
/// # Errors
/// What could not be made there, and what to do about it.
pub fn open(
    _config: &Config,
    _ports: &[OpenPort],
) -> anyhow::Result<(Vec<HostInterface>, Resolve)> {
    Ok((Vec::new(), Box::new(|_| ())))
}

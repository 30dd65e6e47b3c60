//! Host diagnosis for the switch: each problem, its place, its severity, and the command that fixes it.
//!
//! Law: no check changes the host, and all information about it comes through [`Host`], so each finding is reproduced
//! in a tree of files (`tests/findings.rs`). Missing information is never a finding.

#![forbid(unsafe_code)]

mod access;
mod clashes;
mod clock;
mod cores;
mod drivers;
mod finding;
mod firmware;
mod host;
mod hugepages;
mod interfaces;
mod pause;
mod pci;
mod running;
mod shared;

pub use drivers::DriverFile;
pub use finding::{Check, Diagnosis, Finding, Mend, Severity};
pub use host::Host;
pub use hugepages::nodes;
use npcc_config::Config;
pub use pause::rejected_ports;
pub use running::RunningPort;

/// Examines a host; checks that need a configuration are skipped without one. `drivers` are the files that the configuration's ports
/// need.
#[must_use]
pub fn examine(host: &Host, config: Option<&Config>, drivers: &[DriverFile]) -> Diagnosis {
    let mut found = Vec::new();
    hugepages::examine(host, config, &mut found);
    clock::examine(host, &mut found);
    if let Some(config) = config {
        pci::examine(host, config, drivers, &mut found);
        pause::examine(host, config, &mut found);
        drivers::examine(host, drivers, &mut found);
        cores::examine(host, config, &mut found);
        interfaces::examine(host, config, &mut found);
        clashes::examine(host, config, &mut found);
        access::examine(host, config, &mut found);
    }
    Diagnosis::of(found, config.is_some())
}

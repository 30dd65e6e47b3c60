//! Looks at a host with the eyes of the switch: what is wrong, where, how bad, and the command that mends it.
//!
//! Law: nothing here changes anything, and all that is known of the host comes through [`Host`], so each finding is made to
//! happen in a tree of files (`tests/findings.rs`). What a host does not tell is not found fault with.

#![forbid(unsafe_code)]

mod access;
mod clashes;
mod clock;
mod cores;
mod cpu_list;
mod finding;
mod host;
mod hugepages;
mod interfaces;
mod pci;

pub use finding::{Check, Diagnosis, Finding, Mend, Severity};
pub use host::Host;
use npcc_config::Config;

/// Examines a host; what only a configuration asks for is left out where there is none.
#[must_use]
pub fn examine(host: &Host, config: Option<&Config>) -> Diagnosis {
    let mut found = Vec::new();
    hugepages::examine(host, config, &mut found);
    clock::examine(host, &mut found);
    if let Some(config) = config {
        pci::examine(host, config, &mut found);
        cores::examine(host, config, &mut found);
        interfaces::examine(host, config, &mut found);
        clashes::examine(host, config, &mut found);
        access::examine(host, config, &mut found);
    }
    Diagnosis::of(found, config.is_some())
}

//! `feed.yaml`: the settings of `npcc-feed`.

mod check;
mod secret;

use std::path::{Path, PathBuf};

use npcc_config::Report;
use npcc_config::document::{self, Document};
use serde::Deserialize;

use crate::name::Name;
use crate::sync::Limits;

pub(crate) use check::check_bus;
pub use secret::{SecretError, read_secret};

/// Settings of a box's feed: the whole file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Version of the format: 1.
    #[serde(default = "first_version")]
    pub version: u32,
    /// Site: the second token of every subject.
    pub site: Name,
    /// Name of this box: the third token of what it publishes.
    #[serde(rename = "box")]
    pub name: Name,
    /// Sockets of the own switch.
    #[serde(default)]
    pub switch: Switch,
    /// Servers of the bus, and how this box is known to them.
    pub bus: Bus,
    /// Boxes whose ends are taken.
    #[serde(default)]
    pub peers: Vec<Name>,
    /// True to pass what hosts' agents report to the switch.
    #[serde(default)]
    pub leases: bool,
    /// Bounds of what this box and each peer may hold and send.
    #[serde(default)]
    pub limits: Limits,
}

const fn first_version() -> u32 {
    1
}

npcc_pipeline::defaults! {
    /// Sockets of the own switch.
    #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Switch {
        /// Read-only socket: `telemetry.read_only_socket` of the switch.
        pub socket: PathBuf = "/run/npcc-switch-ro.sock".into(),
        /// Socket for reports of ends: the read-only one, where the group npcc-feed may report; `null`: nothing is reported to the switch.
        pub control: Option<PathBuf> = Some("/run/npcc-switch-ro.sock".into()),
    }
}

/// Servers of the bus, and how this box is known to them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Addresses, such as `nats://10.0.0.1:4222` or `tls://nats-1:4222`; another one is tried when one fails.
    pub servers: Vec<String>,
    /// User name; goes with `password_file`.
    #[serde(default)]
    pub user: Option<String>,
    /// File with the password.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// File with the seed of an NKey.
    #[serde(default)]
    pub nkey_file: Option<PathBuf>,
    /// File with a user's JWT and the seed of its NKey.
    #[serde(default)]
    pub credentials_file: Option<PathBuf>,
    /// Files for TLS.
    #[serde(default)]
    pub tls: Option<Tls>,
}

/// Files for TLS.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Certificates of the authorities that sign the servers'.
    pub ca: PathBuf,
    /// Certificate of this box, where the servers verify it.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Its key.
    #[serde(default)]
    pub key: Option<PathBuf>,
}

impl Settings {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file; a secret that others may read is among it.
    pub fn load(path: &Path) -> Result<Document<Settings>, Report> {
        document::load(path, "bus", check::check)
    }

    /// Checks a text; `name` is its name in diagnostics.
    ///
    /// # Errors
    /// Everything that is wrong with the text, in its order; a secret that others may read is among it.
    pub fn parse(name: &str, text: &str) -> Result<Document<Settings>, Report> {
        document::parse(name, text, check::check)
    }

    /// Returns the prefix of the subjects under which this box publishes.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("npcc.{}.{}", self.site, self.name)
    }

    /// Returns a subject under which this box publishes.
    #[must_use]
    pub fn subject(&self, rest: &str) -> String {
        format!("{}.{rest}", self.prefix())
    }
}

#[cfg(test)]
mod tests;

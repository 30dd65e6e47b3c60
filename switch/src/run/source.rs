//! What the appliance is asked to run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use npcc_config::Loaded;
use npcc_config::ipnet::IpNet;

use crate::keep::store::Store;

/// How to run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Prefixes to route beside those of the file, until the first reload; dealt round the neighbours of the last port.
    pub prefixes: Vec<IpNet>,
    /// Program and arguments to run where the last run crashed; none to report nothing.
    pub after_crash: Vec<OsString>,
    /// What the process before left.
    pub store: Arc<Store>,
}

/// What to run, and where it came from.
#[derive(Debug)]
pub struct Source {
    /// The program's version, as every output shows it.
    pub version: String,
    /// The file, read again by `reload`.
    pub path: PathBuf,
    /// What it held.
    pub loaded: Loaded,
}

//! Inputs of a run: configuration and options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use npcc_config::Loaded;
use npcc_config::ipnet::IpNet;

use npcc_engine::store::Store;

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Time after which the switch stops; `None` to run until a signal.
    pub duration: Option<Duration>,
    /// Prefixes to route beside those of the file, until the first reload; distributed over the neighbours of the last port in turn.
    pub prefixes: Vec<IpNet>,
    /// Program and arguments to run if the last run crashed; empty to report nothing.
    pub after_crash: Vec<OsString>,
    /// Descriptors that the previous process left.
    pub store: Arc<Store>,
}

/// Configuration to run, and its origin.
#[derive(Debug)]
pub struct Source {
    /// The program's version, as every output shows it.
    pub version: String,
    /// The file, read again by `reload`.
    pub path: PathBuf,
    /// Contents of the file.
    pub loaded: Loaded,
}

//! The Python of the tests: the virtual environment that `scripts/test` sets up.

use std::env;
use std::path::{Path, PathBuf};

/// Returns the path of the Python interpreter with scapy and jsonschema: `NPCC_PYTHON`, else the one of `.venv`.
pub fn python() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::var_os("NPCC_PYTHON").map_or_else(|| root.join(".venv/bin/python"), PathBuf::from)
}

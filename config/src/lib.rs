//! Configuration file of npcc-switch (YAML): types, units, defaults, and checks that point at line and column.
//!
//! [`load()`] and [`parse`] give either a [`Config`] that can be run, with [warnings](Loaded), or a
//! [`Report`] of everything that is wrong, each with file, line, column, excerpt and hint.
//!
//! How: one event pass builds a tree whose nodes know their place (`tree`); scalars are resolved
//! by `serde_yaml`; serde reads the model from the tree and every mistake is collected (`de`);
//! the relations between values are checked (`check`); what passes is resolved ([`resolved`]).
//!
//! ```
//! let text = "\
//! ports:
//!   - { name: dc0, device: net_null0, mtu: 64 }
//! prots: []
//! ";
//! let report = npcc_config::parse("lab.yaml", text).unwrap_err();
//! let text = report.to_string();
//! assert!(text.contains("lab.yaml:2:42: error: `64` is not a whole number from 576 to 9198"));
//! assert!(text.contains("lab.yaml:3:1: error: unknown key `prots`"));
//! assert!(text.contains("hint: did you mean `ports`?"));
//! ```
//!
//! No device is touched here: whether a port exists is found out when the switch starts.

#![forbid(unsafe_code)]

pub mod cards;
mod check;
pub mod cpu_list;
mod de;
mod diag;
mod difference;
pub mod document;
mod load;
pub mod model;
mod patch;
mod printable;
pub mod regular;
pub mod resolved;
pub mod sizing;
mod subnets;
mod suggest;
mod tree;
pub mod units;

pub use diag::{Diagnostic, Report, Severity};
pub use difference::{Difference, differences};
pub use ipnet;
pub use load::{Loaded, load, parse, patched, unchecked};
pub use npcc_pipeline::named;
pub use patch::{Overrides, is_within};
pub use printable::printable;
pub use resolved::Config;
pub use sizing::Sizing;

/// Returns the JSON schema of the configuration file, for editors.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(model::ConfigFile).to_value()
}

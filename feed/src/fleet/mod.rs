//! Records of a box for its fleet: state, hosts, decisions and events, published as JSON under `npcc.SITE.BOX.`; and what a reader makes
//! of them.
//!
//! docs/fleet.md has the schema. Each record has `v` (version of the schema), `site`, `box` and `at`, in microseconds since the Unix epoch.

pub mod history;
mod records;
mod state;
pub mod table;

pub use records::spawn_records;

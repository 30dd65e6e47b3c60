//! Records of a box for its fleet: state, hosts, decisions and events, published as JSON under `npcc.SITE.BOX.`; and what a reader makes
//! of them.
//!
//! [`schema()`] returns the JSON schema; docs/fleet.md describes it. Each record has `v` (version of the schema), `site`, `box` and `at`, in microseconds since the Unix epoch.

pub mod history;
mod identity;
mod records;
mod schema;
mod state;
pub mod table;

pub use records::spawn_records;
pub use schema::schema;

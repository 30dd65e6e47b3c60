//! Forms of the records, and their JSON schema.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::state::SwitchState;
use crate::agent::LeaseMessage;
use crate::name::Name;
use crate::run::FeedReport;

/// Version of the records' schema.
pub(super) const VERSION: u8 = 1;

/// Record of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Record<T> {
    /// Version of the schema.
    #[schemars(extend("const" = VERSION))]
    pub(super) v: u8,
    /// Site of the box.
    pub(super) site: Name,
    /// Name of the box.
    #[serde(rename = "box")]
    pub(super) sender: Name,
    /// Time of the record, in microseconds since the Unix epoch.
    pub(super) at: u64,
    #[serde(flatten)]
    pub(super) content: T,
}

/// State of a box, every second.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct State {
    /// State of the switch; `null` while it does not answer.
    pub(super) switch: Option<SwitchState>,
    /// Number of hosts that do not respond to CNPs; `null` if the switch did not answer the last roll-up.
    pub(super) hosts_unresponsive: Option<usize>,
    /// State of the feed.
    pub(super) feed: FeedReport,
}

/// Roll-up of a host, every minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Host {
    /// Row of `npcc-switch show hosts --json`.
    pub(super) host: Map<String, Value>,
}

/// Decision of NPCC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Decision {
    /// Line of `npcc-switch show log --json`.
    pub(super) line: Map<String, Value>,
}

/// Event of the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Event {
    /// Line of the log.
    Line {
        /// Line of `npcc-switch show log --json`.
        line: Map<String, Value>,
    },
    /// More lines came than were read.
    Gap {
        /// Always true.
        #[schemars(extend("const" = true))]
        gap: bool,
    },
}

/// Returns the JSON schema of each record that boxes and agents publish, by the last part of its subject.
#[must_use]
pub fn schema() -> Value {
    fn of<T: JsonSchema>() -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        settings.into_generator().into_root_schema_for::<T>().into()
    }
    json!({
        "state": of::<Record<State>>(),
        "hosts": of::<Record<Host>>(),
        "decisions": of::<Record<Decision>>(),
        "events": of::<Record<Event>>(),
        "leases": of::<LeaseMessage>(),
    })
}

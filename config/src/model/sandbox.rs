//! `sandbox:` what the running switch may ask of the system.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the switch gives away, once it runs, what it needed to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// System calls and capabilities that forwarding does not need are refused; a switch that cannot have that does not start.
    #[default]
    On,
    /// The same where the system allows it; where it does not, the switch says so and runs without.
    Try,
    /// All that whoever started it may do.
    Off,
}

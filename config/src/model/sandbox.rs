//! `sandbox:` system calls, capabilities and files that remain after startup.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Drop privileges that only startup needs: system calls, capabilities, files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// System calls, capabilities and files that forwarding does not need are denied; the switch refuses to start if that is impossible.
    #[default]
    On,
    /// Restricted as with `on`, and the kernel logs every system call that is refused (audit).
    Log,
    /// Restricted as with `on` where the system supports it; elsewhere the switch reports it and runs without a sandbox.
    Try,
    /// No restriction: the switch keeps all privileges of the user who started it.
    Off,
}

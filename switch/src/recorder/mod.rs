//! Flight recorder: the last decisions, messages and malformed frames, and when each thread last moved, in memory that survives a crash.
//!
//! The memory is a file beside the management socket, in a tmpfs (`/run/npcc-switch.recorder`), mapped. A store into it survives when the
//! process is killed, for whatever reason. The next start renames the file (`.recorder.previous`) and begins a new one. No service
//! manager is needed.
//!
//! Each ring of records ([`npcc_heap::records`]) has one writer: a worker for its malformed frames, the control thread for CNPs and for
//! refusals (they are the decision log itself, not a copy), any thread for messages, under a lock. A record that was being written when
//! the process died is recognised. The management thread notes when each thread last moved, which costs the others nothing.

pub mod beats;
pub mod layout;
pub mod read;
pub mod said;
pub mod start;

use std::path::{Path, PathBuf};

/// Path of the recorder of the switch with this management socket.
#[must_use]
pub fn path(socket: &Path) -> PathBuf {
    socket.with_extension("recorder")
}

/// Path of the recorder of the last run of the switch with this management socket.
#[must_use]
pub fn previous(socket: &Path) -> PathBuf {
    socket.with_extension("recorder.previous")
}

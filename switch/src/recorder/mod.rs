//! The flight recorder: what the switch decided, said and threw away last, and when each of its threads last moved, in memory that is
//! there after it has crashed.
//!
//! The memory is a file beside the management socket, in a tmpfs (`/run/npcc-switch.recorder`), mapped: who writes stores words, and
//! what a process stored stays when it is killed, however that comes about. The next start keeps it under another name
//! (`.recorder.previous`) and begins a new one. No service manager is needed for it.
//!
//! Who writes what, each alone: a worker its ring of odd frames (on the way of a frame that is dropped for an odd reason, and of no
//! other), the control thread the ring of decisions, whoever has something to say the ring of messages, under a lock; the management
//! thread looks when each other last moved, which costs them nothing.
//!
//! Law: a record that was being written when the process died is told apart from one that is whole ([`ring`]).

pub mod beats;
pub mod decisions;
pub mod frames;
pub mod layout;
pub mod read;
pub mod ring;
pub mod said;
pub mod start;

use std::path::{Path, PathBuf};

/// Where the recorder of the switch with this management socket is.
#[must_use]
pub fn path(socket: &Path) -> PathBuf {
    socket.with_extension("recorder")
}

/// Where that of its last run is.
#[must_use]
pub fn previous(socket: &Path) -> PathBuf {
    socket.with_extension("recorder.previous")
}

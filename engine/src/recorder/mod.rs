//! Flight recorder: the last decisions, messages and malformed frames, and when each thread last moved, in memory that survives a crash.
//!
//! The memory is a file in a tmpfs, beside the management socket (`/run/npcc-switch.recorder`) or in `/dev/shm`, mapped ([`place`]). A store
//! into it survives when the process is killed, for whatever reason. The next start keeps it as `.recorder.previous` and begins a new one.
//! Without a tmpfs the memory is a memfd. The service manager's descriptor store keeps it; without a service manager, the kernel frees it
//! when the process is killed.
//!
//! Each ring of records ([`npcc_heap::records`]) has one writer: a worker for its malformed frames, the control thread for CNPs and for
//! refusals (they are the decision log itself, not a copy), any thread for messages, under a lock. A record that was being written when
//! the process died is recognised. The management thread notes when each thread last moved, which costs the others nothing.

pub mod beats;
pub mod layout;
pub mod place;
pub mod read;
pub mod said;
pub mod start;

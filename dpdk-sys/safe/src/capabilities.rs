//! Capabilities of the process (capabilities(7)), dropped permanently by all its threads.

use crate::errno::Errno;

/// Capability that this project needs at some time; the numbers are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// `CAP_NET_ADMIN`: interfaces, addresses, routes, TAPs.
    NetAdmin = 12,
    /// `CAP_NET_RAW`: raw queues of cards that share them with the kernel.
    NetRaw = 13,
    /// `CAP_IPC_LOCK`: locked memory.
    IpcLock = 14,
}

impl Capability {
    /// Returns its name without `CAP_`, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Capability::NetAdmin => "net_admin",
            Capability::NetRaw => "net_raw",
            Capability::IpcLock => "ipc_lock",
        }
    }
}

/// Drops all capabilities but `keep` in every thread of the process, DPDK's own included. A thread does not gain capabilities that it
/// lacks. Threads that are created later have those of their creators.
///
/// # Errors
/// The kernel's reason, or [`Errno`] of `EBUSY`: a thread did not comply within two seconds.
pub fn keep_capabilities(keep: &[Capability]) -> Result<(), Errno> {
    let set = keep.iter().fold(0, |set, one| set | 1 << *one as u8);
    // SAFETY: the function takes a number. It sets a handler for SIGURG while it runs, which makes two system calls and touches
    // nothing else; system calls it interrupts are restarted or tell so, as for any signal.
    Errno::check(unsafe { dpdk_sys::npcc_keep_capabilities(set) })
}

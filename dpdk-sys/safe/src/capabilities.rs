//! What a process may do beyond its user's rights (capabilities(7)), given away for good by all its threads.

use crate::errno::Errno;

/// A capability this project needs at some time; the numbers are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Interfaces, addresses, routes, TAPs.
    NetAdmin = 12,
    /// Raw queues of cards that share them with the kernel.
    NetRaw = 13,
    /// Memory that stays where it is.
    IpcLock = 14,
}

impl Capability {
    /// As people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Capability::NetAdmin => "net_admin",
            Capability::NetRaw => "net_raw",
            Capability::IpcLock => "ipc_lock",
        }
    }
}

/// Has every thread of the process, those of DPDK's own included, give away all capabilities but these. What a thread has not, it does not
/// get. Threads that are made later have what their makers have.
///
/// # Errors
/// The kernel's reason, or [`Errno`] of `EBUSY`: a thread did not obey in two seconds.
pub fn keep_capabilities(keep: &[Capability]) -> Result<(), Errno> {
    let set = keep.iter().fold(0, |set, one| set | 1 << *one as u8);
    // SAFETY: the function takes a number. It sets a handler for SIGURG while it runs, which makes two system calls and touches
    // nothing else; system calls it interrupts are restarted or tell so, as for any signal.
    Errno::check(unsafe { dpdk_sys::npcc_keep_capabilities(set) })
}

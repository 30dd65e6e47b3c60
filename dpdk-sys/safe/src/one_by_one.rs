//! Unsegmented frames of a veth: an XDP program prevents senders' large segments (TSO), which a veth does not cut.

use std::ffi::CString;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::errno::Errno;

/// Guard: as long as it lives, the kernel delivers the frames of a veth one by one, none larger than the MTU.
///
/// It holds an XDP program that passes every frame: with one at this end, the kernel sends no large segments from the other, in whatever
/// network namespace that is.
#[derive(Debug)]
pub struct OneByOne(#[expect(dead_code, reason = "closing it ends it")] OwnedFd);

impl OneByOne {
    /// Attaches the program; `None` if the interface, of the calling thread's network namespace, is no veth.
    ///
    /// # Errors
    /// The kernel's reason: `EPERM` without `CAP_NET_ADMIN` and `CAP_BPF`, `EBUSY` when another program is there, `EINVAL` before Linux 5.9.
    pub fn at(interface: &str) -> Result<Option<OneByOne>, Errno> {
        let Ok(name) = CString::new(interface) else {
            return Ok(None);
        };
        // SAFETY: the string lives through the call, which reads it only.
        let fd = unsafe { dpdk_sys::npcc_one_by_one(name.as_ptr()) };
        match Errno::check(fd) {
            // SAFETY: a descriptor that the call has just opened for us, and nobody else knows.
            Ok(()) => Ok(Some(OneByOne(unsafe { OwnedFd::from_raw_fd(fd) }))),
            Err(errno) if errno.raw() == dpdk_sys::ENODEV => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

//! Descriptors to sleep on until a port receives: a device's receive interrupt ([`RxQueue::interrupt`](crate::RxQueue::interrupt)), or the
//! kernel's packet socket under a virtual device ([`PacketSockets`]), which is readable as long as frames wait in it.
//!
//! Law: an interrupt has a descriptor of its own (a duplicate), so it stays valid whatever happens to the port; its events end then.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// Descriptor that becomes readable when a frame is there.
#[derive(Debug)]
pub struct RxInterrupt {
    file: File,
    /// True if it counts and must be read to become silent; any other is silent when nothing waits.
    counts: bool,
}

impl RxInterrupt {
    /// Creates an interrupt on a duplicate of `fd`; `None` when that is no open descriptor.
    ///
    /// # Safety
    /// Nobody closes `fd` during the call. If that cannot be excluded, the descriptor may be that of a file opened since then: the caller looks
    /// at what the duplicate is of.
    pub(crate) unsafe fn duplicate(fd: RawFd) -> Option<RxInterrupt> {
        if fd < 0 {
            return None;
        }
        // SAFETY: not -1, and open during the call as the caller says.
        let own = unsafe { BorrowedFd::borrow_raw(fd) }
            .try_clone_to_owned()
            .ok()?;
        let link = fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
        Some(RxInterrupt {
            file: File::from(own),
            counts: link.as_os_str() == "anon_inode:[eventfd]",
        })
    }

    /// Makes it silent after it became readable.
    pub fn hush(&self) {
        if self.counts {
            // Nothing to read: it is silent.
            let _ = (&self.file).read(&mut [0; 8]);
        }
    }
}

impl AsFd for RxInterrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Packet and AF_XDP sockets that this process has open.
#[derive(Debug)]
pub struct PacketSockets(Vec<RawFd>);

impl PacketSockets {
    /// Returns the sockets open now.
    #[must_use]
    pub fn now() -> PacketSockets {
        let Ok(open) = fs::read_dir("/proc/self/fd") else {
            return PacketSockets(Vec::new());
        };
        let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        PacketSockets(numbers.filter(|fd| is_packet_socket(*fd)).collect())
    }

    /// Returns an interrupt for each socket opened since then: a port's own, when that is all that was opened.
    #[must_use]
    pub fn opened_since(&self) -> Vec<RxInterrupt> {
        let new = PacketSockets::now().0.into_iter();
        let new = new.filter(|fd| !self.0.contains(fd));
        // SAFETY: `port_start` calls this between two steps of opening a port, when no other thread opens or closes descriptors of devices; of a
        // number that is reused all the same, what the duplicate is of is looked at below.
        let own = new.filter_map(|fd| unsafe { RxInterrupt::duplicate(fd) });
        own.filter(|one| is_packet_socket(one.file.as_raw_fd()))
            .collect()
    }
}

/// Returns true if a descriptor is of a packet or AF_XDP socket.
fn is_packet_socket(fd: RawFd) -> bool {
    // SAFETY: asks for an option of a descriptor, whatever that is.
    unsafe { dpdk_sys::npcc_is_packet_socket(fd) }
}

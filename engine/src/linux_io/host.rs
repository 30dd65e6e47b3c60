//! Linux side of a port, as the housekeeping thread uses it.

use std::io;
use std::os::fd::BorrowedFd;

use npcc_pipeline::punt::{Ask, Place};

/// Interface of the host by which frames pass in and out, such as a TAP. No call waits: without a frame to read, or room, the error is
/// [`io::ErrorKind::WouldBlock`].
pub trait HostPort: Send {
    /// Takes a frame that the host sends, without FCS; returns its length.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::WouldBlock`] if there is none; with another error if the interface is gone.
    fn recv(&self, frame: &mut [u8]) -> io::Result<usize>;

    /// Gives the host a frame; returns the bytes taken.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::WouldBlock`] if it has no room; with another error if the interface is down or gone.
    fn send(&self, frame: &[u8]) -> io::Result<usize>;

    /// Returns the descriptor that becomes readable when the host sends.
    fn as_fd(&self) -> BorrowedFd<'_>;
}

/// Host's side of one port and VLAN.
#[derive(derive_more::Debug)]
#[debug("HostInterface {{ place: {place:?}, .. }}")]
pub struct HostInterface {
    /// Port and VLAN.
    pub place: Place,
    /// Interface of the host.
    pub host: Box<dyn HostPort>,
}

/// Callback that has the kernel resolve a packet's next hop. Called on the housekeeping thread; may not wait long.
pub type Resolve = Box<dyn FnMut(&Ask) + Send>;

//! Linux's side of a port: what the housekeeping thread needs of it.

use std::io;
use std::os::fd::BorrowedFd;

use npcc_pipeline::punt::{Ask, Place};

/// An interface of the host that frames go in and out by, such as a TAP. No call waits: where there is nothing to be read, or no room,
/// the error is [`io::ErrorKind::WouldBlock`].
pub trait HostPort: Send {
    /// Takes a frame that the host sends, without FCS; returns its length.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none; another when the interface is gone.
    fn recv(&self, frame: &mut [u8]) -> io::Result<usize>;

    /// Gives the host a frame; returns the bytes taken.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when it has no room; another when the interface is down or gone.
    fn send(&self, frame: &[u8]) -> io::Result<usize>;

    /// What becomes readable when the host sends.
    fn as_fd(&self) -> BorrowedFd<'_>;
}

/// The host's side of one port and VLAN.
#[derive(derive_more::Debug)]
#[debug("HostInterface {{ place: {place:?}, .. }}")]
pub struct HostInterface {
    /// The port and VLAN.
    pub place: Place,
    /// The interface.
    pub host: Box<dyn HostPort>,
}

/// Has the kernel resolve a packet's next hop. Called on the housekeeping thread; may not wait long.
pub type Resolve = Box<dyn FnMut(&Ask) + Send>;

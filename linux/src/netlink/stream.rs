//! Notification stream: messages that the kernel sends to the members of its multicast groups.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;

/// `RTNLGRP_LINK`.
const LINKS: u32 = 1;
/// `RTNLGRP_LINK`, `NEIGH`, `IPV4_IFADDR`, `IPV4_ROUTE`, `IPV4_RULE`, `IPV6_IFADDR`, `IPV6_ROUTE`, `IPV6_RULE`, `NEXTHOP`.
const GROUPS: [u32; 9] = [LINKS, 3, 5, 7, 8, 9, 11, 19, 32];
/// Size of the largest datagram, in octets: the kernel's are of 32 KiB at most.
const DATAGRAM: usize = 1 << 16;
/// `MSG_DONTWAIT`.
const DO_NOT_WAIT: i32 = 0x40;

/// Returns true if a datagram is from the kernel. Any process with `CAP_NET_ADMIN` in the namespace may send others (netlink(7)).
pub(super) fn is_kernel(sender: &SocketAddr) -> bool {
    sender.port_number() == 0
}

/// Result of reading the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The stream is empty for now.
    Empty,
    /// More may be readable.
    More,
    /// The kernel dropped messages.
    Overrun,
}

/// Socket of the stream.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Stream {
    /// Joins the groups, in the network namespace of the calling thread, with a receive buffer of `receive_buffer` octets, which may exceed
    /// the machine's limit.
    ///
    /// # Errors
    /// The socket cannot be created, or the privilege for a receive buffer of that size is missing.
    pub fn open(receive_buffer: usize) -> io::Result<Stream> {
        let stream = Stream::of(&GROUPS)?;
        setsockopt(&stream.socket, RcvBufForce, &receive_buffer)?;
        Ok(stream)
    }

    /// Joins the group of link messages only, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub fn of_links() -> io::Result<Stream> {
        Stream::of(&[LINKS])
    }

    fn of(groups: &[u32]) -> io::Result<Stream> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.set_non_blocking(true)?;
        for group in groups {
            socket.add_membership(*group)?;
        }
        Ok(Stream {
            socket,
            buffer: Vec::with_capacity(DATAGRAM),
        })
    }

    /// Returns the size of the receive buffer in octets, as the kernel counts it.
    ///
    /// # Errors
    /// The socket option cannot be read.
    pub fn receive_buffer(&self) -> io::Result<usize> {
        self.socket.get_rx_buf_sz()
    }

    /// Reads at most `most` datagrams and passes each to `take`.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn read(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> io::Result<Read> {
        for _ in 0..most {
            self.buffer.clear();
            match self.socket.recv_from(&mut self.buffer, DO_NOT_WAIT) {
                Ok((_, sender)) if is_kernel(&sender) => take(&self.buffer),
                Ok(_) => {}
                Err(error) => {
                    return match error.raw_os_error().map(Errno::from_raw) {
                        Some(Errno::EAGAIN) => Ok(Read::Empty),
                        Some(Errno::EINTR) => Ok(Read::More),
                        Some(Errno::ENOBUFS) => Ok(Read::Overrun),
                        _ => Err(error),
                    };
                }
            }
        }
        Ok(Read::More)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

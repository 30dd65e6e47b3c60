//! Netlink requests, one at a time, each with its answer.

use std::io;

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::errno::Errno;

use super::stream::is_kernel;
use crate::wire::message::{self, DONE, ERROR, Message, TORN};
use crate::wire::request::{Dump, Request, dump};

/// Size of the largest answer, in octets.
const DATAGRAM: usize = 1 << 16;

/// Result of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Complete: it contains all objects.
    Whole,
    /// Inconsistent: the dumped objects changed meanwhile, or messages of the dump were lost.
    Torn,
}

/// Consumer of a dump.
pub trait Dumped {
    /// Consumes a message of the dump.
    fn message(&mut self, message: &Message<'_>);

    /// Called before the messages of each datagram, to do other work.
    ///
    /// # Errors
    /// The dump is not wanted any more.
    fn between(&mut self) -> io::Result<()>;
}

/// Socket of requests.
#[derive(Debug)]
pub struct Requests {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Requests {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The socket cannot be created, or does not support strict checking (Linux before 4.20).
    pub fn open() -> io::Result<Requests> {
        let requests = Requests::of(NETLINK_ROUTE)?;
        requests.socket.set_netlink_get_strict_chk(true)?;
        Ok(requests)
    }

    /// Opens a socket of a netlink protocol.
    pub(super) fn of(protocol: isize) -> io::Result<Requests> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        Ok(Requests {
            socket,
            sequence: 0,
            buffer: Vec::with_capacity(DATAGRAM),
        })
    }

    /// Sends a request and waits for the acknowledgement.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn ask(&mut self, request: Request) -> io::Result<()> {
        self.ask_for(request, |_| ())
    }

    /// Sends a request that is answered by messages, and waits for the acknowledgement after them.
    ///
    /// # Errors
    /// The kernel's answer.
    pub(super) fn ask_for(
        &mut self,
        request: Request,
        mut reported: impl FnMut(&Message<'_>),
    ) -> io::Result<()> {
        let sequence = self.send(request)?;
        loop {
            self.receive()?;
            for answer in message::messages(&self.buffer).filter(|m| m.sequence == sequence) {
                if answer.kind != ERROR {
                    reported(&answer);
                    continue;
                }
                return match answer.errno() {
                    0 => Ok(()),
                    error => Err(io::Error::from_raw_os_error(error)),
                };
            }
        }
    }

    /// Dumps objects to `to`.
    ///
    /// # Errors
    /// The kernel's answer, or that of `to`; then the dump is still under way, and this socket is unusable.
    pub fn dump(&mut self, what: Dump, to: &mut impl Dumped) -> io::Result<Ended> {
        let sequence = self.send(dump(what))?;
        let mut ended = Ended::Whole;
        loop {
            match self.receive() {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                    ended = Ended::Torn;
                    continue;
                }
                Err(error) => return Err(error),
            }
            to.between()?;
            for message in message::messages(&self.buffer).filter(|m| m.sequence == sequence) {
                if message.flags & TORN != 0 {
                    ended = Ended::Torn;
                }
                match (message.kind, message.errno()) {
                    (DONE, 0) => return Ok(ended),
                    // A table without any route ever does not exist, and nor do the rules of a kernel without them.
                    (DONE | ERROR, error) if may_be_absent(what, Errno::from_raw(error)) => {
                        return Ok(ended);
                    }
                    (DONE | ERROR, error) => return Err(io::Error::from_raw_os_error(error)),
                    _ => to.message(&message),
                }
            }
        }
    }

    fn send(&mut self, request: Request) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let bytes = request.numbered(self.sequence);
        self.socket.send(&bytes, 0)?;
        Ok(self.sequence)
    }

    fn receive(&mut self) -> io::Result<()> {
        loop {
            self.buffer.clear();
            match self.socket.recv_from(&mut self.buffer, 0) {
                Ok((_, sender)) if is_kernel(&sender) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

const fn may_be_absent(what: Dump, error: Errno) -> bool {
    match what {
        Dump::Routes { .. } => matches!(error, Errno::ENOENT),
        Dump::Rules { .. } => matches!(error, Errno::EAFNOSUPPORT | Errno::EOPNOTSUPP),
        _ => false,
    }
}

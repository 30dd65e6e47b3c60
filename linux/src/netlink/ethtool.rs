//! The socket that tells Linux how fast links are.

use std::io;

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::wire::ethtool::{family, family_of, set_speed};
use crate::wire::message::{self, ERROR};
use crate::wire::request::Request;

/// Octets of the largest answer: a family with all it knows.
const DATAGRAM: usize = 1 << 14;

/// See the module's text.
#[derive(Debug)]
pub struct Ethtool {
    socket: Socket,
    family: u16,
    sequence: u32,
}

impl Ethtool {
    /// Opens a socket in the network namespace of the thread that calls.
    ///
    /// # Errors
    /// The kernel has no ethtool family (Linux before 5.6).
    pub fn open() -> io::Result<Ethtool> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        let mut ethtool = Ethtool {
            socket,
            family: 0,
            sequence: 0,
        };
        ethtool.family = ethtool
            .ask(family())?
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(ethtool)
    }

    /// Says a link's speed in Mb/s.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn set_speed(&mut self, link: u32, mbps: u32) -> io::Result<()> {
        let request = set_speed(self.family, link, mbps);
        self.ask(request).map(drop)
    }

    /// Asks, and waits for the good or bad end; a family's number, if the answer has one.
    fn ask(&mut self, request: Request) -> io::Result<Option<u16>> {
        self.sequence += 1;
        let sequence = self.sequence;
        self.socket.send(&request.numbered(sequence), 0)?;
        let mut found = None;
        let mut buffer = Vec::with_capacity(DATAGRAM);
        loop {
            buffer.clear();
            match self.socket.recv(&mut buffer, 0) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            for answer in message::messages(&buffer).filter(|one| one.sequence == sequence) {
                if answer.kind != ERROR {
                    found = found.or_else(|| family_of(answer.body));
                    continue;
                }
                return match answer.errno() {
                    0 => Ok(found),
                    error => Err(io::Error::from_raw_os_error(error)),
                };
            }
        }
    }
}

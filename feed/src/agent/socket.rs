//! Netlink socket for the kernel's RDMA resources.

use std::io;

use netlink_sys::{Socket, SocketAddr};

use super::wire::{Command, HEADER, answers, request};

/// `NETLINK_RDMA`.
const RDMA: isize = 20;
/// Types of messages: `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_DUMP_INTR`: the table changed while it was read.
const INTERRUPTED: u16 = 0x10;
/// Size of a read: the kernel fills at most 32 KiB.
const PIECE: usize = 64 << 10;
/// Number of times that an interrupted dump is repeated.
const REPEATS: usize = 3;

/// Socket for RDMA netlink.
#[derive(Debug)]
pub(super) struct RdmaSocket {
    socket: Socket,
    sequence: u32,
}

impl RdmaSocket {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel has no RDMA (module `ib_core`).
    pub(super) fn open() -> io::Result<RdmaSocket> {
        let mut socket = Socket::new(RDMA)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(RdmaSocket {
            socket,
            sequence: 0,
        })
    }

    /// Passes the body of each answer to `each`; repeats a dump that was interrupted, so that `begin` is called before each attempt.
    pub(super) fn dump<T>(
        &mut self,
        command: Command,
        device: Option<u32>,
        each: impl Fn(&[u8], &mut Vec<T>),
    ) -> io::Result<Vec<T>> {
        let mut found = Vec::new();
        for _ in 0..REPEATS {
            found.clear();
            if self.dump_once(command, device, |body| each(body, &mut found))? {
                break;
            }
        }
        Ok(found)
    }

    /// Returns false if the dump was interrupted.
    fn dump_once(
        &mut self,
        command: Command,
        device: Option<u32>,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<bool> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket
            .send(&request(command, device, self.sequence), 0)?;
        let mut whole = true;
        let mut buffer = Vec::with_capacity(PIECE);
        loop {
            buffer.clear();
            self.socket.recv(&mut buffer, 0)?;
            for message in messages(&buffer) {
                if message.sequence != self.sequence {
                    continue;
                }
                whole &= message.flags & INTERRUPTED == 0;
                match message.kind {
                    DONE => return Ok(whole),
                    ERROR => match error_of(message.body) {
                        0 => return Ok(whole),
                        code => return Err(io::Error::from_raw_os_error(code)),
                    },
                    kind if answers(kind, command) => each(message.body),
                    _ => {}
                }
            }
        }
    }
}

/// Message as it lies in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// Iterates over the messages of a buffer, up to the first that is truncated.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let short = |at: usize| Some(u16::from_ne_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let message = Message {
            kind: short(4)?,
            flags: short(6)?,
            sequence: u32::from_ne_bytes(*bytes.get(8..)?.first_chunk()?),
            body: bytes.get(HEADER..length)?,
        };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Returns the error number of an `NLMSG_ERROR`; 0 for an acknowledgement.
fn error_of(body: &[u8]) -> i32 {
    let code = body.first_chunk().copied().map_or(0, i32::from_ne_bytes);
    code.checked_neg().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_follow_each_other_aligned() {
        let one = [
            &19u32.to_ne_bytes()[..],
            &7u16.to_ne_bytes(),
            &2u16.to_ne_bytes(),
            &5u32.to_ne_bytes(),
            &[0; 4],
            &[1, 2, 3, 0],
        ]
        .concat();
        let two = [one.clone(), one[..16].to_vec()].concat();
        let found: Vec<_> = messages(&two).collect();
        let message = Message {
            kind: 7,
            flags: 2,
            sequence: 5,
            body: &[1, 2, 3],
        };
        assert_eq!(found, [message]);
        assert_eq!(error_of(&(-13i32).to_ne_bytes()), 13);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER + 1);
        }
    }
}

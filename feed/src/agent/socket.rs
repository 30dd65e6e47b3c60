//! Netlink socket for the kernel's RDMA resources.

use std::io;

use netlink_packet_core::{ErrorBuffer, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR};
use netlink_sys::{Socket, SocketAddr};

use super::wire::{Command, answers, messages, request};

/// `NETLINK_RDMA`.
const RDMA: isize = 20;
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

    /// Returns what `read` finds in the answers; repeats a dump that was interrupted, because the table changed meanwhile.
    pub(super) fn dump<I: IntoIterator>(
        &mut self,
        command: Command,
        device: Option<u32>,
        read: impl Fn(&[u8]) -> I,
    ) -> io::Result<Vec<I::Item>> {
        let mut found = Vec::new();
        for _ in 0..REPEATS {
            found.clear();
            if self.dump_once(command, device, |body| found.extend(read(body)))? {
                break;
            }
        }
        Ok(found)
    }

    /// Passes the body of each answer to `each`. Returns false if the dump was interrupted.
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
                if message.sequence_number() != self.sequence {
                    continue;
                }
                whole &= message.flags() & NLM_F_DUMP_INTR == 0;
                match message.message_type() {
                    NLMSG_DONE => return Ok(whole),
                    NLMSG_ERROR => match error_of(message.payload()) {
                        Some(error) => return Err(error),
                        None => return Ok(whole),
                    },
                    kind if answers(kind, command) => each(message.payload()),
                    _ => {}
                }
            }
        }
    }
}

/// Returns the error of an `NLMSG_ERROR`; `None` for an acknowledgement.
fn error_of(body: &[u8]) -> Option<io::Error> {
    let code = ErrorBuffer::new_checked(body).ok()?.code()?.get();
    Some(io::Error::from_raw_os_error(code.checked_neg()?))
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
        let found = messages(&two).map(|message| {
            let numbers = (message.message_type(), message.flags());
            (numbers, message.sequence_number(), message.payload())
        });
        assert_eq!(found.collect::<Vec<_>>(), [((7, 2), 5, &[1, 2, 3][..])]);
        let refused = error_of(&(-13i32).to_ne_bytes()).unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(error_of(&[0; 4]).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / 16 + 1);
        }
    }
}

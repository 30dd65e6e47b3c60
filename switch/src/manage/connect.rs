//! Connections to a management socket that never wait longer than they may: the queue of a switch that hangs is full some time, and then an
//! ordinary `connect` waits for ever.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

/// Interval between two attempts while the queue is full.
const AGAIN: Duration = Duration::from_millis(20);

/// Connects to a socket, as [`UnixStream::connect`] does, within `patience`.
///
/// # Errors
/// Fails as that does, and with `TimedOut` if the queue of whoever listens stays full.
pub(super) fn within(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + patience;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let end = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let address = UnixAddr::new(path)?;
    loop {
        match connect(end.as_raw_fd(), &address) {
            Ok(()) => break,
            Err(Errno::EAGAIN) if Instant::now() < deadline => std::thread::sleep(AGAIN),
            Err(Errno::EAGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(end);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{Backlog, bind, listen};

    use super::*;

    /// Law: nobody waits for ever for a switch whose queue of clients is full.
    #[test]
    fn a_full_queue_is_given_up_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let end = socket(
            AddressFamily::Unix,
            SockType::Stream,
            SockFlag::empty(),
            None,
        )
        .unwrap();
        bind(end.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        listen(&end, Backlog::new(1).unwrap()).unwrap();
        let mut waiting = Vec::new();
        let refused = loop {
            assert!(waiting.len() < 8, "the queue has no end");
            match within(&path, Duration::from_millis(50)) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert!(!waiting.is_empty());
        let missing = within(&folder.path().join("none"), Duration::ZERO).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}

//! Connections to a management socket that never wait longer than they may: the queue of a switch that hangs is full some time, and then an
//! ordinary `connect` waits for ever.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream as Stream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use tokio::net::UnixStream;

/// Interval between two attempts while the queue is full.
const AGAIN: Duration = Duration::from_millis(20);

/// Connects to a socket within `patience`.
///
/// # Errors
/// Fails as [`UnixStream::connect`] does, and with `TimedOut` if the queue of whoever listens stays full.
pub async fn within(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + patience;
    loop {
        match once(path)? {
            Some(stream) => return UnixStream::from_std(stream),
            None if Instant::now() < deadline => tokio::time::sleep(AGAIN).await,
            None => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Connects to a socket without waiting, in non-blocking mode; `None` if the queue of whoever listens is full.
///
/// # Errors
/// Fails as [`UnixStream::connect`] does.
pub fn once(path: &Path) -> io::Result<Option<Stream>> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let end = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    match connect(end.as_raw_fd(), &UnixAddr::new(path)?) {
        Ok(()) => Ok(Some(Stream::from(end))),
        Err(Errno::EAGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{Backlog, bind, listen};

    use super::*;

    /// Law: nobody waits for ever for a switch whose queue of clients is full.
    #[tokio::test]
    async fn a_full_queue_is_given_up_in_time() {
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
            match within(&path, Duration::from_millis(50)).await {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert!(!waiting.is_empty());
        let missing = within(&folder.path().join("none"), Duration::ZERO).await;
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

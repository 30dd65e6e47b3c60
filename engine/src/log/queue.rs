//! Queue of all that the process says, and the thread that writes it.
//!
//! Law: whoever says something never waits. Each stream has a socket of its own in the kernel, of which the saying end is non-blocking and
//! takes the place of descriptor 1 or 2, so that what libraries print passes it too. What does not fit is counted, and the count is said
//! as soon as there is room. Only the writing thread waits for whoever reads; the streams' own descriptors, which other processes may
//! share, stay as they were. The order within a stream is kept.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use npcc_heap::unwritten::Unwritten;

use super::entry;

/// Size of a stream's queue in bytes, of which the kernel takes twice as much: some 300 lines.
const ROOM: usize = 128 << 10;
/// Longest part of a text that is queued whole, in bytes.
const WHOLE: usize = 64 << 10;

/// Streams of text. The thread takes them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard error.
    Error,
    /// Journal of the system: entries.
    Journal,
    /// Standard output.
    Output,
}

/// Place where a stream is written.
#[derive(Debug)]
pub(super) enum Sink {
    /// An open file.
    File(OwnedFd),
    /// Socket of the journal by its path, and a socket to send from.
    Journal(UnixDatagram, PathBuf),
}

impl Sink {
    /// Writes all, for as long as that takes. An error, as of a closed pipe, loses the text.
    fn write(&self, text: &[u8]) {
        match self {
            Sink::File(file) => write_all(file.as_fd(), text),
            Sink::Journal(from, to) => _ = from.send_to(text, to),
        }
    }
}

fn write_all(file: BorrowedFd<'_>, mut text: &[u8]) {
    while !text.is_empty() {
        match nix::unistd::write(file, text) {
            Ok(written) => text = text.get(written..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            // Another process made the file non-blocking.
            Err(Errno::EAGAIN) => {
                let mut file = [PollFd::new(file, PollFlags::POLLOUT)];
                let _ = poll(&mut file, PollTimeout::NONE);
            }
            Err(_) => return,
        }
    }
}

/// Stream with its queue.
#[derive(Debug)]
struct Lane {
    stream: Stream,
    inlet: UnixDatagram,
    outlet: UnixDatagram,
    sink: Sink,
}

impl Lane {
    fn new(stream: Stream, sink: Sink) -> io::Result<Lane> {
        let (inlet, outlet) = UnixDatagram::pair()?;
        setsockopt(&inlet, sockopt::SndBuf, &ROOM)?;
        inlet.set_nonblocking(true)?;
        outlet.set_nonblocking(true)?;
        Ok(Lane {
            stream,
            inlet,
            outlet,
            sink,
        })
    }
}

/// Queue of all streams; see the module's documentation.
#[derive(Debug)]
pub(super) struct Queue {
    lanes: Vec<Lane>,
    /// Stream in which messages are logged, and the number of those that were lost.
    log: Stream,
    /// Number of messages lost and not yet reported.
    lost: AtomicU64,
    unwritten: Arc<Unwritten>,
}

impl Queue {
    /// Creates the queue of these streams; losses are reported in the stream `log`.
    pub(super) fn new(sinks: Vec<(Stream, Sink)>, log: Stream) -> io::Result<Queue> {
        let lanes = sinks
            .into_iter()
            .map(|(stream, sink)| Lane::new(stream, sink));
        let lanes = lanes.collect::<io::Result<Vec<Lane>>>()?;
        let outlets = lanes.iter().map(|lane| lane.outlet.as_fd());
        let outlets = outlets.map(|outlet| outlet.try_clone_to_owned());
        Ok(Queue {
            unwritten: Arc::new(Unwritten::of(outlets.collect::<io::Result<_>>()?)),
            lanes,
            log,
            lost: AtomicU64::new(0),
        })
    }

    /// Returns the state for which the end of the process waits.
    pub(super) const fn unwritten(&self) -> &Arc<Unwritten> {
        &self.unwritten
    }

    /// Returns the saying end of a stream's queue.
    pub(super) fn inlet(&self, stream: Stream) -> Option<BorrowedFd<'_>> {
        Some(self.lane(stream)?.inlet.as_fd())
    }

    fn lane(&self, stream: Stream) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.stream == stream)
    }

    /// Queues a message, without waiting; one for which there is no room is lost and counted.
    pub(super) fn say(&self, stream: Stream, text: &[u8]) {
        self.report();
        let Some(lane) = self.lane(stream) else {
            return;
        };
        // An entry of the journal is one datagram.
        let length = if stream == Stream::Journal {
            text.len()
        } else {
            WHOLE
        };
        let mut parts = text.chunks(length.max(1));
        if !parts.all(|part| lane.inlet.send(part).is_ok()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Queues the number of messages that were lost, if any were and there is room: its place is that of the gap.
    pub(super) fn report(&self) {
        let Some((lane, lost)) = self.take_lost() else {
            return;
        };
        if lane.inlet.send(&lost_text(self.log, lost)).is_err() {
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// Takes the number of messages that were lost, if there are any, and the stream to report it in.
    fn take_lost(&self) -> Option<(&Lane, u64)> {
        let lane = self.lane(self.log)?;
        let lost = self.lost.swap(0, Ordering::Relaxed);
        (lost > 0).then_some((lane, lost))
    }

    /// Writes what was said, for ever: the work of a thread.
    pub(super) fn write(&self) -> ! {
        // No datagram is longer than the kernel's room for one.
        let mut text = vec![0; 2 * ROOM];
        loop {
            self.unwritten.writes(true);
            let taken = self.lanes.iter().find_map(|lane| {
                let length = lane.outlet.recv(&mut text).ok()?;
                Some((lane, length))
            });
            if let Some((lane, length)) = taken {
                lane.sink.write(text.get(..length).unwrap_or_default());
            } else if let Some((lane, lost)) = self.take_lost() {
                lane.sink.write(&lost_text(self.log, lost));
            } else {
                self.unwritten.writes(false);
                self.wait();
            }
        }
    }

    /// Waits until something is said.
    fn wait(&self) {
        let lanes = self.lanes.iter();
        let lanes = lanes.map(|lane| PollFd::new(lane.outlet.as_fd(), PollFlags::POLLIN));
        // A signal ends the wait early.
        let _ = poll(&mut lanes.collect::<Vec<_>>(), PollTimeout::NONE);
    }
}

/// Returns the report of lost messages for a stream.
fn lost_text(stream: Stream, lost: u64) -> Vec<u8> {
    let text = format!("{lost} messages lost: the log was not read");
    match stream {
        Stream::Journal => entry::warning(&text),
        Stream::Error | Stream::Output => (text + "\n").into_bytes(),
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

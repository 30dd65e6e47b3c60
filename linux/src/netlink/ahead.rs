//! Prefetched dump: the kernel's state is read by a thread of its own before the ports are known, so that a restart waits less for it.
//!
//! Law: the stream is joined before the first dump and kept, so that the reader that continues from here misses no notification; loss
//! meanwhile is detected, and everything is read again then.

use std::collections::BTreeMap;
use std::io;
use std::thread::JoinHandle;

use super::recover::recover;
use super::report::{Reason, Report};
use super::requests::Requests;
use super::state::{State, Turn};
use super::stream::Stream;
use crate::table::model::Model;
use crate::tap::namespace;
use crate::wanted::differ::Differ;
use crate::wanted::ports::Ports;

/// Thread that prefetches the dump.
#[derive(Debug)]
pub struct Ahead(JoinHandle<io::Result<WasRead>>);

/// Result of the prefetch.
#[derive(Debug)]
pub(super) struct WasRead {
    pub(super) stream: Stream,
    pub(super) state: State,
    pub(super) report: Report,
}

impl Ahead {
    /// Starts to read the state of a namespace, `None` for that of the calling thread, with a receive buffer of `receive_buffer` octets.
    /// When this returns the stream is joined: no later change is missed.
    ///
    /// # Errors
    /// The thread or a socket cannot be created, or the namespace cannot be entered.
    pub fn begin(name: Option<String>, receive_buffer: usize) -> io::Result<Ahead> {
        // A socket stays in the namespace it was opened in; the thread that entered the namespace ends.
        let sockets = std::thread::scope(|scope| {
            let inside = scope.spawn(|| sockets(name.as_deref(), receive_buffer));
            let panicked = |_| {
                Err(io::Error::other(
                    "the thread that opens the sockets panicked",
                ))
            };
            inside.join().unwrap_or_else(panicked)
        })?;
        let thread = std::thread::Builder::new().name("npcc-ahead".to_owned());
        Ok(Ahead(thread.spawn(|| read(sockets))?))
    }

    /// Waits for the result, complete or not; `None` if reading failed.
    pub(super) fn wait(self) -> Option<WasRead> {
        self.0.join().ok()?.ok()
    }
}

impl WasRead {
    /// Returns true if everything was read, and no message was lost meanwhile.
    pub(super) const fn whole(&self) -> bool {
        self.report.whole && !self.state.lost
    }
}

fn sockets(namespace: Option<&str>, receive_buffer: usize) -> io::Result<(Stream, Requests)> {
    namespace.map_or(Ok(()), namespace::enter)?;
    Ok((Stream::open(receive_buffer)?, Requests::open()?))
}

fn read((mut stream, mut requests): (Stream, Requests)) -> io::Result<WasRead> {
    let mut state = State::new(Model::default(), Differ::new(Ports::new(BTreeMap::new())));
    let mut report = Report::of(Reason::Start);
    let sockets = (&mut stream, &mut requests);
    recover(sockets, &mut state, &mut report, &mut Turn::default())?;
    Ok(WasRead {
        stream,
        state,
        report,
    })
}

//! The kernel's state, read in a thread of its own before it is known which ports there are: a restart does not wait for it so long.
//!
//! Law: the stream is joined before the first dump and kept, so that whoever goes on from here misses nothing; what was lost meanwhile is
//! known, and all is read again then.

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

/// The thread that reads.
#[derive(Debug)]
pub struct Ahead(JoinHandle<io::Result<WasRead>>);

/// What it read.
#[derive(Debug)]
pub(super) struct WasRead {
    pub(super) stream: Stream,
    pub(super) state: State,
    pub(super) report: Report,
}

impl Ahead {
    /// Begins to read the state of a namespace, without a name that of the calling thread; `receive_buffer` octets of its messages may
    /// wait. When this returns the stream is joined: what changes from now on is known.
    ///
    /// # Errors
    /// There can be no thread or no socket, or the namespace may not be entered.
    pub fn begin(name: Option<String>, receive_buffer: usize) -> io::Result<Ahead> {
        // A socket stays in the namespace it was opened in; the thread that entered that ends.
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

    /// Waits for what it read, whole or not; none where it could not read.
    pub(super) fn wait(self) -> Option<WasRead> {
        self.0.join().ok()?.ok()
    }
}

impl WasRead {
    /// All was read, and no message was lost meanwhile.
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

//! The kernel's state, read in a thread of its own before it is known which ports there are: a restart does not wait for it so long.
//!
//! Law: the stream is joined before the first dump and kept, so that whoever goes on from here misses nothing; what was lost meanwhile is
//! known, and all is read again then.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::channel;
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
    /// There can be no thread or no socket, or there is no such namespace.
    pub fn begin(name: Option<String>, receive_buffer: usize) -> io::Result<Ahead> {
        let (joined, wait) = channel();
        let thread = std::thread::Builder::new().name("npcc-ahead".to_owned());
        let reading = thread.spawn(move || match sockets(name.as_deref(), receive_buffer) {
            Ok(sockets) => {
                let _ = joined.send(Ok(()));
                read(sockets)
            }
            Err(error) => {
                let kind = error.kind();
                let _ = joined.send(Err(error));
                Err(kind.into())
            }
        })?;
        let told: io::Result<()> = wait.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        told?;
        Ok(Ahead(reading))
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

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
    /// wait.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn begin(name: Option<String>, receive_buffer: usize) -> io::Result<Ahead> {
        let thread = std::thread::Builder::new().name("npcc-ahead".to_owned());
        let reading = thread.spawn(move || {
            name.as_deref().map_or(Ok(()), namespace::enter)?;
            read(Stream::open(receive_buffer)?, Requests::open()?)
        });
        Ok(Ahead(reading?))
    }

    /// Waits for what it read; none where it could not read all.
    pub(super) fn wait(self) -> Option<WasRead> {
        let read = self.0.join().ok()?.ok();
        read.filter(|read| read.report.whole && !read.state.lost)
    }
}

fn read(mut stream: Stream, mut requests: Requests) -> io::Result<WasRead> {
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

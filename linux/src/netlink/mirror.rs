//! The model kept equal to the kernel, and the switch to the model.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use npcc_pipeline::counters::Counter;

use super::ahead::Ahead;
use super::compare::Comparing;
use super::recover::{EXAMPLES, recover};
use super::report::{Counts, Reason, Report};
use super::requests::{Ended, Requests};
use super::state::{State, each};
use super::stream::{Read, Stream};
use crate::fib::Fib;
use crate::table::model::Model;
use crate::wanted::differ::Differ;
use crate::wanted::ports::Ports;
use crate::wire::request::Dump;

pub use super::state::Turn;

/// Datagrams read before what they say is given to the switch.
const BATCH: usize = 2_048;

/// See the module's text.
#[derive(Debug)]
pub struct Mirror {
    stream: Stream,
    requests: Requests,
    state: State,
    /// What is being read ahead, until the first dump.
    ahead: Option<Ahead>,
}

impl Mirror {
    /// Over sockets of one namespace, which is to be that of the thread that uses this.
    #[must_use]
    pub fn new(stream: Stream, requests: Requests, ports: Ports) -> Mirror {
        Mirror {
            stream,
            requests,
            state: State::new(Model::default(), Differ::new(ports)),
            ahead: None,
        }
    }

    /// Begins with what was read ahead in the same namespace.
    #[must_use]
    pub fn after(self, ahead: Option<Ahead>) -> Mirror {
        Mirror { ahead, ..self }
    }

    /// What grows while the thread moves that uses this; it may add to it itself.
    #[must_use]
    pub const fn turns(&self) -> &Arc<Counter> {
        &self.state.turns
    }

    /// The kernel's state.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.state.model
    }

    /// The kernel's state, to ask which links rose.
    pub const fn model_mut(&mut self) -> &mut Model {
        &mut self.state.model
    }

    /// What the switch has.
    #[must_use]
    pub const fn differ(&self) -> &Differ {
        &self.state.differ
    }

    /// Counts since the start.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.state.counts
    }

    /// The stream's socket, to wait on.
    #[must_use]
    pub const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The socket of requests.
    pub const fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// Reads a batch of the stream and gives the switch what it changed.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub fn turn(&mut self, fib: &mut dyn Fib) -> io::Result<Turn> {
        let read = self.read()?;
        let mut turn = Turn {
            more: read == Read::More,
            ..Turn::default()
        };
        let doubts = self.state.doubts_anew();
        if read == Read::Overrun {
            // The switch waits for the dump: half of what changed may be worse than none.
            self.state.lost = true;
            turn.dump = Some(Reason::Overrun);
            return Ok(turn);
        }
        turn.dump = doubts.then_some(Reason::Doubt);
        self.state.give(fib, &mut turn);
        Ok(turn)
    }

    /// Dumps everything, takes in what differs, and gives that to the switch.
    ///
    /// # Errors
    /// A socket is of no use any more, or the kernel refuses a dump.
    pub fn dump(&mut self, reason: Reason, fib: &mut dyn Fib) -> io::Result<(Report, Turn)> {
        let began = Instant::now();
        let mut report = Report::of(reason);
        let mut turn = Turn::default();
        match reason {
            Reason::Start => self.start(&mut report, &mut turn)?,
            Reason::Overrun => self.recover(&mut report, &mut turn)?,
            Reason::Doubt | Reason::Time | Reason::Asked => {
                self.compare(&mut report, &mut turn, fib)?;
            }
        }
        self.state.counts.dumps += 1;
        report.examples.truncate(EXAMPLES);
        self.state.give_again(fib, &mut turn);
        if turn.dump.is_none() && self.state.doubts_anew() {
            turn.dump = Some(Reason::Doubt);
        }
        report.took = began.elapsed();
        Ok((report, turn))
    }

    /// At the start: what was read ahead, and what the stream said since; or all anew.
    fn start(&mut self, report: &mut Report, turn: &mut Turn) -> io::Result<()> {
        let Some(read) = self.ahead.take().and_then(Ahead::wait) else {
            return self.recover(report, turn);
        };
        let whole = read.whole();
        self.stream = read.stream;
        self.state.counts = read.state.counts;
        if !whole {
            return self.recover(report, turn);
        }
        (self.state.model, self.state.doubts) = (read.state.model, read.state.doubts);
        *report = read.report;
        loop {
            match self.read()? {
                Read::Overrun => return self.recover(report, turn),
                Read::Empty => return Ok(()),
                Read::More => {}
            }
        }
    }

    /// Reads a batch of the stream into the model. Where messages were lost, which is counted, it is an overrun.
    fn read(&mut self) -> io::Result<Read> {
        let State { model, counts, .. } = &mut self.state;
        let mut lost = false;
        let read = self.stream.read(BATCH, |datagram| {
            lost |= each(datagram, counts, |event| {
                model.apply(event);
            });
        })?;
        if read != Read::Overrun && !lost {
            return Ok(read);
        }
        self.state.counts.overruns += 1;
        Ok(Read::Overrun)
    }

    fn recover(&mut self, report: &mut Report, turn: &mut Turn) -> io::Result<()> {
        let sockets = (&mut self.stream, &mut self.requests);
        recover(sockets, &mut self.state, report, turn)
    }

    /// To prove that all is equal.
    fn compare(
        &mut self,
        report: &mut Report,
        turn: &mut Turn,
        fib: &mut dyn Fib,
    ) -> io::Result<()> {
        self.state.doubts_anew();
        let mut to = Comparing::new(&mut self.stream, &mut self.state, fib, (&mut *report, turn));
        to.catch_up()?;
        to.settle();
        for what in Dump::ALL {
            to.begin(what);
            match self.requests.dump(what, &mut to) {
                Ok(Ended::Whole) => to.end(what),
                Ok(Ended::Torn) => to.torn(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted && to.spoiled => {
                    to.give_up();
                    self.requests = Requests::open()?;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        to.conclude();
        if report.settled {
            self.state.counts.faults += report.differences as u64;
        }
        Ok(())
    }
}

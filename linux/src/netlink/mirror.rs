//! Mirror: keeps the model equal to the kernel, and the switch equal to the model.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use npcc_pipeline::counters::Counter;

use super::ages::Age;
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

/// Maximum number of datagrams read before their changes are passed to the switch.
const BATCH: usize = 2_048;

/// Mirror of the kernel's state, see the module's text.
#[derive(Debug)]
pub struct Mirror {
    stream: Stream,
    requests: Requests,
    state: State,
    /// Prefetched dump, until the first dump.
    ahead: Option<Ahead>,
}

impl Mirror {
    /// Creates a mirror over sockets of one namespace, which must be that of the thread that uses it.
    #[must_use]
    pub fn new(stream: Stream, requests: Requests, ports: Ports) -> Mirror {
        Mirror {
            stream,
            requests,
            state: State::new(Model::default(), Differ::new(ports)),
            ahead: None,
        }
    }

    /// Sets a prefetched dump of the same namespace to begin with.
    #[must_use]
    pub fn after(self, ahead: Option<Ahead>) -> Mirror {
        Mirror { ahead, ..self }
    }

    /// Progress counter of the thread that uses this; the thread may add to it itself.
    #[must_use]
    pub const fn turns(&self) -> &Arc<Counter> {
        &self.state.turns
    }

    /// Returns the model of the kernel's state.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.state.model
    }

    /// Returns the model of the kernel's state, to take the links that were set up.
    pub const fn model_mut(&mut self) -> &mut Model {
        &mut self.state.model
    }

    /// Returns the state installed in the switch.
    #[must_use]
    pub const fn differ(&self) -> &Differ {
        &self.state.differ
    }

    /// Returns the age of a neighbour's MAC address; `None` if it never had one.
    #[must_use]
    pub fn age(&self, link: u32, address: IpAddr) -> Option<Age> {
        self.state.ages.of((link, address))
    }

    /// Counts since the start.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.state.counts
    }

    /// Returns the stream's socket, to poll.
    #[must_use]
    pub const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the socket of requests.
    pub const fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// Returns the socket of requests, and the state, for look-ups.
    pub(super) const fn parts(&mut self) -> (&mut Requests, &mut State) {
        (&mut self.requests, &mut self.state)
    }

    /// Reads a batch of the stream and passes the changes to the switch.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn turn(&mut self, fib: &mut dyn Fib) -> io::Result<Turn> {
        let read = self.read()?;
        let mut turn = Turn {
            more: read == Read::More,
            ..Turn::default()
        };
        let doubts = self.state.doubts_anew();
        if read == Read::Overrun {
            // The switch is updated after the dump only: half of the changes may be worse than none.
            self.state.lost = true;
            turn.dump = Some(Reason::Overrun);
            return Ok(turn);
        }
        turn.dump = doubts.then_some(Reason::Doubt);
        self.state.give(fib, &mut turn);
        Ok(turn)
    }

    /// Dumps everything, applies the differences, and passes them to the switch.
    ///
    /// # Errors
    /// A socket is unusable, or the kernel refuses a dump.
    pub fn dump(&mut self, reason: Reason, fib: &mut dyn Fib) -> io::Result<(Report, Turn)> {
        let began = Instant::now();
        let mut report = Report::of(reason);
        let mut turn = Turn::default();
        match reason {
            Reason::Start => self.start(&mut report, &mut turn)?,
            Reason::Overrun => self.recover(&mut report, &mut turn)?,
            Reason::Doubt | Reason::Time | Reason::Requested => {
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

    /// Reads the initial state: a prefetched dump and the stream since then, or everything anew.
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

    /// Reads a batch of the stream into the model. Lost messages are counted, and reported as an overrun.
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

    /// Compares the model with the kernel, to prove them equal.
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

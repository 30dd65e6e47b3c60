//! The model kept equal to the kernel, and the switch to the model.

use std::io;
use std::time::{Duration, Instant};

use super::report::{Counts, Reason, Report};
use super::requests::{Ended, Requests};
use super::stream::{Read, Stream};
use crate::fib::Fib;
use crate::table::changes::Changes;
use crate::table::model::Model;
use crate::wanted::differ::{Differ, Done};
use crate::wanted::ports::Ports;
use crate::wire::event::{Event, event};
use crate::wire::message::{Message, OVERRUN, messages};
use crate::wire::request::Dump;
use crate::wire::unread::Unread;

/// Datagrams read before what they say is given to the switch.
const BATCH: usize = 2_048;
/// Events that may come while a dump is read.
const PENDING: usize = 1 << 18;
/// How often a dump is begun again that was torn, or a round of them in which messages were lost.
const TRIES: usize = 4;
/// Differences that are put into words.
const EXAMPLES: usize = 20;

/// See the module's text.
#[derive(Debug)]
pub struct Mirror {
    stream: Stream,
    requests: Requests,
    model: Model,
    differ: Differ,
    counts: Counts,
    doubts: u64,
}

/// What one turn did.
#[derive(Debug, Default)]
pub struct Turn {
    /// What the switch was given.
    pub done: Done,
    /// Links that changed.
    pub links_changed: bool,
    /// A dump of everything is needed.
    pub dump: Option<Reason>,
    /// More waits to be read.
    pub more: bool,
}

impl Mirror {
    /// Over sockets of one namespace.
    #[must_use]
    pub fn new(stream: Stream, requests: Requests, ports: Ports) -> Mirror {
        Mirror {
            stream,
            requests,
            model: Model::default(),
            differ: Differ::new(ports),
            counts: Counts::default(),
            doubts: 0,
        }
    }

    /// The kernel's state.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The kernel's state, to ask which links rose.
    pub const fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }

    /// What the switch has.
    #[must_use]
    pub const fn differ(&self) -> &Differ {
        &self.differ
    }

    /// Counts since the start.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
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
        let (model, counts) = (&mut self.model, &mut self.counts);
        let mut lost = false;
        let read = self.stream.read(BATCH, |datagram| {
            lost |= each(datagram, counts, |event| {
                model.apply(event);
            });
        })?;
        let mut turn = Turn {
            more: read == Read::More,
            ..Turn::default()
        };
        if read == Read::Overrun || lost {
            self.counts.overruns += 1;
            turn.dump = Some(Reason::Overrun);
        } else if self.model.doubts() != self.doubts {
            turn.dump = Some(Reason::Doubt);
        }
        self.doubts = self.model.doubts();
        // After an overrun it waits for the dump: half of what changed may be worse than none.
        if turn.dump != Some(Reason::Overrun) {
            let changes = self.model.take_changes();
            self.give(fib, changes, &mut turn);
        }
        Ok(turn)
    }

    /// Dumps everything, takes in what differs, and gives that to the switch.
    ///
    /// # Errors
    /// A socket is of no use any more, or the kernel refuses a dump.
    pub fn dump(&mut self, reason: Reason, fib: &mut dyn Fib) -> io::Result<(Report, Turn)> {
        let began = Instant::now();
        let mut report = Report {
            reason,
            took: Duration::ZERO,
            compared: 0,
            differences: 0,
            examples: vec![],
            settled: true,
            whole: true,
        };
        for _ in 0..TRIES {
            self.clear_stream(reason)?;
            let mut pending = Pending::default();
            report.whole = true;
            for what in Dump::ALL {
                report.whole &= self.dump_one(what, &mut pending, &mut report)? == Ended::Whole;
            }
            report.settled &= pending.events.is_empty() && !pending.lost;
            self.doubts = self.model.doubts();
            for event in pending.events {
                self.model.apply_late(event);
            }
            if !pending.lost {
                break;
            }
            self.counts.overruns += 1;
            report.whole = false;
        }
        self.counts.dumps += 1;
        if report.settled && matches!(reason, Reason::Time | Reason::Asked | Reason::Doubt) {
            self.counts.faults += report.differences as u64;
        }
        let mut turn = Turn::default();
        let mut changes = self.model.take_changes();
        self.differ.retry(&mut changes);
        self.give(fib, changes, &mut turn);
        if !report.whole {
            turn.dump = Some(Reason::Overrun);
        } else if self.model.doubts() != self.doubts {
            turn.dump = Some(Reason::Doubt);
        }
        self.doubts = self.model.doubts();
        report.took = began.elapsed();
        Ok((report, turn))
    }

    /// What came before a dump is in the dump. After an overrun it is thrown away, as what followed it is not there to mend it.
    fn clear_stream(&mut self, reason: Reason) -> io::Result<()> {
        let (model, counts) = (&mut self.model, &mut self.counts);
        let keep = matches!(reason, Reason::Time | Reason::Asked | Reason::Doubt);
        for _ in 0..PENDING / BATCH {
            let read = self.stream.read(BATCH, |datagram| {
                each(datagram, counts, |event| {
                    if keep {
                        model.apply(event);
                    }
                });
            })?;
            if read == Read::Empty {
                break;
            }
        }
        Ok(())
    }

    fn dump_one(
        &mut self,
        what: Dump,
        pending: &mut Pending,
        report: &mut Report,
    ) -> io::Result<Ended> {
        let Mirror {
            stream,
            requests,
            model,
            counts,
            ..
        } = self;
        let mut ended = Ended::Torn;
        for _ in 0..TRIES {
            model.begin_sweep();
            let take = |message: &Message<'_>| {
                let Ok(event) = event(message) else {
                    return;
                };
                report.compared += 1;
                let words = (report.examples.len() < EXAMPLES).then(|| in_words(&event));
                if model.apply_dumped(event) {
                    report.differences += 1;
                    report.examples.extend(words);
                }
            };
            ended = requests.dump(what, take, || pending.read(stream, counts))?;
            if ended == Ended::Whole {
                break;
            }
        }
        if ended == Ended::Whole {
            let swept = model.sweep(what);
            if swept > 0 && report.examples.len() < EXAMPLES {
                report
                    .examples
                    .push(format!("{swept} of {what:?} that the kernel has no more"));
            }
            report.differences += swept;
        }
        Ok(ended)
    }

    fn give(&mut self, fib: &mut dyn Fib, changes: Changes, turn: &mut Turn) {
        turn.links_changed |= !changes.links.is_empty();
        turn.done = self.differ.sync(&self.model, changes, fib);
        self.counts.routes += turn.done.routes as u64;
        self.counts.groups += turn.done.groups as u64;
    }
}

/// Events that came while a dump was read: they are later than what the dump said before, so they come after it.
#[derive(Default)]
struct Pending {
    events: Vec<Event>,
    lost: bool,
}

impl Pending {
    fn read(&mut self, stream: &mut Stream, counts: &mut Counts) -> io::Result<()> {
        let (events, mut lost) = (&mut self.events, false);
        let read = stream.read(BATCH, |datagram| {
            let mut full = false;
            lost |= each(datagram, counts, |event| {
                if events.len() < PENDING {
                    events.push(event);
                } else {
                    full = true;
                }
            });
            lost |= full;
        })?;
        self.lost |= lost;
        self.lost |= read == Read::Overrun;
        Ok(())
    }
}

/// Takes the events of a datagram; whether it says that others were lost.
fn each(datagram: &[u8], counts: &mut Counts, mut take: impl FnMut(Event)) -> bool {
    let mut lost = false;
    for message in messages(datagram) {
        lost |= message.kind == OVERRUN;
        match event(&message) {
            Ok(event) => {
                counts.messages += 1;
                take(event);
            }
            Err(Unread::Malformed) => counts.malformed += 1,
            Err(Unread::NotOurs) => {}
        }
    }
    lost
}

fn in_words(event: &Event) -> String {
    match event {
        Event::Route(route) => {
            format!(
                "route {} metric {} {:?}",
                route.prefix, route.metric, route.way
            )
        }
        other => format!("{other:?}"),
    }
}

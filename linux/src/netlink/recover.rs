//! Recovery after message loss by dumps: notifications received meanwhile are queued, and applied after them as late ones.

use std::io;

use super::report::{Reason, Report};
use super::requests::{Dumped, Ended, Requests};
use super::state::{State, Turn, each, hides_others, in_words};
use super::stream::{Read, Stream};
use crate::wire::event::{Event, event};
use crate::wire::message::Message;
use crate::wire::request::Dump;

/// Maximum number of datagrams of the stream read between two of a dump.
const BATCH: usize = 4_096;
/// Maximum number of events queued while dumps are read.
const PENDING: usize = 1 << 18;
/// Maximum number of attempts for an inconsistent dump, and for a round of dumps in which messages were lost.
const TRIES: usize = 4;
/// Maximum number of differences that are put into words.
pub(super) const EXAMPLES: usize = 20;

/// Recovery under way.
struct Recovering<'a> {
    stream: &'a mut Stream,
    state: &'a mut State,
    report: &'a mut Report,
    /// Events received meanwhile.
    pending: Vec<Event>,
    /// True if messages were lost again.
    lost: bool,
    /// Dump under way, and true if the kernel may have left out part of it.
    under_way: (Dump, bool),
}

/// Dumps everything at the start, and after messages were lost.
pub(super) fn recover(
    (stream, requests): (&mut Stream, &mut Requests),
    state: &mut State,
    report: &mut Report,
    turn: &mut Turn,
) -> io::Result<()> {
    for _ in 0..TRIES {
        report.whole = true;
        let mut to = Recovering {
            stream,
            state,
            report,
            pending: vec![],
            lost: false,
            under_way: (Dump::Links, false),
        };
        to.clear_stream()?;
        for what in Dump::ALL {
            let whole = to.dump(what, requests)?;
            to.report.whole &= whole;
        }
        let Recovering { pending, lost, .. } = to;
        report.settled &= pending.is_empty() && !lost;
        state.doubts_anew();
        for event in pending {
            state.model.apply_late(event);
        }
        if !lost {
            break;
        }
        state.counts.overruns += 1;
        report.whole = false;
    }
    state.lost = !report.whole;
    if !report.whole {
        turn.dump = Some(Reason::Overrun);
    }
    Ok(())
}

impl Recovering<'_> {
    /// Dumps one kind of objects; returns true if the dump was complete, so that objects missing from it were removed.
    fn dump(&mut self, what: Dump, requests: &mut Requests) -> io::Result<bool> {
        for _ in 0..TRIES {
            self.state.model.begin_sweep();
            self.under_way = (what, false);
            let ended = requests.dump(what, self)?;
            if ended == Ended::Whole && !self.under_way.1 {
                self.report.differences += self.state.model.sweep(what);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Discards the stream so far: the dump contains its changes, and after loss they cannot be applied anyway.
    fn clear_stream(&mut self) -> io::Result<()> {
        for _ in 0..PENDING / BATCH {
            let counts = &mut self.state.counts;
            let read = self.stream.read(BATCH, |datagram| {
                each(datagram, counts, drop);
            })?;
            if read == Read::Empty {
                break;
            }
        }
        Ok(())
    }
}

impl Dumped for Recovering<'_> {
    fn message(&mut self, message: &Message<'_>) {
        let Ok(event) = event(message) else {
            return;
        };
        let report = &mut *self.report;
        report.compared += 1;
        let words = (report.examples.len() < EXAMPLES).then(|| in_words(&event));
        if self.state.model.apply_dumped(event) {
            report.differences += 1;
            report.examples.extend(words);
        }
    }

    fn between(&mut self) -> io::Result<()> {
        self.state.turns.add(1);
        let (pending, counts) = (&mut self.pending, &mut self.state.counts);
        let (model, (what, hidden)) = (&self.state.model, &mut self.under_way);
        let mut lost = false;
        let read = self.stream.read(BATCH, |datagram| {
            let mut full = false;
            lost |= each(datagram, counts, |event| {
                *hidden |= hides_others(model, *what, &event);
                if pending.len() < PENDING {
                    pending.push(event);
                } else {
                    full = true;
                }
            });
            lost |= full;
        })?;
        self.lost |= lost || read == Read::Overrun;
        Ok(())
    }
}

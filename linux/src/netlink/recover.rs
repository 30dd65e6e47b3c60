//! Dumps after messages were lost: what the stream says meanwhile is held back until after, and then taken in as late.

use std::io;

use super::report::{Reason, Report};
use super::requests::{Dumped, Ended, Requests};
use super::state::{State, Turn, each, hides_others, in_words};
use super::stream::{Read, Stream};
use crate::wire::event::{Event, event};
use crate::wire::message::Message;
use crate::wire::request::Dump;

/// Datagrams of the stream read between two of a dump.
const BATCH: usize = 4_096;
/// Events that may come while dumps are read.
const PENDING: usize = 1 << 18;
/// How often a dump is begun again that was torn, or a round of them in which messages were lost.
const TRIES: usize = 4;
/// Differences that are put into words.
pub(super) const EXAMPLES: usize = 20;

/// See the module's text.
struct Recovering<'a> {
    stream: &'a mut Stream,
    state: &'a mut State,
    report: &'a mut Report,
    /// Events that came meanwhile.
    pending: Vec<Event>,
    /// Some were lost again.
    lost: bool,
    /// What is dumped, and whether the kernel may have left some of it out.
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
    /// Dumps one kind of things; whether all there are were named, so that the others are gone.
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

    /// What came before a dump is in the dump, and what followed it is not there to mend it: it is thrown away.
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

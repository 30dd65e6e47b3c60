//! Comparison: dumps that prove the model equal to the kernel, while the stream is processed as usual.
//!
//! Notifications of the stream are applied and passed to the switch at once: a comparison of a million routes must not delay the
//! removal of a route. The dump proves nothing about objects that they touch. Objects that disappear silently with a link, an address
//! or a next-hop object spoil the comparison: it is given up, and repeated later.

use std::collections::HashSet;
use std::io;

use super::recover::EXAMPLES;
use super::report::{Reason, Report};
use super::requests::Dumped;
use super::state::{State, Turn, each, hides_others, in_words};
use super::stream::{Read, Stream};
use crate::fib::Fib;
use crate::table::sweep::ObjectId;
use crate::wanted::ports::Ports;
use crate::wire::event::{Event, event};
use crate::wire::message::Message;
use crate::wire::neighbor::{NO_ARP, Neighbor};
use crate::wire::request::Dump;

/// Maximum number of datagrams of the stream read between two of a dump.
const BATCH: usize = 4_096;

/// Comparison under way, see the module's text.
pub(super) struct Comparing<'a> {
    stream: &'a mut Stream,
    state: &'a mut State,
    fib: &'a mut dyn Fib,
    report: &'a mut Report,
    turn: &'a mut Turn,
    /// Objects that the stream touched since the comparison began.
    touched: HashSet<ObjectId>,
    /// Differences, the first ones in words, as the stream may turn out to have announced them itself.
    differing: Vec<(Option<ObjectId>, Option<String>)>,
    /// Number of objects swept out.
    swept: usize,
    /// True if the comparison must be given up.
    pub(super) spoiled: bool,
    /// Dump under way, and true if the kernel may have left out part of it.
    under_way: (Dump, bool),
}

impl<'a> Comparing<'a> {
    pub(super) fn new(
        stream: &'a mut Stream,
        state: &'a mut State,
        fib: &'a mut dyn Fib,
        (report, turn): (&'a mut Report, &'a mut Turn),
    ) -> Comparing<'a> {
        Comparing {
            stream,
            state,
            fib,
            report,
            turn,
            touched: HashSet::new(),
            differing: vec![],
            swept: 0,
            spoiled: false,
            under_way: (Dump::Links, false),
        }
    }

    /// Begins a dump.
    pub(super) const fn begin(&mut self, what: Dump) {
        self.under_way = (what, false);
        self.state.model.begin_sweep();
    }

    /// Ends a complete dump: objects that it did not contain, and the stream did not touch, are removed.
    pub(super) fn end(&mut self, what: Dump) {
        if self.under_way.1 {
            return self.torn();
        }
        let ports = self.state.differ.ports();
        let counts = |one: &Neighbor| is_announced(ports, one);
        let swept = self.state.model.sweep_but(what, &self.touched, counts);
        if swept > 0 && self.report.examples.len() < EXAMPLES {
            let words = format!("{swept} of {what:?} that the kernel has no more");
            self.report.examples.push(words);
        }
        self.swept += swept;
    }

    /// Forgets objects touched before the comparison began: they do not affect it.
    pub(super) fn settle(&mut self) {
        self.touched = HashSet::new();
        self.spoiled = self.turn.dump.is_some();
        self.report.settled = !self.spoiled && !self.state.lost;
    }

    /// Marks a dump as inconsistent: it proves nothing about objects it did not contain, and everything must be dumped again.
    pub(super) fn torn(&mut self) {
        self.report.whole = false;
        self.turn.dump = self.turn.dump.or(Some(self.report.reason));
    }

    /// Gives the comparison up: it proves nothing, and must be repeated.
    pub(super) fn give_up(mut self) {
        self.report.settled = false;
        self.torn();
    }

    /// Counts the differences after all dumps, except objects that the stream has touched since.
    pub(super) fn conclude(self) {
        let differing = self.differing.into_iter();
        let is_touched =
            |named: Option<ObjectId>| named.is_some_and(|id| self.touched.contains(&id));
        let stand = differing.filter(|(named, _)| !is_touched(*named));
        let words: Vec<Option<String>> = stand.map(|(_, words)| words).collect();
        self.report.differences += self.swept + words.len();
        self.report.examples.extend(words.into_iter().flatten());
    }

    /// Reads the stream until it is empty.
    pub(super) fn catch_up(&mut self) -> io::Result<()> {
        loop {
            let (state, touched) = (&mut *self.state, &mut self.touched);
            let (mut lost, mut spoiled, mut any) = (false, false, false);
            let (model, counts) = (&mut state.model, &mut state.counts);
            let (what, hidden) = &mut self.under_way;
            let read = self.stream.read(BATCH, |datagram| {
                lost |= each(datagram, counts, |event| {
                    touched.extend(ObjectId::of(&event));
                    *hidden |= hides_others(model, *what, &event);
                    let silent = match &event {
                        Event::Link(link) => !link.up || !link.carrier,
                        Event::LinkGone(_) | Event::AddressGone(_) | Event::NextHopGone(_) => true,
                        _ => false,
                    };
                    any = true;
                    spoiled |= model.apply(event) && silent;
                });
            })?;
            if read == Read::Overrun || lost {
                self.state.counts.overruns += 1;
                self.state.lost = true;
                self.turn.dump = Some(Reason::Overrun);
                self.spoiled = true;
                return Ok(());
            }
            self.spoiled |= spoiled;
            if any {
                self.report.settled = false;
                self.state.give(self.fib, self.turn);
            }
            if read == Read::Empty {
                return Ok(());
            }
        }
    }
}

impl Dumped for Comparing<'_> {
    fn message(&mut self, message: &Message<'_>) {
        let Ok(event) = event(message) else {
            return;
        };
        let named = ObjectId::of(&event);
        if named.is_some_and(|id| self.touched.contains(&id)) {
            return;
        }
        self.report.compared += 1;
        let words = (self.differing.len() < EXAMPLES).then(|| in_words(&event));
        let counts = match &event {
            Event::Neighbor(one) => is_announced(self.state.differ.ports(), one),
            _ => true,
        };
        if self.state.model.apply_dumped(event) && counts {
            self.differing.push((named, words));
        }
    }

    fn between(&mut self) -> io::Result<()> {
        self.state.turns.add(1);
        self.catch_up()?;
        if self.spoiled {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }
}

/// Returns true for a neighbour that the kernel announces and a port can use. It makes entries without ARP (`NUD_NOARP`) by itself as it
/// sends, on the loopback for example, without a notification.
fn is_announced(ports: &Ports, neighbor: &Neighbor) -> bool {
    neighbor.state & NO_ARP == 0 && ports.place(neighbor.link).is_some()
}

//! The model, what the switch has of it, and counts.

use std::sync::Arc;

use npcc_pipeline::counters::Counter;
use npcc_pipeline::route::prefix::Family;

use crate::fib::Fib;
use crate::table::model::Model;
use crate::wanted::differ::{Differ, Done};
use crate::wire::event::{Event, event};
use crate::wire::message::{OVERRUN, messages};
use crate::wire::request::Dump;
use crate::wire::unread::Unread;

use super::report::{Counts, Reason};

/// See the module's text.
#[derive(Debug)]
pub(super) struct State {
    pub(super) model: Model,
    pub(super) differ: Differ,
    pub(super) counts: Counts,
    /// The model's doubts that were acted on.
    pub(super) doubts: u64,
    /// Messages were lost, and no dump has made up for them yet.
    pub(super) lost: bool,
    /// Grows while the thread moves, in the middle of a dump too.
    pub(super) turns: Arc<Counter>,
}

/// What a turn did.
#[derive(Debug, Default)]
pub struct Turn {
    /// What the switch was given.
    pub done: Done,
    /// Links or our addresses on them changed.
    pub links_changed: bool,
    /// A dump of everything is needed.
    pub dump: Option<Reason>,
    /// More waits to be read.
    pub more: bool,
}

impl State {
    /// With nothing counted.
    pub(super) fn new(model: Model, differ: Differ) -> State {
        State {
            model,
            differ,
            counts: Counts::default(),
            doubts: 0,
            lost: false,
            turns: Arc::default(),
        }
    }

    /// Gives the switch what changed in the model.
    pub(super) fn give(&mut self, fib: &mut dyn Fib, turn: &mut Turn) {
        let changes = self.model.take_changes();
        turn.links_changed |= changes.addresses || !changes.links.is_empty();
        let done = self.differ.sync(&self.model, changes, fib);
        self.note(done, turn);
    }

    /// As [`State::give`], and what was refused, or asked for without an answer, once more.
    pub(super) fn give_again(&mut self, fib: &mut dyn Fib, turn: &mut Turn) {
        let mut changes = self.model.take_changes();
        turn.links_changed |= changes.addresses || !changes.links.is_empty();
        self.differ.retry(&mut changes);
        let done = self.differ.sync(&self.model, changes, fib);
        self.note(done, turn);
    }

    fn note(&mut self, done: Done, turn: &mut Turn) {
        self.counts.routes += done.routes as u64;
        self.counts.groups += done.groups as u64;
        turn.done.routes += done.routes;
        turn.done.groups += done.groups;
        turn.done.refused = done.refused.or_else(|| turn.done.refused.take());
        turn.done.asks.extend(done.asks);
    }

    /// Whether the model came to doubt since this was last asked.
    pub(super) const fn doubts_anew(&mut self) -> bool {
        let anew = self.model.doubts() != self.doubts;
        self.doubts = self.model.doubts();
        anew
    }
}

/// Takes the events of a datagram; whether it says that others were lost.
pub(super) fn each(datagram: &[u8], counts: &mut Counts, mut take: impl FnMut(Event)) -> bool {
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

/// Whether what an event tells of makes the kernel leave others out of a dump that is under way, without flagging it
/// (`NLM_F_DUMP_INTR`): where it goes on it finds by counting IPv6's routes, or a bucket's neighbours, from the first
/// (Linux, `fib6_dump_table()` and `neigh_dump_table()`), so one that goes hides another, and a table of neighbours that grows is
/// dealt anew. It keeps its place by the key for IPv4's routes and by the id for next-hop objects, and flags the rest.
pub(super) fn hides_others(model: &Model, what: Dump, event: &Event) -> bool {
    match (what, event) {
        (Dump::Routes { v6: true, .. }, Event::RouteGone(route)) => {
            route.prefix.family() == Family::V6
        }
        (Dump::Neighbors, Event::NeighborGone(_)) => true,
        (Dump::Neighbors, Event::Neighbor(one)) => {
            model.neighbors().get(one.link, one.address).is_none()
        }
        _ => false,
    }
}

/// An event as a difference is told.
pub(super) fn in_words(event: &Event) -> String {
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

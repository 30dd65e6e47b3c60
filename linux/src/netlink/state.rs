//! State of the mirror: the model, the state installed in the switch, and counts.

use std::sync::Arc;
use std::time::Instant;

use npcc_pipeline::counters::Counter;
use npcc_pipeline::route::prefix::Family;

use crate::fib::Fib;
use crate::table::changes::Changes;
use crate::table::model::Model;
use crate::wanted::differ::{Differ, Done};
use crate::wire::event::{Event, event};
use crate::wire::message::{OVERRUN, messages};
use crate::wire::request::Dump;
use crate::wire::unread::Unread;

use super::ages::{Ages, Move};
use super::report::{Counts, Reason};

/// Model, state installed in the switch, and counts.
#[derive(Debug)]
pub(super) struct State {
    pub(super) model: Model,
    pub(super) differ: Differ,
    pub(super) counts: Counts,
    /// MAC addresses of the neighbours over time.
    pub(super) ages: Ages,
    /// Number of the model's doubts that were acted on.
    pub(super) doubts: u64,
    /// True if messages were lost, and no dump has made up for them yet.
    pub(super) lost: bool,
    /// Progress counter of the thread, which grows during a dump too.
    pub(super) turns: Arc<Counter>,
}

/// Result of one turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// Changes passed to the switch.
    pub done: Done,
    /// Neighbours whose MAC address changed.
    pub moves: Vec<Move>,
    /// True if links or local addresses on them changed.
    pub links_changed: bool,
    /// Reason for a dump of everything, if one is needed.
    pub dump: Option<Reason>,
    /// True if there is more to read.
    pub more: bool,
}

impl State {
    /// Creates the state with all counts zero.
    pub(super) fn new(model: Model, differ: Differ) -> State {
        State {
            model,
            differ,
            counts: Counts::default(),
            ages: Ages::default(),
            doubts: 0,
            lost: false,
            turns: Arc::default(),
        }
    }

    /// Passes the changes of the model to the switch.
    pub(super) fn give(&mut self, fib: &mut dyn Fib, turn: &mut Turn) {
        let changes = self.model.take_changes();
        turn.links_changed |= changes.addresses || !changes.links.is_empty();
        self.age(&changes, turn);
        let done = self.differ.sync(&self.model, changes, fib);
        self.note(done, turn);
    }

    /// Passes the changes as [`State::give`], and retries what was refused, or requested without an answer.
    pub(super) fn give_again(&mut self, fib: &mut dyn Fib, turn: &mut Turn) {
        let mut changes = self.model.take_changes();
        turn.links_changed |= changes.addresses || !changes.links.is_empty();
        self.age(&changes, turn);
        self.differ.retry(&mut changes);
        let done = self.differ.sync(&self.model, changes, fib);
        self.note(done, turn);
    }

    /// Takes in the MAC addresses that changed.
    fn age(&mut self, changes: &Changes, turn: &mut Turn) {
        let now = Instant::now();
        for (link, address) in &changes.neighbors {
            let known = self.model.neighbors().get(*link, *address);
            let mac = known.and_then(|one| one.mac);
            turn.moves
                .extend(self.ages.take_in((*link, *address), mac, now));
        }
    }

    fn note(&mut self, done: Done, turn: &mut Turn) {
        self.counts.routes += done.routes as u64;
        self.counts.groups += done.groups as u64;
        self.counts.refused_neighbors += done.refused_neighbors as u64;
        turn.done.routes += done.routes;
        turn.done.groups += done.groups;
        turn.done.refused = done.refused.or_else(|| turn.done.refused.take());
        turn.done.asks.extend(done.asks);
    }

    /// Returns true if the model's doubts increased since the last call.
    pub(super) const fn doubts_anew(&mut self) -> bool {
        let anew = self.model.doubts() != self.doubts;
        self.doubts = self.model.doubts();
        anew
    }
}

/// Passes on the events of a datagram; returns true if it reports lost messages.
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

/// Returns true if the event makes the kernel leave objects out of a dump that is under way, without flagging it
/// (`NLM_F_DUMP_INTR`): the kernel continues a dump by counting IPv6 routes, or a bucket's neighbours, from the first
/// (Linux, `fib6_dump_table()` and `neigh_dump_table()`), so a removal hides another object, and a neighbour table that grows is
/// rehashed. It keeps its place by the key for IPv4 routes and by the id for next-hop objects, and flags the rest.
pub(super) fn hides_others(model: &Model, what: Dump, event: &Event) -> bool {
    match (what, event) {
        (Dump::Routes { v6: true, .. }, Event::RouteGone(route)) => {
            route.prefix.family() == Family::V6
        }
        (Dump::Routes { v6: true, .. }, Event::NotFollowedGone(one)) => {
            one.table.is_some() && one.prefix.family() == Family::V6
        }
        (Dump::Neighbors, Event::NeighborGone(_)) => true,
        (Dump::Neighbors, Event::Neighbor(one)) => {
            model.neighbors().get(one.link, one.address).is_none()
        }
        _ => false,
    }
}

/// Describes an event, for a report of differences.
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

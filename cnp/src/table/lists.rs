//! The two lists of a watched queue: the flows that are read round and round, and those that put bytes in last.
//!
//! Both are links in the flows themselves: nothing is allocated, every step is a few stores. The round keeps its order, so
//! that each flow is read as often as any other. The recent ones are newest first and at most [`RECENT`]: the newest pushes
//! the oldest out, so that a decision weighs no more than that, however many flows there are.

use npcc_pipeline::units::Nanos;

use super::{Flow, FlowTable};
use crate::fixed_map::NONE;

/// Flows that a decision weighs, at most: those read last of them.
///
/// With 512 flows read a tick more never come together in a window of five ticks. In one of 100 us they can at ticks of less
/// than 14 us, if each puts a packet in: of less than 305 bytes on the wire at 100G, 1,220 at 400G.
pub(crate) const RECENT: usize = 4_096;

/// A flow's place in the lists of its queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    round: Links,
    recent: Links,
    /// When it was last found to have put bytes in.
    contributed: Nanos,
}

impl Places {
    /// In no list.
    pub(super) const NOWHERE: Places = Places {
        round: Links::NONE,
        recent: Links::NONE,
        contributed: Nanos::ZERO,
    };

    const fn of(&mut self, which: Which) -> &mut Links {
        match which {
            Which::Round => &mut self.round,
            Which::Recent => &mut self.recent,
        }
    }
}

/// Neighbours in a list; in the list at all.
#[derive(Debug, Clone, Copy)]
struct Links {
    previous: u32,
    next: u32,
    listed: bool,
}

impl Links {
    const NONE: Links = Links {
        previous: NONE,
        next: NONE,
        listed: false,
    };
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Round,
    Recent,
}

#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    len: usize,
}

impl List {
    const EMPTY: List = List {
        head: NONE,
        tail: NONE,
        len: 0,
    };
}

/// The flows of one queue that contributed lately.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueList {
    round: List,
    /// Who is read next; none for the first.
    cursor: u32,
    recent: List,
}

impl QueueList {
    pub(crate) const EMPTY: QueueList = QueueList {
        round: List::EMPTY,
        cursor: NONE,
        recent: List::EMPTY,
    };

    /// Flows that are read round and round.
    pub(crate) const fn len(&self) -> usize {
        self.round.len
    }

    const fn of(&mut self, which: Which) -> &mut List {
        match which {
            Which::Round => &mut self.round,
            Which::Recent => &mut self.recent,
        }
    }
}

impl FlowTable {
    /// Puts a flow among those of its queue that are read, if it is not there.
    pub(crate) fn list(&mut self, list: &mut QueueList, index: u32) {
        self.push(list, Which::Round, index);
    }

    /// Notes that a flow was found to have put bytes in.
    pub(crate) fn contributed(&mut self, list: &mut QueueList, index: u32, now: Nanos) {
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        flow.places.contributed = now;
        self.pull(list, Which::Recent, index);
        if list.recent.len >= RECENT {
            self.pull(list, Which::Recent, list.recent.tail);
        }
        self.push(list, Which::Recent, index);
    }

    /// Takes a flow out of both lists of its queue.
    pub(crate) fn unlist(&mut self, list: &mut QueueList, index: u32) {
        if list.cursor == index {
            list.cursor = self.flows.get(index).map_or(NONE, Flow::next_read);
        }
        self.pull(list, Which::Round, index);
        self.pull(list, Which::Recent, index);
    }

    /// The next flow to be read, round and round.
    pub(crate) fn advance(&self, list: &mut QueueList) -> Option<u32> {
        if list.cursor == NONE {
            list.cursor = list.round.head;
        }
        let index = list.cursor;
        list.cursor = self.get(index)?.next_read();
        Some(index)
    }

    /// The flows that were found to have put bytes in at this time or later, newest first; at most [`RECENT`].
    pub(crate) fn recent(&self, list: &QueueList, since: Nanos) -> impl Iterator<Item = u32> + '_ {
        let mut at = list.recent.head;
        std::iter::from_fn(move || {
            let index = at;
            let places = &self.flows.get(index)?.places;
            at = places.recent.next;
            (places.contributed >= since).then_some(index)
        })
    }

    fn links(&mut self, which: Which, index: u32) -> Option<&mut Links> {
        Some(self.flows.get_mut(index)?.places.of(which))
    }

    fn push(&mut self, list: &mut QueueList, which: Which, index: u32) {
        let list = list.of(which);
        let Some(links) = self.links(which, index).filter(|links| !links.listed) else {
            return;
        };
        *links = Links {
            previous: NONE,
            next: list.head,
            listed: true,
        };
        match self.links(which, list.head) {
            Some(next) => next.previous = index,
            None => list.tail = index,
        }
        list.head = index;
        list.len += 1;
    }

    fn pull(&mut self, list: &mut QueueList, which: Which, index: u32) {
        let list = list.of(which);
        let Some(links) = self.links(which, index).filter(|links| links.listed) else {
            return;
        };
        let Links { previous, next, .. } = std::mem::replace(links, Links::NONE);
        match self.links(which, previous) {
            Some(before) => before.next = next,
            None => list.head = next,
        }
        match self.links(which, next) {
            Some(after) => after.previous = previous,
            None => list.tail = previous,
        }
        list.len -= 1;
    }
}

impl Flow {
    const fn next_read(&self) -> u32 {
        self.places.round.next
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "lists_tests.rs"]
mod tests;

//! Three lists of a watched queue: all flows that are read round and round, those that send, and those that put bytes in last.
//!
//! All are links in the flows themselves: nothing is allocated, every step is a few stores. The round keeps its order, so that each flow is read as
//! often as any other, and so do the flows that send: a flow that was read goes to the end. The recent ones are newest first and at most
//! [`RECENT`]: the newest pushes the oldest out, so that a decision weighs no more than that, however many flows there are.

use std::hint::black_box;

use npcc_pipeline::units::Nanos;

use super::{Flow, FlowTable};
use npcc_roce::links::{Links, List, NONE};

/// Maximum number of flows that a decision weighs: those read last.
///
/// With 512 flows read per tick, no more ever come together in a window of five ticks. In a window of 100 us they can at ticks of less
/// than 14 us, if each puts a packet in: of less than 305 bytes on the wire at 100G, 1,220 at 400G.
pub(crate) const RECENT: usize = 4_096;

/// Place of a flow in the lists of its queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    round: Links,
    active: Links,
    recent: Links,
    listed: [bool; 3],
    /// Index of the flow read a batch later in the last round; a hint.
    ahead: u32,
    /// Time at which the flow was last found to have put bytes in.
    contributed: Nanos,
}

impl Places {
    /// Place of a flow that is in no list.
    pub(super) const NOWHERE: Places = Places {
        round: Links::NONE,
        active: Links::NONE,
        recent: Links::NONE,
        listed: [false; 3],
        ahead: NONE,
        contributed: Nanos::ZERO,
    };

    /// Neighbours in a list, and the flag that the flow is in it.
    const fn of(&mut self, which: Which) -> (&mut Links, &mut bool) {
        let [round, active, recent] = &mut self.listed;
        match which {
            Which::Round => (&mut self.round, round),
            Which::Active => (&mut self.active, active),
            Which::Recent => (&mut self.recent, recent),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Round,
    Active,
    Recent,
}

/// Lists of the flows of one queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueList {
    round: List,
    /// Index of the flow read next; [`NONE`] for the first.
    cursor: u32,
    active: List,
    recent: List,
}

impl QueueList {
    pub(crate) const EMPTY: QueueList = QueueList {
        round: List::EMPTY,
        cursor: NONE,
        active: List::EMPTY,
        recent: List::EMPTY,
    };

    /// Number of flows that are read round and round.
    pub(crate) const fn len(&self) -> usize {
        self.round.len as usize
    }

    /// Number of flows that send.
    pub(crate) const fn active(&self) -> usize {
        self.active.len as usize
    }

    const fn of(&mut self, which: Which) -> &mut List {
        match which {
            Which::Round => &mut self.round,
            Which::Active => &mut self.active,
            Which::Recent => &mut self.recent,
        }
    }
}

impl FlowTable {
    /// Adds a flow to those of its queue that are read, if it is not there.
    pub(crate) fn list(&mut self, list: &mut QueueList, index: u32) {
        self.push(list, Which::Round, index);
    }

    /// Adds a listed flow at the end of those of its queue that send; returns `false` if it is among them already.
    pub(crate) fn activate(&mut self, list: &mut QueueList, index: u32) -> bool {
        let new = self.set_listed(Which::Active, index, true);
        if new {
            let list = list.of(Which::Active);
            list.push_back(
                &mut self.flows,
                |flow| flow.places.of(Which::Active).0,
                index,
            );
        }
        new
    }

    /// Takes out the flow that sends and was read longest ago.
    pub(crate) fn take_active(&mut self, list: &mut QueueList) -> Option<u32> {
        let index = list.active.head;
        self.get(index)?;
        self.pull(list, Which::Active, index);
        Some(index)
    }

    /// Records that a flow was found to have put bytes in.
    pub(crate) fn contributed(&mut self, list: &mut QueueList, index: u32, now: Nanos) {
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        flow.places.contributed = now;
        self.pull(list, Which::Recent, index);
        if list.recent.len as usize >= RECENT {
            self.pull(list, Which::Recent, list.recent.tail);
        }
        self.push(list, Which::Recent, index);
    }

    /// Takes a flow out of all lists of its queue.
    pub(crate) fn unlist(&mut self, list: &mut QueueList, index: u32) {
        if list.cursor == index {
            list.cursor = self.flows.get(index).map_or(NONE, Flow::next_read);
        }
        for which in [Which::Round, Which::Active, Which::Recent] {
            self.pull(list, which, index);
        }
    }

    /// Returns the next flow to be read, round and round.
    pub(crate) fn advance(&self, list: &mut QueueList) -> Option<u32> {
        if list.cursor == NONE {
            list.cursor = list.round.head;
        }
        let index = list.cursor;
        list.cursor = self.get(index)?.next_read();
        Some(index)
    }

    /// Flows that were found to have put bytes in at this time or later, newest first; at most [`RECENT`].
    pub(crate) fn recent(&self, list: &QueueList, since: Nanos) -> impl Iterator<Item = u32> + '_ {
        let mut at = list.recent.head;
        std::iter::from_fn(move || {
            let index = at;
            let places = &self.flows.get(index)?.places;
            at = places.recent.next;
            (places.contributed >= since).then_some(index)
        })
    }

    /// Prefetches the places of the flows that were read a batch after these in the last round: the list is followed from
    /// one to the next, and each step would wait for the one before.
    pub(crate) fn prefetch_ahead(&self, read: &[u32]) {
        let ahead = read.iter().filter_map(|index| {
            let ahead = self.flows.get(*index)?.places.ahead;
            Some(self.flows.get(ahead)?.places.round.next)
        });
        black_box(ahead.fold(0, |sum, next| sum ^ next));
    }

    /// Records which flows are read a batch after which.
    pub(crate) fn note_ahead(&mut self, read: &[u32], after: &[u32]) {
        for (index, ahead) in read.iter().zip(after) {
            if let Some(flow) = self.flows.get_mut(*index) {
                flow.places.ahead = *ahead;
            }
        }
    }

    fn push(&mut self, list: &mut QueueList, which: Which, index: u32) {
        if self.set_listed(which, index, true) {
            let list = list.of(which);
            list.push_front(&mut self.flows, |flow| flow.places.of(which).0, index);
        }
    }

    fn pull(&mut self, list: &mut QueueList, which: Which, index: u32) {
        if self.set_listed(which, index, false) {
            let list = list.of(which);
            list.remove(&mut self.flows, |flow| flow.places.of(which).0, index);
        }
    }

    /// Sets or clears a flow's membership in a list; returns `false` if that changes nothing, or there is no such flow.
    fn set_listed(&mut self, which: Which, index: u32, listed: bool) -> bool {
        let flow = self.flows.get_mut(index);
        flow.is_some_and(|flow| std::mem::replace(flow.places.of(which).1, listed) != listed)
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

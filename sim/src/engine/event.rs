//! The clock: what happens next. Events of one time happen in the order they were asked for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use npcc_pipeline::units::Nanos;

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The first frame in flight on a link arrives.
    Arrive(u32),
    /// A host may have something to send.
    Host(u32),
    /// A switch's port may have something to send.
    Port(u32, u8),
    /// A switch's control core looks.
    Control(u32),
    /// A switch's worker turns: pauses are refreshed, paused ports looked at.
    Turn(u32),
    /// A connection gets its next data.
    Offer(u32),
    /// A connection is used for the first time, before the start.
    Warm(u32),
    /// Connections that heard nothing for too long.
    Expire,
    /// Something is written down.
    Mark(Mark),
    /// The n-th failure of the scenario, and the routes' answer.
    Fail(u32),
    /// See [`Event::Fail`].
    Reroute(u32),
    /// The far end of the n-th link that is paused now and then says its next pause frame.
    FarPause(u32),
}

/// What is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// The traffic starts.
    Start,
    /// A point of the curves.
    Sample,
    /// Utilisation is taken.
    Utilisation,
    /// Goodput counts from here.
    Goodput,
}

/// The events to come, by time.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    sequence: u64,
}

impl EventQueue {
    pub(crate) fn at(&mut self, time: Nanos, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((time, self.sequence, event)));
    }

    /// When the next event is.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    pub(crate) fn pop(&mut self) -> Option<(Nanos, Event)> {
        self.heap
            .pop()
            .map(|Reverse((time, _, event))| (time, event))
    }
}

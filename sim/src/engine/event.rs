//! Event queue and clock of the simulation. Events at the same time run in the order they were scheduled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use npcc_pipeline::units::Nanos;

use crate::app::Moment;

/// A simulation event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The first frame in flight on a link arrives.
    Arrive(u32),
    /// A host may have something to send.
    Host(u32),
    /// A switch's port may have something to send.
    Port(u32, u8),
    /// A switch's control core runs its tick.
    Control(u32),
    /// A switch's control core has made a CNP.
    CnpMade(u32),
    /// A switch's worker iterates: pauses are refreshed, paused ports are checked.
    Turn(u32),
    /// A connection is given its next data to send.
    Offer(u32),
    /// A connection is used for the first time, before the traffic starts.
    Warm(u32),
    /// A CNP that reached a connection's sender has its effect.
    React(u32),
    /// A pause frame that reached a host has its effect.
    HostPauses(u32),
    /// The report of a connection's host reaches the switches.
    Lease(u32),
    /// The CNP interval of a connection's receiver ends.
    CnpDue(u32),
    /// A rank of the n-th application goes on.
    Application(u32, Moment),
    /// Retransmission timeouts of all connections are checked.
    Expire,
    /// A measurement is recorded.
    Mark(Mark),
    /// The n-th failure of the scenario: its link goes down.
    Fail(u32),
    /// Routes move away from the link of the n-th failure.
    Reroute(u32),
    /// The far end of the n-th intermittently paused link sends its next pause frame.
    FarPause(u32),
}

/// A measurement to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// The traffic starts.
    Start,
    /// One point of the curves is sampled.
    Sample,
    /// The utilisation since the start is recorded.
    Utilisation,
    /// Goodput is counted from here on.
    Goodput,
    /// A window in which goodputs are compared with fair shares ends.
    Window,
}

/// Pending events, ordered by time, then by the order of scheduling.
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

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    pub(crate) fn pop(&mut self) -> Option<(Nanos, Event)> {
        self.heap
            .pop()
            .map(|Reverse((time, _, event))| (time, event))
    }
}

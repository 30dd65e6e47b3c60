//! Egress path: sends what a port may send, and releases it when its device has taken it.

use super::Datapath;
use crate::buffer::Sent;
use crate::egress::port::Marking;
use crate::egress::serve::{InFlightAccounts, TxSink};
use crate::frame::FrameBuf;
use crate::tap::FlowTap;
use crate::units::{Nanos, PortId, Priority};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Fills `out` with the frames that `port` may send now, and publishes its depths.
    #[inline]
    pub fn egress(&mut self, port: PortId, out: &mut impl TxSink<B>, now: Nanos) {
        let pause = &self.pause[port];
        if self.egress_side.ports[port].is_idle() && pause.is_quiet() {
            return;
        }
        if self.capture.is_on() {
            self.send_captured(port, out, now);
        } else {
            self.send_uncaptured(port, out, now);
        }
    }

    /// Runs [`Datapath::egress`] for a port that has something to do.
    #[inline]
    pub(super) fn send_uncaptured(&mut self, port: PortId, out: &mut impl TxSink<B>, now: Nanos) {
        let (side, pause) = (&mut self.egress_side, &mut self.pause[port]);
        let egress = &mut side.ports[port];
        let counters = self.counters.of(port);
        let nonempty_since = |priority: Priority| egress.nonempty_since(priority);
        let blocked = pause.blocked(now, nonempty_since, &counters.flow);
        egress.set_blocked(blocked);
        let marking = Marking {
            config: side.ecn[port],
            tap: &mut self.tap,
            now,
        };
        let mut accounts = InFlightAccounts {
            in_flight: &mut side.in_flight[port],
            buffer: &mut side.buffer,
        };
        let bypass = &mut side.bypass[port];
        if !bypass.is_empty() {
            if bypass.send_runs(egress, out, &mut accounts, &marking, &mut side.spare_runs) {
                egress.publish(counters);
                self.counters.bursts.bypassed.add(1);
                return;
            }
            self.queue_bypassed(port);
        }
        self.schedule(port, out, now);
    }

    /// Fills `out` from the queues of `port`.
    #[inline]
    fn schedule(&mut self, port: PortId, out: &mut impl TxSink<B>, now: Nanos) {
        let (side, counters) = (&mut self.egress_side, self.counters.of(port));
        let mut marking = Marking {
            config: side.ecn[port],
            tap: &mut self.tap,
            now,
        };
        let mut accounts = InFlightAccounts {
            in_flight: &mut side.in_flight[port],
            buffer: &mut side.buffer,
        };
        let egress = &mut side.ports[port];
        egress.schedule(&mut side.store, out, &mut accounts, &mut marking, counters);
        egress.publish(counters);
    }

    /// Puts the runs that bypass the queues of `port` into them after all.
    #[cold]
    pub(super) fn queue_bypassed(&mut self, port: PortId) {
        for priority in Priority::all() {
            self.queue_bypassed_of(port, priority);
        }
    }

    /// Puts the run that bypasses one queue into it after all.
    #[cold]
    pub(super) fn queue_bypassed_of(&mut self, port: PortId, priority: Priority) {
        if let Some(run) = self.egress_side.bypass[port].take(priority) {
            let lost = self.queue_run(run);
            self.held.subtract(lost.frames, lost.bytes);
        }
    }

    /// Accounts for frames that [`Datapath::egress`] handed out and the device of `port` took, oldest first.
    #[inline]
    pub fn sent(&mut self, port: PortId, sent: Sent) {
        self.held.subtract(sent.amount.frames, sent.bytes);
        self.give_back(port, sent);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.tx.add(sent.amount.frames, sent.bytes);
        }
    }

    /// Releases the charges of frames that have left a transmit queue.
    #[inline]
    pub(super) fn give_back(&mut self, port: PortId, sent: Sent) {
        let in_flight = &mut self.egress_side.in_flight[port][sent.tx_queue];
        let mut taken = sent.amount;
        while let Some(charge) = in_flight.pop(&mut taken) {
            self.egress_side.buffer.release(charge);
        }
    }
}

//! Lossless part of the packet path: groups with headroom, pause frames to send, polls of the watchdog.

use super::{Datapath, capture_points};
use crate::buffer::{Buffer, BufferConfig, Charge};
use crate::counters::Counters;
use crate::drop::DropReason;
use crate::egress::port::EgressPort;
use crate::frame::{FrameBuf, Meta, wire_len};
use crate::pause::{PauseConfig, PfcFrame, PortPause};
use crate::per::PerPort;
use crate::stage::enqueue;
use crate::tap::FlowTap;
use crate::units::{Nanos, PortId, Priority};

/// Configuration that makes a path lossless: groups with headroom, and ports that pause and obey pauses.
#[derive(Debug, Clone)]
pub struct LosslessConfig {
    /// Buffer configuration, with the groups of each port.
    pub buffer: BufferConfig,
    /// Flow-control configuration of each port.
    pub ports: Vec<PauseConfig>,
}

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Configures lossless groups and flow control, before the first frame. A group whose port does not send pause for it is
    /// not lossless. The pool should be the one the path was made with, because there are slots for its frames only.
    #[must_use]
    pub fn with_lossless(mut self, mut config: LosslessConfig) -> Datapath<B, T> {
        let ports = self.ingress.len();
        config.buffer.groups.resize_with(ports, Default::default);
        config.ports.resize_with(ports, PauseConfig::off);
        for (groups, pause) in config.buffer.groups.iter_mut().zip(&config.ports) {
            for (priority, group) in Priority::all().zip(groups) {
                group.lossless &= pause.send & priority.bit() != 0;
            }
        }
        self.egress_side.buffer = Buffer::new(&config.buffer);
        self.config = config.buffer;
        for ((id, port), pause) in self.ingress.iter().zip(&config.ports) {
            self.pause[id] = PortPause::new(pause, port.mac());
        }
        self
    }

    /// Continues, from the first frame on, a pause storm that the process before this one detected on `port` at `began`; it is
    /// over once the peer is quiet for `restore`. Returns true if it is continued: not on another worker's port, nor if the
    /// priority has no watchdog any more.
    pub fn resume_storm(&mut self, port: PortId, priority: Priority, began: Nanos) -> bool {
        if !self.egress_side.owns(port) {
            return false;
        }
        let (pause, counters) = (&mut self.pause[port], self.counters.of(port));
        let resumed = pause.resume(priority, began, &counters.flow);
        self.egress_side.ports[port].set_dropping(pause.dropping());
        resumed
    }

    /// Restarts the user watermarks of all ports and of the buffer.
    pub fn clear_watermarks(&mut self) {
        for port in self.counters.ports() {
            port.clear_watermarks();
        }
        let buffer = &self.counters.buffer;
        buffer.used_peak.set(self.egress_side.buffer.used().bytes);
        buffer
            .headroom_peak
            .set(self.egress_side.buffer.in_headroom().bytes);
    }

    /// Polls the watchdog, and returns the PFC frame that `port` must send now, if any, ahead of everything. Called once an
    /// iteration for each port. The frame is due again until [`Datapath::control_sent`].
    #[inline]
    pub fn control_due(&mut self, port: PortId, now: Nanos) -> Option<PfcFrame> {
        self.egress_side.buffer.apply_releases();
        let (pause, counters) = (&mut self.pause[port], self.counters.of(port));
        let egress = &mut self.egress_side.ports[port];
        self.egress_side.buffer.publish(port, counters);
        let nonempty_since = |priority: Priority| egress.nonempty_since(priority);
        if let Some(change) = pause.watch(now, nonempty_since, &counters.flow) {
            let dropping = pause.dropping();
            egress.set_dropping(dropping);
            if change.began & dropping != 0 {
                self.queue_bypassed(port);
            }
        }
        if self.egress_side.ports[port].to_empty() != 0 {
            self.capture.at(now);
            self.empty(port);
        }
        if self.egress_side.ports[port].is_down() {
            return None;
        }
        let pause = &mut self.pause[port];
        let wanted = self
            .egress_side
            .buffer
            .wants_pause(port, pause.classes(), pause.asserted());
        pause.due(wanted, now)
    }

    /// Sets the priorities of `port` whose transmit queue takes no more frames now.
    #[cold]
    pub fn set_tx_blocked(&mut self, port: PortId, priorities: u8) {
        self.pause[port].set_tx_blocked(priorities);
    }

    /// Reports the driver's answer, after a full burst, whether the receive ring of `port` is over half full.
    #[cold]
    pub fn ring(&mut self, port: PortId, over_half: bool) {
        self.pause[port].ring(over_half && !self.ingress[port].admin_down);
    }

    /// Accounts for a frame of [`Datapath::control_due`] that `port`'s device took.
    #[cold]
    pub fn control_sent(&mut self, port: PortId, frame: &PfcFrame, now: Nanos) {
        let (pause, counters) = (&mut self.pause[port], self.counters.of(port));
        let egress = &mut self.egress_side.ports[port];
        let len = frame.bytes.len();
        if self.capture.is_on() {
            self.capture.at(now);
            capture_points::control_sent(&mut self.capture, port, &frame.bytes);
        }
        egress.charge(wire_len(len));
        counters.originated.add(1, len as u64);
        counters.tx.add(1, len as u64);
        pause.sent(frame, now, counters);
    }

    /// Counts a frame of [`Datapath::control_due`] for which there was no buffer, or no room in the device: it is due again in
    /// the next iteration.
    #[cold]
    pub fn control_failed(&self, port: PortId) {
        self.counters.of(port).flow.failed.add(1);
    }

    /// Drops frames in those queues of `port` that nothing may enter, up to [`EMPTIED`] frames per iteration: a full pool at
    /// once would keep the worker away from its other ports for milliseconds.
    #[cold]
    fn empty(&mut self, port: PortId) {
        let (egress, counters) = (&mut self.egress_side.ports[port], self.counters.of(port));
        let (buffer, held, trash) = (
            &mut self.egress_side.buffer,
            &mut self.held,
            &mut self.trash,
        );
        let reason = egress.closed_for();
        let mut left = EMPTIED;
        for priority in Priority::all_of(egress.to_empty()) {
            let (store, capture) = (&mut self.egress_side.store, &mut self.capture);
            let mut depth = egress.depth(priority);
            left -= egress.drain_queue(store, (priority, left), |frame| {
                let bytes = u64::from(frame.meta.len);
                depth = depth.saturating_sub(frame.meta.wire_len().into());
                capture_points::dropped(capture, reason, &frame.buf, &frame.meta, depth);
                buffer.release(Charge::of(&frame.meta));
                held.subtract(1, bytes);
                counters.drop(reason, bytes);
                if reason == DropReason::PfcStorm
                    && let Some(pause) = counters.flow.priorities.get(priority.index())
                {
                    pause.storm_tx_dropped.add(1);
                }
                if trash.is_full() {
                    B::free_all(trash);
                }
                trash.push(frame.buf);
            });
        }
        B::free_all(trash);
        egress.publish(counters);
    }
}

/// Most frames of a port that are dropped in one iteration from queues that nothing may enter.
pub(super) const EMPTIED: usize = 256;

/// Counts a frame that was refused: on its queue, and, if for want of room, on its ingress group, and as lossless loss if its
/// queue is lossless.
#[cold]
pub(super) fn count_refused(
    counters: &Counters,
    egress: &PerPort<EgressPort>,
    meta: &Meta,
    reason: DropReason,
) {
    let priority = meta.priority.index();
    if let Some(to) = counters.port(meta.egress.index()) {
        enqueue::count_refused(to, meta.priority, reason);
        if reason == DropReason::PfcStorm
            && let Some(pause) = to.flow.priorities.get(priority)
        {
            pause.storm_tx_dropped.add(1);
        }
    }
    let Some(from) = counters
        .port(meta.group.port())
        .filter(|_| reason.is_congestion())
    else {
        return;
    };
    if let Some(group) = from.groups.get(priority) {
        group.dropped.add(1);
    }
    if egress[meta.egress].queue_config(meta.priority).lossless {
        from.lossless_lost.add(1);
    }
}

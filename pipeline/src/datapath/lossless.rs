//! The path's lossless part: groups with headroom, pause frames to send, the watchdog's turn.

use super::Datapath;
use crate::buffer::{Buffer, BufferConfig, Receipt};
use crate::counters::{Counters, PortCounters};
use crate::drop::Drop;
use crate::egress::port::EgressPort;
use crate::frame::{FrameBuf, Meta, wire_len};
use crate::pause::{PauseConfig, PfcFrame, PortPause};
use crate::stage::enqueue;
use crate::stage::packet::{Packet, Packets, Places};
use crate::tap::FlowTap;
use crate::units::{Nanos, PortId, Priority};

/// What makes a path lossless: groups with headroom, and ports that pause and obey pauses.
#[derive(Debug, Clone)]
pub struct LosslessConfig {
    /// The buffer, with the groups of each port.
    pub buffer: BufferConfig,
    /// Each port's flow control.
    pub ports: Vec<PauseConfig>,
}

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// With lossless groups and flow control, before the first frame. A group whose port does not send pause for it has no
    /// headroom. The pool should be the one the path was made with, as there are cells for its frames only.
    #[must_use]
    pub fn with_lossless(mut self, mut config: LosslessConfig) -> Datapath<B, T> {
        config
            .buffer
            .groups
            .resize_with(self.entrances.len(), Default::default);
        config
            .ports
            .resize_with(self.entrances.len(), PauseConfig::off);
        for (groups, pause) in config.buffer.groups.iter_mut().zip(&config.ports) {
            for (priority, group) in Priority::all().zip(groups) {
                group.lossless &= pause.send & priority.bit() != 0;
            }
        }
        self.side.buffer = Buffer::new(&config.buffer);
        self.config = config.buffer;
        self.pause = self
            .entrances
            .iter()
            .zip(&config.ports)
            .map(|(port, pause)| PortPause::new(pause, port.mac()))
            .collect();
        self
    }

    /// Starts the user watermarks of all ports anew.
    pub fn clear_watermarks(&mut self) {
        for port in self.counters.ports() {
            port.clear_watermarks();
        }
        let buffer = &self.counters.buffer;
        buffer.used_peak.set(self.side.buffer.used().bytes);
        buffer
            .headroom_peak
            .set(self.side.buffer.in_headroom().bytes);
    }

    /// Once a turn for each port: lets the watchdog look, and tells the PFC frame `port` must send now, if any, ahead of
    /// everything. The frame is due again until [`Datapath::control_sent`].
    #[inline]
    pub fn control_due(&mut self, port: PortId, now: Nanos) -> Option<PfcFrame> {
        self.side.buffer.settle();
        let (Some(pause), Some(counters), Some(egress)) = (
            self.pause.get_mut(port.index()),
            self.counters.port(port.index()),
            self.side.ports.get_mut(port.index()),
        ) else {
            return None;
        };
        self.side.buffer.publish(port, counters);
        let waiting = |priority: Priority| egress.waiting_since(priority);
        if let Some(change) = pause.watch(now, waiting, &counters.flow) {
            let dropping = pause.dropping();
            egress.set_dropping(dropping);
            for priority in Priority::all() {
                if change.began & dropping & priority.bit() != 0 {
                    self.flush(port, priority);
                }
            }
        }
        let pause = self.pause.get_mut(port.index())?;
        let wanted = self
            .side
            .buffer
            .wants_pause(port, pause.classes(), pause.asserted());
        pause.due(wanted, now)
    }

    /// The priorities of `port` whose frames the device does not take now.
    #[cold]
    pub fn hold_back(&mut self, port: PortId, priorities: u8) {
        if let Some(pause) = self.pause.get_mut(port.index()) {
            pause.set_stuck(priorities);
        }
    }

    /// The driver of `port` told, after a full burst, whether its receive ring is over half full.
    #[cold]
    pub fn ring(&mut self, port: PortId, over_half: bool) {
        if let Some(pause) = self.pause.get_mut(port.index()) {
            pause.ring(over_half);
        }
    }

    /// `port`'s device took a frame of [`Datapath::control_due`].
    #[cold]
    pub fn control_sent(&mut self, port: PortId, frame: &PfcFrame, now: Nanos) {
        let (Some(pause), Some(counters), Some(egress)) = (
            self.pause.get_mut(port.index()),
            self.counters.port(port.index()),
            self.side.ports.get_mut(port.index()),
        ) else {
            return;
        };
        let len = frame.bytes.len();
        egress.charge(wire_len(len));
        counters.originated.add(1, len as u64);
        counters.tx.add(1, len as u64);
        pause.sent(frame, now, counters);
    }

    /// Drops what waits in a queue as `pfc_storm`.
    #[cold]
    fn flush(&mut self, port: PortId, priority: Priority) {
        self.queue_express();
        let (Some(egress), Some(counters)) = (
            self.side.ports.get_mut(port.index()),
            self.counters.port(port.index()),
        ) else {
            return;
        };
        let (buffer, held) = (&mut self.side.buffer, &mut self.held);
        egress.drain_queue(&mut self.side.store, priority, |frame| {
            let bytes = frame.buf.data().len() as u64;
            buffer.release(Receipt::of(&frame.meta));
            held.give(1, bytes);
            counters.drop(Drop::PfcStorm, bytes);
            if let Some(pause) = counters.flow.priorities.get(priority.index()) {
                pause.storm_tx_dropped.add(1);
            }
        });
        egress.publish(counters);
    }
}

/// Frames of the priorities under a storm.
#[cold]
pub(super) fn storm(priorities: u8, frames: usize, packets: &mut Packets) -> Places {
    let mut gone = Places::NONE;
    for (place, packet) in packets.iter_mut().take(frames).enumerate() {
        if priorities & packet.meta.priority.bit() != 0 {
            packet.reason = Some(Drop::PfcStorm);
            gone.add(place);
        }
    }
    gone
}

/// Counts a frame dropped because of a storm on the port it came in by.
#[cold]
pub(super) fn count_storm(ingress: &PortCounters, packet: &Packet) {
    if let Some(pause) = ingress.flow.priorities.get(packet.meta.priority.index()) {
        pause.storm_rx_dropped.add(1);
    }
}

/// Counts a frame that did not get into its queue: on the queue, on the group it came from, and as lost when that must not
/// happen.
#[cold]
pub(super) fn count_refused(counters: &Counters, egress: &[EgressPort], meta: &Meta, reason: Drop) {
    let priority = meta.priority.index();
    if let Some(to) = counters.port(meta.egress.index()) {
        enqueue::count_refused(to, meta.priority, reason);
        if reason == Drop::PfcStorm
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
    let queue = egress.get(meta.egress.index());
    if queue
        .and_then(|port| port.queue_config(meta.priority))
        .is_some_and(|queue| queue.lossless)
    {
        from.lossless_lost.add(1);
    }
}

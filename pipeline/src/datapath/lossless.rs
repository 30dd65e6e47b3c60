//! The path's lossless part: groups with headroom, pause frames to send, the watchdog's turn.

use super::Datapath;
use crate::buffer::{Buffer, BufferConfig, Receipt};
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::egress::ecn::Red;
use crate::frame::{FrameBuf, wire_len};
use crate::pause::{PauseConfig, PfcFrame, PortPause};
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
            .resize_with(self.ports.len(), Default::default);
        config.ports.resize_with(self.ports.len(), PauseConfig::off);
        for (groups, pause) in config.buffer.groups.iter_mut().zip(&config.ports) {
            for (priority, group) in Priority::all().zip(groups) {
                group.lossless &= pause.send & priority.bit() != 0;
            }
        }
        self.buffer = Buffer::new(&config.buffer);
        self.pause = self
            .ports
            .iter()
            .zip(&config.ports)
            .map(|(port, pause)| PortPause::new(pause, port.intake.mac))
            .collect();
        self
    }

    /// Starts the user watermarks of all ports anew.
    pub fn clear_watermarks(&mut self) {
        for port in self.counters.ports() {
            port.clear_watermarks();
        }
        let buffer = &self.counters.buffer;
        buffer.used_peak.set(buffer.used.get());
        buffer.headroom_peak.set(buffer.headroom.get());
    }

    /// Marks and drops early in a queue by other curves from now on; of a lossless queue nothing is ever dropped early.
    pub fn set_curves(
        &mut self,
        port: PortId,
        priority: Priority,
        ecn: Option<Red>,
        wred: Option<Red>,
    ) {
        if let Some(egress) = self.egress.get_mut(port.index()) {
            egress.set_curves(priority, ecn, wred);
        }
    }

    /// Once a turn for each port: lets the watchdog look, and tells the PFC frame `port` must send now, if any, ahead of
    /// everything. The frame is due again until [`Datapath::control_sent`].
    #[inline]
    pub fn control_due(&mut self, port: PortId, now: Nanos) -> Option<PfcFrame> {
        self.buffer.settle();
        let (Some(pause), Some(counters), Some(egress)) = (
            self.pause.get_mut(port.index()),
            self.counters.port(port.index()),
            self.egress.get_mut(port.index()),
        ) else {
            return None;
        };
        self.buffer.publish(port, counters);
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
            self.egress.get_mut(port.index()),
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
        let (Some(egress), Some(counters)) = (
            self.egress.get_mut(port.index()),
            self.counters.port(port.index()),
        ) else {
            return;
        };
        let (buffer, held) = (&mut self.buffer, &mut self.held);
        egress.drain_queue(&mut self.store, priority, |frame| {
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

/// Counts a frame that did not get into its queue on the group it came from, and as lost when that must not happen.
#[cold]
pub(super) fn count_refused(
    ingress: &PortCounters,
    egress: &PortCounters,
    priority: Priority,
    reason: Drop,
    lossless: bool,
) {
    if reason == Drop::PfcStorm
        && let Some(pause) = egress.flow.priorities.get(priority.index())
    {
        pause.storm_tx_dropped.add(1);
    }
    if !reason.is_congestion() {
        return;
    }
    if let Some(group) = ingress.groups.get(priority.index()) {
        group.dropped.add(1);
    }
    if lossless {
        ingress.lossless_lost.add(1);
    }
}
